//! The order of computation: calls of one group in runs, sums at their ends included, and when a value is no longer needed.

use std::collections::BTreeMap;

use super::program::{Id, Origin, Program, id_of};

/// A part of the computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// One entry.
    Entry(Id),
    /// Calls of one group, arguments first, in one pass over memory.
    Run {
        /// The calls.
        calls: Vec<Id>,
        /// The entries that they read and that are not among them, each once.
        reads: Vec<Id>,
        /// The calls whose values are needed later.
        writes: Vec<Id>,
    },
}

/// Steps in order, the values that nothing needs after each, and places for values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The steps.
    pub steps: Vec<Step>,
    /// For each step, the entries whose values are not read after it, but for those that a run does not write.
    pub last: Vec<Vec<Id>>,
    /// The place of each value that is kept between steps.
    pub places: Vec<Option<u32>>,
    /// The number of places.
    pub kept: usize,
}

/// The key of a step in the order of computation: its level, whether it is a run, and its first entry or its group.
type Place = (u32, bool, u32, u32);

impl Schedule {
    /// The schedule of a program, with runs of at most `most` calls, a function of the group. `is_total` tells whether a call of this number is a
    /// sum of all elements: no run has these beside other sums. `is_view` tells whether it is a view, which is part of the run that reads it.
    ///
    /// The level of an entry is above those of its arguments, except that calls of one group may be of one level: those
    /// of a level and a group are one run, which is cut where it is too long. A sum is known after the pass: what reads it
    /// is of a level above. A call that one later run alone reads is part of that run, if no more values are kept till then.
    #[must_use]
    pub fn new(
        program: &Program,
        most: impl Fn(u32) -> usize,
        is_total: impl Fn(u32) -> bool,
        is_view: impl Fn(u32) -> bool,
    ) -> Self {
        let mut levels: Vec<u32> = Vec::with_capacity(program.entries.len());
        let group = |id: Id| match program.entries[id as usize].origin {
            Origin::Call { group, reduces } => (group, reduces),
            Origin::Input | Origin::Constant | Origin::Check => (None, false),
        };
        for (id, entry) in (0..).zip(&program.entries) {
            let (own, _) = group(id);
            let above = |arg: &Id| levels[*arg as usize] + u32::from(own.is_none() || group(*arg) != (own, false));
            levels.push(entry.args.iter().map(above).max().unwrap_or(0));
        }
        delay(program, &mut levels, group, is_view);
        let mut places: BTreeMap<Place, Vec<Id>> = BTreeMap::new();
        for (id, (entry, level)) in (0..).zip(program.entries.iter().zip(levels)) {
            let (own, _) = group(id);
            if matches!(entry.origin, Origin::Call { .. } | Origin::Check) {
                places.entry(own.map_or((level, false, id, 0), |group| (level, true, group, 0))).or_default().push(id);
            }
        }
        let mut steps = Vec::new();
        for ((_, is_run, number, _), calls) in places {
            let most = if is_run { most(number).max(1) } else { 1 };
            let is_total = |id: &Id| group(*id).1 && is_total(program.entries[*id as usize].number);
            let has_others = calls.iter().any(|id| group(*id).1 && !is_total(id));
            let (totals, calls): (Vec<Id>, Vec<Id>) = calls.into_iter().partition(|id| has_others && is_total(id));
            steps.extend(calls.chunks(most).map(|calls| match calls {
                [only] => Step::Entry(*only),
                calls => Step::Run { calls: calls.to_vec(), reads: Vec::new(), writes: Vec::new() },
            }));
            steps.extend(totals.into_iter().map(Step::Entry));
        }
        let mut schedule = Self { steps, ..Self::default() };
        schedule.connect(program);
        schedule
    }

    /// Finds what each run reads and writes, and after which step each value is needed no more.
    fn connect(&mut self, program: &Program) {
        let mut step_of = vec![usize::MAX; program.entries.len()];
        for (at, step) in self.steps.iter().enumerate() {
            step.calls().for_each(|id| step_of[id as usize] = at);
        }
        let mut last = step_of.clone();
        for (at, step) in self.steps.iter().enumerate() {
            for arg in step.calls().flat_map(|id| &program.entries[id as usize].args) {
                let own = &mut last[*arg as usize];
                *own = if *own == usize::MAX { at } else { at.max(*own) };
            }
        }
        let mut is_output = vec![false; program.entries.len()];
        program.outputs.iter().for_each(|output| is_output[*output as usize] = true);
        let mut reader = vec![usize::MAX; program.entries.len()];
        for (at, step) in self.steps.iter_mut().enumerate() {
            let Step::Run { calls, reads, writes } = step else { continue };
            for arg in calls.iter().flat_map(|id| &program.entries[*id as usize].args) {
                if step_of[*arg as usize] != at && std::mem::replace(&mut reader[*arg as usize], at) != at {
                    reads.push(*arg);
                }
            }
            writes.extend(calls.iter().filter(|id| last[**id as usize] != at || is_output[**id as usize]));
        }
        let mut is_kept = vec![true; program.entries.len()];
        for step in &self.steps {
            let Step::Run { calls, writes, .. } = step else { continue };
            for (ids, kept) in [(calls, false), (writes, true)] {
                for id in ids {
                    is_kept[*id as usize] = kept;
                }
            }
        }
        self.last = vec![Vec::new(); self.steps.len()];
        for (id, entry) in (0..).zip(&program.entries) {
            let at = last[id as usize];
            let is_computed = !matches!(entry.origin, Origin::Input | Origin::Constant);
            if at != usize::MAX && is_computed && !is_output[id as usize] && is_kept[id as usize] {
                self.last[at].push(id);
            }
        }
        let mut places = 0..;
        self.places = is_kept.iter().map(|is_kept| is_kept.then(|| places.next()).flatten()).collect();
        self.kept = is_kept.iter().filter(|kept| **kept).count();
    }

