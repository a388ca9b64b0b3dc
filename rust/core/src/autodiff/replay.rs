//! Reverse replay: propagates cotangents from the results to the inputs, and sums those of an entry with several uses.

use std::collections::HashMap;

use super::accumulate::accumulate;
use super::host::{PULSE, pull_one};
use super::mask::{is_selection, is_unselected};
use super::squares::Smooth;
use super::tape::{Id, Origin, Tape, Value, index};
use crate::op::Op;

pub use super::host::Host;

impl<V: Value, A> Tape<V, A> {
    /// Replays the entries in reverse from the seeds, and sums the cotangents of an entry with several uses.
    ///
    /// Returns the cotangents of `inputs`, absent if no seed depends on them, and where `host` took them as they were
    /// final. With `release`, the kept value of an entry is dropped as soon as no rule needs it any more, and the tape
    /// cannot be replayed again.
    ///
    /// # Errors
    /// Any error of `host`.
    pub fn replay<H: Host<V, A>>(
        &mut self,
        seeds: Vec<(Id, H::Flow)>,
        inputs: &[Id],
        release: bool,
        host: &mut H,
    ) -> Result<Vec<H::Flow>, H::Error> {
        let top = seeds.iter().map(|(id, _)| *id as usize + 1).max().unwrap_or(0);
        let mut cotangents: Vec<H::Flow> = Vec::new();
        cotangents.resize_with(top, H::Flow::absent);
        for (id, seed) in seeds {
            accumulate(&mut cotangents[id as usize], seed, |a, b| host.add(a, b))?;
        }
        let asked_for_ops: Vec<Id> = inputs.iter().copied().filter(|id| self.origin(*id) != Origin::Input).collect();
        let mut due = if host.takes() { self.first_readers(top, inputs) } else { Vec::new() };
        for id in (0..top).rev() {
            if id % PULSE == 0 {
                host.pulse()?;
            }
            if matches!(self.entries[id].origin, Origin::Op(_)) && !cotangents[id].is_absent() {
                let cotangent = std::mem::replace(&mut cotangents[id], H::Flow::absent());
                self.pull(index(id), &cotangent, &mut cotangents, &asked_for_ops, host)?;
                if asked_for_ops.contains(&index(id)) {
                    cotangents[id] = cotangent;
                } else {
                    host.spend(cotangent);
                }
            }
            while let Some((_, which)) = due.pop_if(|(reader, _)| *reader == id) {
                let sum = &mut cotangents[inputs[which] as usize];
                if !sum.is_absent() {
                    *sum = host.take(which, std::mem::replace(sum, H::Flow::absent()))?;
                }
            }
            if release {
                host.retire(std::mem::replace(&mut self.values[id], V::absent()));
            }
        }
        let mut take =
            |id: &Id| cotangents.get_mut(*id as usize).map(|slot| std::mem::replace(slot, H::Flow::absent()));
        Ok(inputs.iter().map(|id| take(id).unwrap_or_else(H::Flow::absent)).collect())
    }

    /// For the watched inputs among `inputs`, the first entry below `top` that reads it, after which its cotangent is final
    /// in a reverse replay, and its position; in the order of these entries.
    fn first_readers(&self, top: usize, inputs: &[Id]) -> Vec<(usize, usize)> {
        let watched = inputs.iter().enumerate().filter(|(_, id)| self.origin(**id) == Origin::Input);
        let mut waiting: HashMap<Id, usize> = watched.map(|(which, id)| (*id, which)).collect();
        let mut found = Vec::with_capacity(waiting.len());
        for reader in 0..top {
            if waiting.is_empty() {
                break;
            }
            for arg in self.view(index(reader)).args {
                found.extend(waiting.remove(arg).map(|which| (reader, which)));
            }
        }
        found
    }

