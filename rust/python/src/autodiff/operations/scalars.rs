//! Recording of ops on scalars: numbers of Python, and scalars and 0-d arrays of NumPy.

use oxigrad_core::autodiff::tape::{Id, Value as _};
use oxigrad_core::op::{Elementwise, Op, ResultKind};
use oxigrad_core::scalar::{Precision, Scalar, promoted};

use crate::arrays::compute::elementwise::on_numpy_scalars;
use crate::arrays::memory::contiguous::{element_of, scalar_of};
use crate::arrays::value::{Value, host_number};
use crate::autodiff::graph::tape::Tape;
use crate::autodiff::graph::variable::Variable;
use crate::callbacks;
use crate::prelude::*;

/// An operand of an op on scalars.
pub struct ScalarOperand<'a, 'py> {
    /// The entry, if the operand is a variable of the tape.
    id: Option<Id>,
    scalar: Scalar,
    /// The array without dimensions that the scalar was read from: the tape keeps it, as it keeps all arrays.
    array: Option<&'a Object<'py>>,
}

impl<'a, 'py> ScalarOperand<'a, 'py> {
    /// The operand as a scalar; `None` if it is anything else, or changed in place.
    #[inline]
    pub fn of(tape: &Bound<'py, Tape>, arg: &'a Object<'py>) -> Option<Self> {
        if let Ok(variable) = arg.cast_exact::<Variable>() {
            return Self::of_variable(tape, variable);
        }
        if let Some(number) = host_number(arg) {
            return Some(Self { id: None, scalar: Scalar::weak(number), array: None });
        }
        if let Some(scalar) = scalar_of(arg) {
            return Some(Self { id: None, scalar, array: None });
        }
        Some(Self { id: None, scalar: element_of(arg)?, array: Some(arg) })
    }

    /// The same of a variable.
    #[inline]
    pub fn of_variable(tape: &Bound<'py, Tape>, variable: &'a Bound<'py, Variable>) -> Option<Self> {
        let own = variable.get();
        if !own.tape.is(tape) || !own.is_as_made() {
            return None;
        }
        let id = Some(own.id);
        if let Value::Object(array) = &own.value {
            let array = array.bind(variable.py());
            return Some(Self { id, scalar: element_of(array)?, array: Some(array) });
        }
        Some(Self { id, scalar: own.value.own_scalar()?, array: None })
    }
}

/// Records an op on scalars; `None` if an argument is not a scalar.
pub fn record_if_scalars<'py>(
    tape: &Bound<'py, Tape>,
    op: Elementwise,
    args: &[Object<'py>],
) -> PyResult<Option<Object<'py>>> {
    let operand = |arg| ScalarOperand::of(tape, arg);
    match args {
        [a] => operand(a).map_or(Ok(None), |a| record_scalars(tape, op, &[a])),
        [a, b] => operand(a).zip(operand(b)).map_or(Ok(None), |(a, b)| record_scalars(tape, op, &[a, b])),
        _ => Ok(None),
    }
}

/// Appends an op on scalars: the fast path for scalar code. `None` if the op has to take the general path.
#[inline]
pub fn record_scalars<'py, const N: usize>(
    tape: &Bound<'py, Tape>,
    op: Elementwise,
    operands: &[ScalarOperand<'_, 'py>; N],
) -> PyResult<Option<Object<'py>>> {
    let is_plain = op.kind() != ResultKind::Smooth || operands.iter().all(|operand| operand.id.is_none());
    let is_checked = tape.get().check && operands.iter().any(|operand| operand.array.is_some());
    if is_plain || is_checked {
        return Ok(None);
    }
    let Some(result) = on_any_scalars(op, operands.each_ref().map(|operand| operand.scalar)) else { return Ok(None) };
    let id = {
        let core = &mut tape.get().lock().tape;
        let ids = operands.each_ref().map(|operand| {
            let kept = || operand.array.map_or_else(|| Value::from_scalar(operand.scalar), Value::new);
            match operand.id {
                Some(id) if operand.array.is_some() && !core.keeps(id) => {
                    core.keep(id, kept());
                    id
                }
                Some(id) => id,
                None => core.constant(kept()),
            }
        });
        core.push(Op::Elementwise(op), &ids, None, Value::from_scalar(result))
    };
    recorded(tape, Op::Elementwise(op), Variable::new(tape, id, Value::from_scalar(result))).map(Some)
}

/// An op on scalars of the host language or of NumPy; `None` if NumPy computes it.
#[inline]
fn on_any_scalars<const N: usize>(op: Elementwise, scalars: [Scalar; N]) -> Option<Scalar> {
    if promoted(&scalars) == Precision::Weak { Some(op.on_scalars(&scalars)) } else { on_numpy_scalars(op, &scalars) }
}

/// Appends an op on two floats of Python, or on one.
#[inline]
pub fn record_numbers<'py, const N: usize>(
    tape: &Bound<'py, Tape>,
    op: Elementwise,
    operands: [(Option<Id>, f64); N],
) -> PyResult<Object<'py>> {
    let mut numbers = [0.0; 3];
    for (number, operand) in numbers.iter_mut().zip(&operands) {
        *number = operand.1;
    }
    let result = op.on_numbers(numbers);
    let id = {
        let core = &mut tape.get().lock().tape;
        let ids = operands.map(|(id, number)| id.unwrap_or_else(|| core.constant(Value::Number(number))));
        core.push(Op::Elementwise(op), &ids, None, Value::Number(result))
    };
    recorded(tape, Op::Elementwise(op), Variable::new(tape, id, Value::Number(result)))
}

/// The variable of a new entry, as a Python object; on a tape for debugging its value is searched for NaN first.
#[inline]
pub fn recorded<'py>(tape: &Bound<'py, Tape>, op: Op, variable: Variable) -> PyResult<Object<'py>> {
    let id = variable.id;
    let variable = Bound::new(tape.py(), variable)?.into_any();
    if tape.get().debug_nans {
        search(tape, id, op, &variable)?;
    }
    Ok(variable)
}

#[cold]
fn search<'py>(tape: &Bound<'py, Tape>, id: Id, op: Op, variable: &Object<'py>) -> PyResult<()> {
    let py = tape.py();
    callbacks::recorded(py, (tape, id, op.name(), variable)).map(|_| ())
}
