//! The steps of a schedule as entries, whose loops are stated once: what a replay holds of a program.

use super::program::{Entry, Id, Origin, Program};
use super::rolled::Rolled;
use super::schedule::{Schedule, Step};

/// The computation of a step, apart from the places of its values: steps of repeated blocks have one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Computation {
    /// The number of values that are read.
    pub reads: usize,
    /// The calls. Their arguments are positions, first among the values read, then among the calls.
    pub calls: Vec<Entry>,
    /// The calls whose values are needed later.
    pub writes: Vec<usize>,
}

impl Schedule {
    /// An entry for each step: a check, or a call with the number that `number` gives for its computation. Its arguments are the places of what it
    /// reads, of what it writes, and of the values that are not read after it.
    ///
    /// # Panics
    /// Panics where the schedule is that of another program.
    #[must_use]
    pub fn rolled(&self, program: &Program, mut number: impl FnMut(Computation) -> u32) -> Rolled {
        // The position of each entry in the run that is stated.
        let mut positions = vec![0; program.entries.len()];
        let mut run = |calls: &[Id], reads: &[Id], writes: &[Id]| {
            for (position, id) in (0..).zip(reads.iter().chain(calls)) {
                positions[*id as usize] = position;
            }
            let position = |id: &Id| positions[*id as usize];
            let call = |id: &Id| {
                let entry = &program.entries[*id as usize];
                Entry { args: entry.args.iter().map(position).collect(), ..*entry }
            };
            Computation {
                reads: reads.len(),
                calls: calls.iter().map(call).collect(),
                writes: writes.iter().map(|id| position(id) as usize - reads.len()).collect(),
            }
        };
        let place = |id: &Id| self.places[*id as usize].expect("a value between steps has a place");
        let entry = |(step, last): (&Step, &Vec<Id>)| {
            let (number, reads, writes) = match step {
                Step::Entry(id) => {
                    let Entry { origin, number: its, args } = &program.entries[*id as usize];
                    if *origin == Origin::Check {
                        return Entry {
                            origin: *origin,
                            number: *its,
                            args: args.iter().chain(last).map(place).collect(),
                        };
                    }
                    (number(single(*origin, *its, args.len())), &args[..], std::slice::from_ref(id))
                }
                Step::Run { calls, reads, writes } => (number(run(calls, reads, writes)), &reads[..], &writes[..]),
            };
            Entry { origin: STEP, number, args: reads.iter().chain(writes).chain(last).map(place).collect() }
        };
        Rolled::of_entries(&self.steps.iter().zip(&self.last).map(entry).collect::<Vec<_>>())
    }
}

/// A call by itself, which reads each of its arguments, equal ones too.
fn single(origin: Origin, number: u32, reads: usize) -> Computation {
    let args = (0..).zip(0..reads).map(|(at, _)| at).collect();
    Computation { reads, calls: vec![Entry { origin, number, args }], writes: vec![0] }
}

const STEP: Origin = Origin::Call { group: None, reduces: false };

#[cfg(test)]
mod tests {
    use super::super::program::tests::{CALL, entry};
    use super::*;

    const A: Origin = Origin::Call { group: Some(0), reduces: false };

    /// Steps of a recurrent function: a product, and a run of two calls whose second one reads the carried value too; each is checked.
    fn recurrent(steps: u32) -> Program {
        let (mut entries, mut carried) = (vec![entry(Origin::Input, 0, &[]), entry(Origin::Input, 1, &[])], 0);
        for step in 0..steps {
            let at = Id::try_from(entries.len()).unwrap();
            entries.push(entry(CALL, 0, &[carried, 1]));
            entries.push(entry(A, 1, &[at, 1]));
            entries.push(entry(A, 2, &[at + 1, carried]));
            entries.push(entry(Origin::Check, step, &[at + 2]));
            carried = at + 2;
        }
        Program::new(entries, vec![carried]).unwrap()
    }

    fn rolled(program: &Program) -> (Rolled, Vec<Computation>) {
        let mut known = Vec::new();
        let number = |computation| {
            let at = known.iter().position(|other| *other == computation).unwrap_or_else(|| {
                known.push(computation);
                known.len() - 1
            });
            u32::try_from(at).unwrap()
        };
        let rolled = Schedule::new(program, |_| 64, |_| false, |_| false).rolled(program, number);
        (rolled, known)
    }

    #[test]
    fn steps_of_a_loop_are_stated_once() {
        let ((short, few), (long, known)) = (rolled(&recurrent(10)), rolled(&recurrent(1000)));
        assert_eq!((long.stated(), &known), (short.stated(), &few));
        let product = single(CALL, 0, 2);
        let run = Computation { reads: 2, calls: vec![entry(A, 1, &[0, 1]), entry(A, 2, &[2, 1])], writes: vec![1] };
        assert!(known.contains(&product));
        assert!(known.iter().any(|each| each.calls.len() == 2 && each.writes == run.writes), "{known:?}");
    }

    #[test]
    fn steps_compute_what_the_program_does() {
        let program = recurrent(20);
        let (steps, known) = rolled(&program);
        let schedule = Schedule::new(&program, |_| 64, |_| false, |_| false);
        let call = |number: u32, args: &[u64]| args.iter().fold(u64::from(number) + 1, |a, b| a.wrapping_mul(31) ^ b);
        let mut expected: Vec<u64> = Vec::new();
        for Entry { origin, number, args } in &program.entries {
            let args: Vec<u64> = args.iter().map(|arg| expected[*arg as usize]).collect();
            expected.push(if matches!(origin, Origin::Call { .. }) {
                call(*number, &args)
            } else {
                u64::from(*number)
            });
        }
        let mut values: Vec<Option<u64>> = vec![None; schedule.kept];
        let mut checked = Vec::new();
        values[..2].copy_from_slice(&[Some(0), Some(1)]);
        steps.for_each(|origin, number, places| {
            if origin == Origin::Check {
                checked.push((number, values[places[0] as usize].unwrap()));
                for place in &places[1..] {
                    values[*place as usize] = None;
                }
                return;
            }
            let Computation { reads, calls, writes } = &known[number as usize];
            let (reads, rest) = places.split_at(*reads);
            let mut found: Vec<u64> = reads.iter().map(|place| values[*place as usize].unwrap()).collect();
            for Entry { number, args, .. } in calls {
                let args: Vec<u64> = args.iter().map(|at| found[*at as usize]).collect();
                found.push(call(*number, &args));
            }
            let (to, last) = rest.split_at(writes.len());
            for (place, at) in to.iter().zip(writes) {
                values[*place as usize] = Some(found[reads.len() + at]);
            }
            for place in last {
                values[*place as usize] = None;
            }
        });
        let output = program.outputs[0] as usize;
        assert_eq!(values[schedule.places[output].unwrap() as usize], Some(expected[output]));
        let checks = (0..).zip(&program.entries).filter(|(_, entry)| entry.origin == Origin::Check);
        let checks: Vec<(u32, u64)> =
            checks.map(|(_, entry)| (entry.number, expected[entry.args[0] as usize])).collect();
        checked.sort_unstable();
        assert_eq!(checked, checks);
        // All others are gone but for inputs, which stay, and the result.
        assert_eq!(values.iter().flatten().count(), 3);
    }
}
