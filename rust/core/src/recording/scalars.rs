//! Runs of calls on scalars, in one loop over numbers.

use super::rolled::Rolled;
use crate::op::Elementwise;
use crate::scalar::{Condition, Precision, Scalar, computed};
use crate::simd::dispatch::{Isa, with_fma};
use crate::simd::{Simd, Task};

/// An elementwise op on scalars.
#[derive(Clone, Copy, Debug)]
pub struct ScalarCall {
    /// The op.
    pub op: Elementwise,
    /// The condition on its numbers.
    pub condition: Condition,
    /// The precision of the result.
    pub precision: Precision,
}

/// A call, and the positions of its arguments, first among the values read, then among the calls; those beyond the arity are 0.
#[derive(Clone, Debug)]
struct PlacedCall {
    call: ScalarCall,
    args: [u32; 3],
}

/// Calls on scalars, arguments first. Loops are written out: an op on numbers takes less time than to move the positions of its arguments on.
#[derive(Clone, Debug)]
pub struct ScalarRun {
    /// The precision of each value that is read.
    reads: Vec<Precision>,
    calls: Vec<PlacedCall>,
    /// The calls whose results are needed later.
    writes: Vec<usize>,
}

/// Three numbers: these, then zeros.
fn filled(numbers: &[u32]) -> [u32; 3] {
    let mut all = [0; 3];
    all[..numbers.len()].copy_from_slice(numbers);
    all
}

impl ScalarRun {
    /// The run of these calls on values of these precisions, whose results at `writes` are needed later. The arguments of an entry are positions,
    /// first among the values read, then among the calls. `call` gives the call of an entry's number; `None` where it has none for one.
    #[must_use]
    pub fn new(
        reads: Vec<Precision>,
        calls: &Rolled,
        writes: &[usize],
        call: impl Fn(u32) -> Option<ScalarCall>,
    ) -> Option<Self> {
        let (mut placed, mut is_known) = (Vec::new(), true);
        calls.for_each(|_, number, args| match call(number) {
            Some(call) => placed.push(PlacedCall { call, args: filled(args) }),
            None => is_known = false,
        });
        is_known.then(|| Self { reads, calls: placed, writes: writes.to_vec() })
    }

    /// The results that are needed later; `None` where a value has another precision, or a condition does not hold.
    ///
    /// # Panics
    /// Panics where the position of an argument is that of no earlier value.
    pub fn run(&self, values: impl Iterator<Item = Option<Scalar>>) -> Option<Vec<Scalar>> {
        let mut numbers = Vec::with_capacity(self.reads.len() + self.calls.len());
        for (value, precision) in values.zip(&self.reads) {
            numbers.push(value.filter(|value| value.precision == *precision)?.number);
        }
        let holds = numbers.len() == self.reads.len() && holds(&self.calls, &mut numbers);
        let result =
            |at: &usize| Scalar { number: numbers[self.reads.len() + at], precision: self.calls[*at].call.precision };
        holds.then(|| self.writes.iter().map(result).collect())
    }
}

/// Appends the results of calls; false as soon as a condition does not hold.
fn holds(calls: &[PlacedCall], numbers: &mut Vec<f64>) -> bool {
    let calls = Calls::<true>(calls, numbers);
    with_fma(calls).unwrap_or_else(|Calls(calls, numbers)| Isa::SCALAR.run(Calls::<false>(calls, numbers)))
}

/// Calls, with `INLINE` by code of their own, which is much.
struct Calls<'a, const INLINE: bool>(&'a [PlacedCall], &'a mut Vec<f64>);

