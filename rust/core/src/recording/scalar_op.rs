//! Elementwise ops on scalars as their callers compute them.

use super::program::Entry;
use super::scalars::ScalarCall;
use crate::op::{Attribute, Elementwise, Operator, ResultKind};
use crate::scalar::{Condition, Precision, Scalar};

impl Elementwise {
    /// Whether the op is computed here on NumPy's arrays and scalars: NumPy's function gives the same bits, or is slower or less
    /// precise. `of_number` tells whether the first argument is a number of Python.
    #[must_use]
    pub const fn is_computed_in_core(self, of_number: bool) -> bool {
        self.has(Attribute::Exact) || self.has(Attribute::Precise) || self.is_vectorized(of_number)
    }

    /// Whether vector code of the op takes the place of an array library's.
    #[must_use]
    pub const fn is_vectorized(self, of_number: bool) -> bool {
        self.has(Attribute::Vectorized) || (of_number && self.has(Attribute::VectorizedOfNumber))
    }
}

/// The caller of an op, which decides about errors and warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Op,
    Rule,
    Operator,
    Ufunc,
}

/// An elementwise op of a call on scalars.
#[derive(Clone, Copy, Debug)]
pub struct ScalarOp {
    op: Elementwise,
    caller: Caller,
}

impl ScalarOp {
    /// The op of a call of a function of this kind; `None` for kinds of functions that compute no op.
    #[must_use]
    pub fn new(kind: &str, op: Elementwise) -> Option<Self> {
        let caller = match kind {
            "op" => Caller::Op,
            "rule" => Caller::Rule,
            "operator" => Caller::Operator,
            "numpy" => Caller::Ufunc,
            _ => return None,
        };
        Some(Self { op, caller })
    }

    /// The op as a call of a function of the standard on NumPy's scalars.
    #[must_use]
    pub fn of_standard(op: Elementwise) -> Self {
        Self { op, caller: Caller::Op }
    }

    /// Whether the result is True or False.
    #[must_use]
    pub fn is_truth(self) -> bool {
        self.op.kind() == ResultKind::Truth && self.caller != Caller::Rule
    }

    /// The condition under which the core has the result, of arguments of these precisions; `None` where Python or NumPy always computes.
    #[must_use]
    pub fn condition(self, precisions: &[Precision]) -> Option<Condition> {
        let is_weak = precisions.iter().all(|precision| *precision == Precision::Weak);
        let of_number = precisions.first() == Some(&Precision::Weak);
        match self.caller {
            Caller::Rule => Some(Condition::None),
            Caller::Op if is_weak => Some(Condition::None),
            Caller::Operator if is_weak => match self.op.operator()? {
                Operator::Divide => Some(Condition::Divisor),
                Operator::Power | Operator::FloorDivide | Operator::Remainder | Operator::MatrixMultiply => None,
                _ => Some(Condition::None),
            },
            Caller::Ufunc if is_weak => None,
            Caller::Operator if !self.is_arithmetic() => None,
            Caller::Op | Caller::Operator | Caller::Ufunc
                if self.is_truth() || !self.op.is_computed_in_core(of_number) =>
            {
                None
            }
            _ if self.op.has(Attribute::Exact) => Some(Condition::Quiet),
            _ => Some(Condition::None),
        }
    }

    /// The call in a run, of arguments of these precisions.
    #[must_use]
    pub fn in_run(self, precisions: &[Precision]) -> Option<ScalarCall> {
        let precision = precisions.iter().copied().max().filter(|_| precisions.len() == self.op.arity())?;
        Some(ScalarCall { op: self.op, condition: self.condition(precisions)?, precision })
    }