    /// The number of runs, and of the calls in them.
    #[must_use]
    pub fn runs(&self) -> (usize, usize) {
        let lengths = self.steps.iter().filter_map(|step| match step {
            Step::Run { calls, .. } => Some(calls.len()),
            Step::Entry(_) => None,
        });
        lengths.fold((0, 0), |(runs, calls), length| (runs + 1, calls + length))
    }
}

/// The run that reads a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    None,
    /// That of the value's group and this level.
    Run(u32),
    Others,
}

/// Raises the level of each elementwise call that one run of its group alone reads to that of the run, which then computes it instead of
/// reading it. At most one of its arguments is kept for that in its place, which is in memory already.
fn delay(
    program: &Program,
    levels: &mut [u32],
    group: impl Fn(Id) -> (Option<u32>, bool),
    is_view: impl Fn(u32) -> bool,
) {
    let mut readers = vec![Reader::None; program.entries.len()];
    program.outputs.iter().for_each(|output| readers[*output as usize] = Reader::Others);
    // The level till which a value is kept in any case, by the entries from the one at hand on.
    let mut kept = vec![0; program.entries.len()];
    program.outputs.iter().for_each(|output| kept[*output as usize] = u32::MAX);
    for (id, entry) in program.entries.iter().enumerate().rev() {
        let own = group(id_of(id));
        if let (Reader::Run(level), (Some(_), false)) = (readers[id], own) {
            let is_kept = |arg: &&Id| {
                let origin = program.entries[**arg as usize].origin;
                matches!(origin, Origin::Input | Origin::Constant) || kept[**arg as usize] >= level
            };
            let is_in_memory = |arg: &Id| group(*arg) != own || levels[*arg as usize] < levels[id];
            let mut others = entry.args.iter().filter(|arg| !is_kept(arg));
            let first = others.next();
            let is_fewer = first.is_none_or(is_in_memory) && others.all(|arg| Some(arg) == first);
            if is_fewer || is_view(entry.number) {
                levels[id] = level;
            }
        }
        for arg in &entry.args {
            let (reader, level) = (&mut readers[*arg as usize], levels[id]);
            let is_within = own.0.is_some() && group(*arg) == (own.0, false);
            *reader = match *reader {
                Reader::None if is_within => Reader::Run(level),
                Reader::Run(other) if is_within && other == level => Reader::Run(level),
                _ => Reader::Others,
            };
            kept[*arg as usize] = level.max(kept[*arg as usize]);
        }
    }
}

