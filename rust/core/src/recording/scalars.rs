//! Runs of calls on scalars, in one loop over numbers.

use crate::op::{Elementwise, OnNumbers};
use crate::scalar::{Precision, Scalar, narrowed};
use crate::simd::dispatch::Isa;
use crate::simd::{Simd, Task};

/// A condition on a call, without which its caller has another result than the op, raises, or warns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Always true.
    None,
    /// The second argument is not zero.
    Divisor,
    /// No floating-point flag is raised: see [`Elementwise::is_quiet`].
    Quiet,
}

impl Condition {
    /// Whether it holds.
    #[inline(always)]
    #[must_use]
    pub fn holds(self, op: Elementwise, result: Scalar, numbers: [f64; 3]) -> bool {
        match self {
            Self::None => true,
            Self::Divisor => numbers[1] != 0.0,
            Self::Quiet => op.is_quiet(result, numbers),
        }
    }
}

/// An elementwise op on scalars.
#[derive(Clone, Copy, Debug)]
pub struct ScalarCall {
    /// The op.
    pub op: Elementwise,
    /// The condition on its numbers.
    pub condition: Condition,
    /// The precision of the result.
    pub precision: Precision,
    /// The positions of its arguments, first among the values read, then among the calls; those beyond the arity are 0.
    pub args: [u32; 3],
}

/// Calls on scalars, arguments first.
#[derive(Clone, Debug, Default)]
pub struct ScalarRun {
    /// The precision of each value that is read.
    pub reads: Vec<Precision>,
    /// The calls.
    pub calls: Vec<ScalarCall>,
    /// The calls whose results are needed later.
    pub writes: Vec<usize>,
}

impl ScalarRun {
    /// The results that are needed later; `None` where a value has another precision, or a condition does not hold.
    ///
    /// # Panics
    /// Panics where the position of an argument is that of no earlier value.
    pub fn run(&self, values: impl Iterator<Item = Option<Scalar>>) -> Option<Vec<Scalar>> {
        let mut numbers = Vec::with_capacity(self.reads.len() + self.calls.len());
        for (value, precision) in values.zip(&self.reads) {
            numbers.push(value.filter(|value| value.precision == *precision)?.number);
        }
        let holds = numbers.len() == self.reads.len() && Isa::SCALAR.run(Calls(&self.calls, &mut numbers));
        let result =
            |at: &usize| Scalar { number: numbers[self.reads.len() + at], precision: self.calls[*at].precision };
        holds.then(|| self.writes.iter().map(result).collect())
    }
}

struct Calls<'a>(&'a [ScalarCall], &'a mut Vec<f64>);

impl Task for Calls<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self) -> bool {
        let Self(calls, numbers) = self;
        for ScalarCall { op, condition, precision, args } in calls {
            let given = args.map(|at| numbers[at as usize]);
            let number = match precision {
                Precision::F32 => f64::from(op.visit(OnNumbers(given.map(narrowed)))),
                Precision::Weak | Precision::F64 => op.visit(OnNumbers(given)),
            };
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
    use super::*;

    /// A run of these calls on two values of a precision, of which all results are needed.
    fn run(precision: Precision, calls: &[(Elementwise, Condition, [u32; 3])]) -> ScalarRun {
        let call = |(op, condition, args): &_| ScalarCall { op: *op, condition: *condition, precision, args: *args };
        let calls: Vec<ScalarCall> = calls.iter().map(call).collect();
        ScalarRun { reads: vec![precision; 2], writes: (0..calls.len()).collect(), calls }
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
}