    /// The result; `None` where Python or NumPy raises, warns, or may have other bits than the core.
    #[inline]
    #[must_use]
    pub fn compute(self, scalars: &[Scalar]) -> Option<Scalar> {
        if scalars.len() != self.op.arity() {
            return None;
        }
        let (mut numbers, mut precisions) = ([0.0; 3], [Precision::Weak; 3]);
        for (at, scalar) in scalars.iter().enumerate() {
            (numbers[at], precisions[at]) = (scalar.number, scalar.precision);
        }
        let condition = self.condition(&precisions[..scalars.len()])?;
        let result = self.op.on_scalars(scalars);
        condition.holds(self.op, result, numbers).then_some(result)
    }

    /// The precisions of the values that a run reads, given those of the arguments of each call; `None` where two of them differ.
    #[must_use]
    pub fn precisions_read<'a>(
        reads: usize,
        calls: &[Entry],
        stated: impl Fn(u32) -> Option<(Self, &'a [Precision])>,
    ) -> Option<Vec<Precision>> {
        let mut precisions: Vec<Option<Precision>> = vec![None; reads];
        for call in calls {
            let (op, its) = stated(call.number)?;
            for (at, precision) in call.args.iter().zip(its) {
                if *precisions[*at as usize].get_or_insert(*precision) != *precision {
                    return None;
                }
            }
            precisions.push(Some(op.in_run(its)?.precision));
        }
        precisions.into_iter().take(reads).collect()
    }

    fn is_arithmetic(self) -> bool {
        matches!(
            self.op.operator(),
            Some(Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Negative)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [&str; 4] = ["op", "rule", "operator", "numpy"];

    fn computed(kind: &str, op: Elementwise, scalars: &[Scalar]) -> Option<f64> {
        ScalarOp::new(kind, op).unwrap().compute(scalars).map(|result| result.number)
    }

    #[test]
    fn what_raises_or_warns_elsewhere_is_left_to_it() {
        let (divide, weak, double) = (Elementwise::Divide, Scalar::weak, Scalar::f64);
        assert_eq!(computed("operator", divide, &[weak(1.0), weak(0.0)]), None);
        assert_eq!(computed("operator", divide, &[weak(1.0), weak(2.0)]), Some(0.5));
        assert_eq!(computed("op", divide, &[weak(1.0), weak(0.0)]), Some(f64::INFINITY));
        assert_eq!(computed("rule", divide, &[double(1.0), weak(0.0)]), Some(f64::INFINITY));
        for kind in ["op", "operator", "numpy"] {
            assert_eq!(computed(kind, divide, &[double(1.0), weak(0.0)]), None);
            assert_eq!(computed(kind, divide, &[double(1.0), weak(2.0)]), Some(0.5));
        }
        assert_eq!(computed("numpy", divide, &[weak(1.0), weak(2.0)]), None);
    }

    #[test]
    fn other_arguments_or_kinds_of_functions_have_no_result() {
        assert!(ScalarOp::new("method", Elementwise::Add).is_none());
        for kind in KINDS {
            assert_eq!(computed(kind, Elementwise::Add, &[Scalar::f64(1.0)]), None);
            let op = ScalarOp::new(kind, Elementwise::Add).unwrap();
            assert!(op.in_run(&[Precision::F64]).is_none());
            let call = op.in_run(&[Precision::F64, Precision::F32]).unwrap();
            assert_eq!(call.precision, Precision::F64);
        }
    }

    #[test]
    fn ops_that_numpy_computes_otherwise_are_left_to_it() {
        for op in Elementwise::ALL {
            let scalars = vec![Scalar::f64(0.5); op.arity()];
            let standard = ScalarOp::of_standard(*op).compute(&scalars);
            assert_eq!(standard, ScalarOp::new("op", *op).unwrap().compute(&scalars));
            let expected = op.on_scalars(&scalars);
            let is_here =
                op.is_computed_in_core(false) && (!op.has(Attribute::Exact) || op.is_quiet(expected, [0.5; 3]));
            assert_eq!(
                standard.map(|result| result.number.to_bits()),
                is_here.then_some(expected.number.to_bits()),
                "{op:?}"
            );
        }
    }
}
