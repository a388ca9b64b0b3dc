//! Calls on scalars, numbers of Python and NumPy, which need no Python object.

use oxigrad_core::op::{Attribute, Elementwise, Operator, ResultKind};
use oxigrad_core::recording::{Condition, ScalarCall};
use oxigrad_core::scalar::{Precision, Scalar, promoted};
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::arrays::compute::elementwise::is_computed_here;
use crate::arrays::memory::contiguous::element_of;
use crate::arrays::value::{Value, host_number};

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

    /// Whether the result is True or False.
    pub fn is_truth(self) -> bool {
        self.op.kind() == ResultKind::Truth && self.caller != Caller::Rule
    }

    /// The condition under which the core has the result, of a precision; `None` where Python or NumPy always computes.
    pub fn condition(self, precision: Precision) -> Option<Condition> {
        let is_weak = precision == Precision::Weak;
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
            Caller::Op | Caller::Operator | Caller::Ufunc if self.is_truth() || !is_computed_here(self.op) => None,
            _ if self.op.has(Attribute::Exact) => Some(Condition::Quiet),
            _ => Some(Condition::None),
        }
    }

    /// The call in a run, of arguments of these precisions.
    pub fn in_run(self, precisions: &[Precision]) -> Option<ScalarCall> {
        let precision = precisions.iter().copied().max().filter(|_| precisions.len() == self.op.arity())?;
        Some(ScalarCall { op: self.op, condition: self.condition(precision)?, precision })
    }

    /// The result; `None` where Python or NumPy raises, warns, or may have other bits than the core.
    fn compute(self, scalars: &[Scalar]) -> Option<Scalar> {
        if scalars.len() != self.op.arity() {
            return None;
        }
        let mut numbers = [0.0; 3];
        for (number, scalar) in numbers.iter_mut().zip(scalars) {
            *number = scalar.number;
        }
        let condition = self.condition(promoted(scalars))?;
        let result = self.op.on_scalars(scalars);
        condition.holds(self.op, result, numbers).then_some(result)
    }

    /// The result on values, of which one at least is a float of Python or NumPy; `None` where the function has to be called.
    pub fn on_values(self, py: Python<'_>, values: &[&Value]) -> Option<Scalar> {
        if !values.iter().any(|value| value.is_scalar()) {
            return None;
        }
        let scalars = values.iter().map(|value| scalar_in(py, value)).collect::<Option<SmallVec<[Scalar; 3]>>>()?;
        self.compute(&scalars)
    }

    fn is_arithmetic(self) -> bool {
        matches!(
            self.op.operator(),
            Some(Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Negative)
        )
    }
}

/// The scalar of a value: a number, or an array of NumPy without dimensions.
#[inline]
pub fn scalar_in(py: Python<'_>, value: &Value) -> Option<Scalar> {
    match value {
        Value::Object(object) => {
            let object = object.bind(py);
            host_number(object).map(Scalar::weak).or_else(|| element_of(object))
        }
        _ => value.own_scalar(),
    }
}

/// The precision of this name: "float" is that of Python's numbers.
pub fn precision_named(name: &str) -> Option<Precision> {
    match name {
        "float" => Some(Precision::Weak),
        "<f4" => Some(Precision::F32),
        "<f8" => Some(Precision::F64),
        _ => None,
    }
}