impl<const INLINE: bool> Task for Calls<'_, INLINE> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self) -> bool {
        let Self(calls, numbers) = self;
        for PlacedCall { call: ScalarCall { op, condition, precision }, args } in calls {
            let given = args.map(|at| numbers[at as usize]);
            let number = if INLINE { computed(*op, *precision, given) } else { op.in_precision(*precision, given) };
            if !condition.holds(*op, Scalar { number, precision: *precision }, given) {
                return false;
            }
            numbers.push(number);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::Entry;
    use super::super::program::tests::{CALL, entry};
    use super::*;
    use crate::scalar::narrowed;
    use proptest::prelude::*;

    /// A run of these calls on two values of a precision, of which all results are needed.
    fn run(precision: Precision, calls: &[(Elementwise, Condition, [u32; 3])]) -> ScalarRun {
        let entry = |(number, (.., args)): (u32, &(_, _, [u32; 3]))| entry(CALL, number, args);
        let entries: Vec<Entry> = (0..).zip(calls).map(entry).collect();
        let call = |number: u32| {
            let (op, condition, _) = calls[number as usize];
            Some(ScalarCall { op, condition, precision })
        };
        let writes: Vec<usize> = (0..calls.len()).collect();
        ScalarRun::new(vec![precision; 2], &Rolled::of_entries(&entries), &writes, call).unwrap()
    }

    fn results(run: &ScalarRun, values: [Scalar; 2]) -> Option<Vec<Scalar>> {
        run.run(values.into_iter().map(Some))
    }

    #[test]
    fn a_run_has_the_bits_of_its_ops() {
        let none = Condition::None;
        for (precision, [a, b]) in [
            (Precision::Weak, [0.3, -1.7]),
            (Precision::F64, [f64::NAN, 0.1]),
            (Precision::F32, [f64::from(0.1_f32), f64::from(-3.3_f32)]),
        ] {
            let scalar = |number| Scalar { number, precision };
            let all = Elementwise::ALL.iter().filter(|op| op.arity() == 2);
            let calls: Vec<_> = all.clone().map(|op| (*op, none, [0, 1, 0])).collect();
            let found = results(&run(precision, &calls), [scalar(a), scalar(b)]).unwrap();
            for (op, found) in all.zip(found) {
                let expected = op.on_scalars(&[scalar(a), scalar(b)]);
                assert_eq!(found.number.to_bits(), expected.number.to_bits(), "{op:?}");
                assert_eq!(found.precision, expected.precision);
            }
        }
    }

    #[test]
    fn calls_read_earlier_results() {
        let (add, multiply) = (Elementwise::Add, Elementwise::Multiply);
        let run = run(Precision::Weak, &[(add, Condition::None, [0, 1, 0]), (multiply, Condition::None, [2, 2, 0])]);
        assert_eq!(
            results(&run, [Scalar::weak(1.0), Scalar::weak(2.0)]),
            Some(vec![Scalar::weak(3.0), Scalar::weak(9.0)])
        );
    }

    #[test]
    fn a_run_is_left_where_a_condition_fails_or_a_value_is_another() {
        let by = |condition| run(Precision::F64, &[(Elementwise::Divide, condition, [0, 1, 0])]);
        let [one, zero, large] = [1.0, 0.0, 1e308].map(Scalar::f64);
        assert!(results(&by(Condition::None), [one, zero]).is_some());
        assert!(results(&by(Condition::Divisor), [one, zero]).is_none());
        assert!(results(&by(Condition::Quiet), [one, zero]).is_none());
        assert!(results(&by(Condition::Quiet), [large, Scalar::f64(0.1)]).is_none());
        assert!(results(&by(Condition::Quiet), [zero, one]).is_some());
        assert!(results(&by(Condition::None), [Scalar::weak(1.0), one]).is_none());
        assert!(by(Condition::None).run([Some(one), None].into_iter()).is_none());
        assert!(by(Condition::None).run([Some(one)].into_iter()).is_none());
    }

    const OPS: [Elementwise; 4] = [Elementwise::Add, Elementwise::Subtract, Elementwise::Multiply, Elementwise::Divide];

    /// A body of calls that reads values before the loop, of its repetition and of the one before, and a loop that reads its results backwards.
    fn repeated(body: &[(u32, u32, u32)], count: u32) -> Vec<Entry> {
        let (mut entries, length) = (Vec::new(), u32::try_from(body.len()).unwrap());
        for at in 0..count * length {
            let (op, one, other) = body[(at % length) as usize];
            let read = |back: u32| (2 + at).saturating_sub(1 + back % (length + 2));
            entries.push(entry(CALL, op, &[read(one), read(other), 0]));
        }
        for back in 0..count {
            let at = 2 + count * length + back;
            entries.push(entry(CALL, 2, &[at - 1, 1 + (count - back) * length, 0]));
        }
        entries
    }

    proptest! {
        #[test]
        fn loops_have_the_bits_of_their_repetitions(
            body in prop::collection::vec((0..4u32, 0..9u32, 0..9u32), 1..80),
            count in 1..40u32,
            precision in prop::sample::select(vec![Precision::Weak, Precision::F32, Precision::F64]),
            condition in prop::sample::select(vec![Condition::None, Condition::Divisor, Condition::Quiet]),
            numbers in (-2.0..2.0f64, -2.0..2.0f64),
        ) {
            let entries = repeated(&body, count);
            let call = |number: u32| Some(ScalarCall { op: OPS[number as usize], condition, precision });
            let writes: Vec<usize> = (0..entries.len()).collect();
            let rolled = Rolled::of_entries(&entries);
            let run = ScalarRun::new(vec![precision; 2], &rolled, &writes, call).unwrap();
            let mut expected = [numbers.0, numbers.1].map(|number| Scalar { number: f64::from(narrowed(number)), precision }).to_vec();
            let given = [expected[0], expected[1]];
            for entry in &entries {
                let [one, other] = [0, 1].map(|at| expected[entry.args[at] as usize]);
                let result = OPS[entry.number as usize].on_scalars(&[one, other]);
                if !condition.holds(OPS[entry.number as usize], result, [one.number, other.number, 0.0]) {
                    prop_assert!(results(&run, given).is_none());
                    return Ok(());
                }
                expected.push(result);
            }
            let bits = |values: &[Scalar]| values.iter().map(|value| (value.number.to_bits(), value.precision)).collect::<Vec<_>>();
            prop_assert_eq!(bits(&results(&run, given).unwrap()), bits(&expected[2..]));
        }
    }
}