impl Step {
    /// The entries that are computed.
    pub fn calls(&self) -> impl Iterator<Item = Id> {
        let (one, many) = match self {
            Self::Entry(id) => (Some(*id), &[][..]),
            Self::Run { calls, .. } => (None, &calls[..]),
        };
        one.into_iter().chain(many.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::Entry;
    use super::super::program::tests::{CALL, entry};
    use super::*;

    const A: Origin = Origin::Call { group: Some(0), reduces: false };
    const SUM: Origin = Origin::Call { group: Some(0), reduces: true };

    fn run(calls: &[Id], reads: &[Id], writes: &[Id]) -> Step {
        Step::Run { calls: calls.to_vec(), reads: reads.to_vec(), writes: writes.to_vec() }
    }

    #[test]
    fn elementwise_calls_are_one_run_around_another_call() {
        let entries = vec![
            entry(Origin::Input, 0, &[]),
            entry(A, 0, &[0]),
            entry(CALL, 1, &[0]),
            entry(A, 2, &[1, 0]),
            entry(A, 3, &[3, 2]),
            entry(A, 4, &[4, 1]),
        ];
        let schedule = Schedule::new(&Program::new(entries, vec![5]).unwrap(), |_| 64, |_| false, |_| false);
        assert_eq!(schedule.steps, vec![Step::Entry(2), run(&[1, 3, 4, 5], &[0, 2], &[5])]);
        let runs = schedule.runs();
        assert_eq!(schedule.last, vec![vec![], vec![2]]);
        assert_eq!((schedule.places, schedule.kept), (vec![Some(0), None, Some(1), None, None, Some(2)], 3));
        assert_eq!(runs, (1, 4));
    }

    #[test]
    fn a_call_is_where_its_arguments_are_if_more_values_would_be_kept_or_others_read_it() {
        let entries = vec![
            entry(Origin::Input, 0, &[]),
            entry(CALL, 1, &[0]),
            entry(CALL, 2, &[0]),
            entry(A, 0, &[1, 2]), // of two values that nothing else reads
            entry(A, 0, &[0, 0]), // read by another call too
            entry(CALL, 3, &[4]),
            entry(A, 1, &[5, 3]),
            entry(A, 1, &[6, 4]),
        ];
        let schedule = Schedule::new(&Program::new(entries, vec![7]).unwrap(), |_| 64, |_| false, |_| false);
        let single = [1, 2, 4, 5, 3].map(Step::Entry);
        let expected = [&single[..], &[run(&[6, 7], &[5, 3, 4], &[7])]].concat();
        assert_eq!(schedule.steps, expected);
    }

    #[test]
    fn sums_end_a_run_and_what_reads_them_is_another() {
        let entries = vec![
            entry(Origin::Input, 0, &[]),
            entry(A, 0, &[0]),
            entry(SUM, 1, &[1]),
            entry(A, 2, &[1, 0]),
            entry(A, 3, &[3, 2]), // reads the sum
            entry(SUM, 1, &[4]),
        ];
        let schedule = Schedule::new(&Program::new(entries, vec![5]).unwrap(), |_| 64, |_| false, |_| false);
        assert_eq!(schedule.steps, vec![run(&[1, 2, 3], &[0], &[2, 3]), run(&[4, 5], &[3, 2], &[5])]);
        assert_eq!(schedule.last, vec![vec![], vec![2, 3]]);
    }

    #[test]
    fn a_total_is_by_itself_where_a_run_has_other_sums() {
        let entries = vec![
            entry(Origin::Input, 0, &[]),
            entry(A, 0, &[0]),
            entry(SUM, 1, &[1]), // of all elements
            entry(SUM, 2, &[1]),
            entry(A, 3, &[1]),
        ];
        let schedule = |entries: &[Entry]| {
            let outputs = (2..id_of(entries.len())).collect();
            Schedule::new(&Program::new(entries.to_vec(), outputs).unwrap(), |_| 64, |number| number == 1, |_| false)
        };
        assert_eq!(schedule(&entries).steps, vec![run(&[1, 3, 4], &[0], &[1, 3, 4]), Step::Entry(2)]);
        let without = [&entries[..3], &[entry(A, 3, &[1])]].concat();
        assert_eq!(schedule(&without).steps, vec![run(&[1, 2, 3], &[0], &[2, 3])]);
    }

    #[test]
    fn a_run_is_cut_where_it_is_too_long() {
        let mut entries = vec![entry(Origin::Input, 0, &[])];
        entries.extend((0..5).map(|id| entry(A, 0, &[id])));
        let schedule = Schedule::new(&Program::new(entries, vec![5]).unwrap(), |_| 2, |_| false, |_| false);
        assert_eq!(schedule.steps, vec![run(&[1, 2], &[0], &[2]), run(&[3, 4], &[2], &[4]), Step::Entry(5)]);
        assert_eq!(schedule.last, vec![vec![], vec![2], vec![4]]);
    }

    #[test]
    fn every_entry_is_computed_once_and_after_its_arguments() {
        let mut random = 1u32;
        let mut next = |most: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % most
        };
        for _ in 0..200 {
            let mut entries = vec![entry(Origin::Input, 0, &[]), entry(Origin::Input, 0, &[])];
            for id in 2..40 {
                let group = [None, Some(0), Some(1)][next(3) as usize];
                let origin = Origin::Call { group, reduces: group.is_some() && next(4) == 0 };
                entries.push(entry(origin, next(5), &[next(id), next(id)]));
            }
            let program = Program::new(entries, vec![39, next(39)]).unwrap();
            let schedule = Schedule::new(&program, |_| 3, |number| number < 2, |_| false);
            let (mut is_known, mut is_gone) = (vec![false; 40], vec![false; 40]);
            is_known[..2].fill(true);
            for (step, last) in schedule.steps.iter().zip(&schedule.last) {
                for id in step.calls() {
                    for arg in &program.entries[id as usize].args {
                        let is_sum =
                            matches!(program.entries[*arg as usize].origin, Origin::Call { reduces: true, .. });
                        assert!(!is_sum || !step.calls().any(|other| other == *arg));
                        assert!(is_known[*arg as usize] && !is_gone[*arg as usize]);
                    }
                    assert!(!std::mem::replace(&mut is_known[id as usize], true));
                }
                for id in last {
                    is_gone[*id as usize] = true;
                }
            }
            assert!(is_known.iter().all(|known| *known));
            assert!(program.outputs.iter().all(|output| !is_gone[*output as usize]));
        }
    }
}