    fn pull<H: Host<V, A>>(
        &self,
        id: Id,
        cotangent: &H::Flow,
        sums: &mut [H::Flow],
        asked_for_ops: &[Id],
        host: &mut H,
    ) -> Result<(), H::Error> {
        let mut view = self.view(id);
        let Origin::Op(op) = view.origin else { return Ok(()) };
        if self.has_moduli {
            match self.smooth(&view, asked_for_ops, host)? {
                Some(Smooth::Square(modulus, factors)) => {
                    return self.pull_square(&modulus, &factors, cotangent, sums, host);
                }
                Some(Smooth::Even(even)) => view = even,
                None => {}
            }
        }
        if matches!(op, Op::Structured(_))
            && let Some(pulled) = host.pull_together(&view, cotangent)?
        {
            for (arg, pulled) in view.args.iter().zip(pulled).filter(|(_, pulled)| !pulled.is_absent()) {
                accumulate(&mut sums[*arg as usize], pulled, |a, b| host.add(a, b))?;
            }
            return Ok(());
        }
        let selects = is_selection(op);
        for which in 0..view.args.len() {
            if !view.is_active(which) || selects && is_unselected(op, which, &view) {
                continue;
            }
            if matches!(op, Op::Structured(_))
                && host.pull_into(&view, which, cotangent, &mut sums[view.args[which] as usize])?
            {
                continue;
            }
            let pulled = pull_one(host, &view, which, cotangent)?;
            if !pulled.is_absent() {
                accumulate(&mut sums[view.args[which] as usize], pulled, |a, b| host.add(a, b))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autodiff::rule::{Rule, Rules, Source};
    use crate::autodiff::tape::View;
    use crate::kernel::Node;
    use crate::op::Elementwise;

    type Number = Option<f64>;

    struct Numbers {
        rules: Rules,
        /// The inputs and cotangents that were taken, in order; none where the host takes none.
        taken: Option<Vec<(usize, f64)>>,
    }

    impl Host<Number, ()> for Numbers {
        type Error = String;
        type Flow = Number;
        fn rules(&self) -> &Rules {
            &self.rules
        }
        fn takes(&self) -> bool {
            self.taken.is_some()
        }
        fn take(&mut self, which: usize, cotangent: Number) -> Result<Number, String> {
            self.taken.as_mut().expect("it takes").push((which, cotangent.expect("it is present")));
            Ok(None)
        }
        fn pullback(&mut self, entry: &View<'_, Number, ()>, which: usize, _: &Number) -> Result<Number, String> {
            Err(format!("entry {} has no rule for argument {which}", entry.id))
        }
        fn pull_together(&mut self, _: &View<'_, Number, ()>, _: &Number) -> Result<Option<Vec<Number>>, String> {
            Ok(None)
        }
        fn pushforward(&mut self, entry: &View<'_, Number, ()>, _: &[&Number]) -> Result<Number, String> {
            Err(format!("entry {} has no rule forwards", entry.id))
        }
        fn add(&mut self, _: Number, _: Number) -> Result<Number, String> {
            Err("numbers are added by the tape".into())
        }
        fn pulse(&mut self) -> Result<(), String> {
            Ok(())
        }
    }

    /// The rules of `add`, `multiply` and `exp`.
    fn host() -> Numbers {
        let mut rules = Rules::default();
        let through = || Rule { sources: vec![Source::Cotangent], nodes: vec![Node::Leaf(0)] };
        let times = |source| Rule {
            sources: vec![Source::Cotangent, source],
            nodes: vec![Node::Leaf(0), Node::Leaf(1), Node::Apply(Elementwise::Multiply, [0, 1, 0])],
        };
        rules.set(Elementwise::Add, 0, through());
        rules.set(Elementwise::Add, 1, through());
        rules.set(Elementwise::Multiply, 0, times(Source::Arg(1)));
        rules.set(Elementwise::Multiply, 1, times(Source::Arg(0)));
        rules.set(Elementwise::Exp, 0, times(Source::Result));
        Numbers { rules, taken: None }
    }

    type Numeric = Tape<Number, ()>;

    fn apply(tape: &mut Numeric, op: Elementwise, args: &[Id]) -> Id {
        let mut numbers = [0.0; 3];
        for (number, arg) in numbers.iter_mut().zip(args) {
            *number = tape.view(*arg).result().expect("it is kept");
        }
        tape.push(Op::Elementwise(op), args, None, Some(op.on_numbers(numbers)))
    }

    fn gradient(tape: &mut Numeric, of: Id, inputs: &[Id]) -> Vec<Option<f64>> {
        let pulled = tape.replay(vec![(of, Some(1.0))], inputs, false, &mut host());
        pulled.expect("every op has a rule")
    }

    #[test]
    fn cotangents_add_up_where_an_entry_is_used_twice() {
        let mut tape = Numeric::default();
        let x = tape.watch(Some(3.0));
        let square = apply(&mut tape, Elementwise::Multiply, &[x, x]);
        let y = apply(&mut tape, Elementwise::Multiply, &[square, x]);
        assert_eq!(gradient(&mut tape, y, &[x, square, y]), [Some(27.0), Some(3.0), Some(1.0)]);
    }

    #[test]
    fn a_cotangent_is_taken_after_the_first_reader_of_its_input() {
        let mut tape = Numeric::default();
        let inputs = [2.0, 3.0, 5.0, 7.0].map(|number| tape.watch(Some(number)));
        let [a, b, c, unused] = inputs;
        let ab = apply(&mut tape, Elementwise::Multiply, &[a, b]);
        let abc = apply(&mut tape, Elementwise::Multiply, &[ab, c]);
        let y = apply(&mut tape, Elementwise::Multiply, &[abc, a]);
        let mut host = Numbers { taken: Some(Vec::new()), ..host() };
        let left = tape.replay(vec![(y, Some(1.0))], &[a, b, c, unused], true, &mut host).expect("it has rules");
        assert_eq!(host.taken.expect("it takes"), [(2, 12.0), (1, 20.0), (0, 60.0)]);
        assert_eq!(left, [None; 4]);
    }

    proptest::proptest! {
        /// For any tape: each input once, after all entries that read it, with the cotangent of a replay that takes none.
        #[test]
        fn cotangents_are_taken_when_no_reader_is_left(
            ops in proptest::collection::vec((proptest::bool::ANY, 0_usize..1000, 0_usize..1000), 1..40),
            count in 1_u32..6,
        ) {
            let record = || {
                let mut tape = Numeric::default();
                let inputs: Vec<Id> = (0..count).map(|number| tape.watch(Some(1.0 + f64::from(number) / 8.0))).collect();
                for (is_sum, a, b) in &ops {
                    let op = if *is_sum { Elementwise::Add } else { Elementwise::Multiply };
                    let args = [index(a % tape.len()), index(b % tape.len())];
                    apply(&mut tape, op, &args);
                }
                (tape, inputs)
            };
            let (mut tape, inputs) = record();
            let top = index(tape.len() - 1);
            let readers = |input| tape.views().find(|view| view.args.contains(&input)).map(|view| view.id);
            let first: Vec<Option<Id>> = inputs.iter().map(|input| readers(*input)).collect();
            let expected = gradient(&mut tape, top, &inputs);
            let mut host = Numbers { taken: Some(Vec::new()), ..host() };
            let left = record().0.replay(vec![(top, Some(1.0))], &inputs, true, &mut host).expect("it has rules");
            let taken = host.taken.expect("it takes");
            // In the order in which the last readers are replayed, each with the whole cotangent.
            proptest::prop_assert!(taken.windows(2).all(|pair| first[pair[0].0] >= first[pair[1].0]));
            for (which, cotangent) in expected.into_iter().enumerate() {
                let found: Vec<f64> = taken.iter().filter(|(at, _)| *at == which).map(|(_, taken)| *taken).collect();
                proptest::prop_assert_eq!(found, cotangent.into_iter().collect::<Vec<_>>());
            }
            proptest::prop_assert!(left.iter().all(Option::is_none));
        }
    }

    #[test]
    fn an_entry_off_the_path_is_skipped_and_an_input_off_it_gets_nothing() {
        let mut tape = Numeric::default();
        let (x, z) = (tape.watch(Some(2.0)), tape.watch(Some(5.0)));
        tape.push(Op::Elementwise(Elementwise::Tan), &[x], None, None);
        let y = apply(&mut tape, Elementwise::Exp, &[x]);
        assert_eq!(gradient(&mut tape, y, &[x, z]), [Some(2f64.exp()), None]);
    }

    #[test]
    fn constants_get_no_cotangent() {
        let mut tape = Numeric::default();
        let (x, c) = (tape.watch(Some(2.0)), tape.constant(Some(7.0)));
        let y = apply(&mut tape, Elementwise::Multiply, &[c, x]);
        assert_eq!(gradient(&mut tape, y, &[x, c]), [Some(7.0), None]);
    }

    #[test]
    fn a_missing_rule_is_an_error_of_the_host() {
        let mut tape = Numeric::default();
        let x = tape.watch(Some(2.0));
        let y = tape.push(Op::Elementwise(Elementwise::Tan), &[x], None, None);
        let failed = tape.replay(vec![(y, Some(1.0))], &[x], false, &mut host());
        assert_eq!(failed, Err("entry 1 has no rule for argument 0".into()));
    }

    fn tangents(tape: &Numeric, seeds: &[(Id, f64)], targets: &[Id]) -> Vec<Option<f64>> {
        let seeds = seeds.iter().map(|(id, seed)| (*id, Some(*seed))).collect();
        let pushed = tape.replay_forward(seeds, targets, &mut host());
        pushed.expect("every op has a rule")
    }

    #[test]
    fn tangents_go_forwards_by_the_same_rules() {
        let mut tape = Numeric::default();
        let (x, z) = (tape.watch(Some(3.0)), tape.watch(Some(5.0)));
        let square = apply(&mut tape, Elementwise::Multiply, &[x, x]);
        let y = apply(&mut tape, Elementwise::Multiply, &[square, z]);
        assert_eq!(tangents(&tape, &[(x, 1.0)], &[y, square, z]), [Some(30.0), Some(6.0), None]);
        assert_eq!(tangents(&tape, &[(x, 1.0), (z, 2.0)], &[y]), [Some(48.0)]);
        assert_eq!(tangents(&tape, &[(square, 1.0)], &[y, x]), [Some(5.0), None]);
    }

    #[test]
    fn forwards_an_entry_off_the_path_is_skipped() {
        let mut tape = Numeric::default();
        let x = tape.watch(Some(2.0));
        let off = tape.push(Op::Elementwise(Elementwise::Tan), &[x], None, None);
        let y = apply(&mut tape, Elementwise::Exp, &[x]);
        assert_eq!(tangents(&tape, &[(x, 1.0)], &[y]), [Some(2f64.exp())]);
        let failed = tape.replay_forward(vec![(x, Some(1.0))], &[off], &mut host());
        assert_eq!(failed, Err("entry 1 has no rule forwards".into()));
    }

    #[test]
    fn release_drops_what_was_kept() {
        let mut tape = Numeric::default();
        let x = tape.watch(Some(2.0));
        let y = apply(&mut tape, Elementwise::Exp, &[x]);
        tape.replay(vec![(y, Some(1.0))], &[x], true, &mut host()).expect("exp has a rule");
        assert!(!tape.keeps(x) && !tape.keeps(y));
    }

    #[test]
    fn ten_million_entries_replay_and_drop_on_a_small_stack() {
        let work = || {
            let mut tape = Numeric::default();
            let x = tape.watch(Some(1.0));
            let mut y = x;
            for _ in 0..10_000_000 {
                y = apply(&mut tape, Elementwise::Add, &[y, x]);
            }
            gradient(&mut tape, y, &[x])
        };
        let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(work).expect("a thread can be made");
        assert_eq!(thread.join().expect("the thread ends well"), [Some(10_000_001.0)]);
    }

    #[test]
    #[should_panic(expected = "not on the tape")]
    fn an_argument_that_is_not_on_the_tape_is_refused() {
        Numeric::default().push(Op::Elementwise(Elementwise::Exp), &[0], None, None);
    }
}
