//! The operators of variables: scalars first, then the general case of `record`.

use oxigrad_core::autodiff::tape::Id;
use oxigrad_core::op::{Elementwise, Op, Structured};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFloat, PyInt, PyString};

use crate::arrays::compute::numpy_functions::is_array;
use crate::arrays::value::{Value, host_number};
use crate::autodiff::graph::tape::Tape;
use crate::autodiff::graph::variable::Variable;
use crate::autodiff::operations::evaluate::{by_operator, of_shapes};
use crate::autodiff::operations::foreign::{is_plain_operand, operator_with_foreign};
use crate::autodiff::operations::indexed_assignment;
use crate::autodiff::operations::record::{record, record_call};
use crate::autodiff::operations::scalars::{ScalarOperand, record_numbers, record_scalars};
use crate::callbacks;
use crate::prelude::*;

/// A binary operator; `reflected` says that `slf` is the right operand.
#[inline]
pub fn binary<'py>(
    slf: &Bound<'py, Variable>,
    other: &Object<'py>,
    op: Elementwise,
    reflected: bool,
) -> PyResult<Object<'py>> {
    let (this, tape) = (slf.get(), slf.get().tape.bind(slf.py()));
    if let Value::Number(a) = this.value
        && let Some(operand) = number_operand(tape, other)
        && is_recording(tape, this)?
    {
        let mine = (Some(this.id), a);
        return record_numbers(tape, op, if reflected { [operand, mine] } else { [mine, operand] });
    }
    if let Some(mine) = ScalarOperand::of_variable(tape, slf)
        && let Some(other) = ScalarOperand::of(tape, other)
        && is_recording(tape, this)?
    {
        let operands = if reflected { [other, mine] } else { [mine, other] };
        if let Some(variable) = record_scalars(tape, op, &operands)? {
            return Ok(variable);
        }
    }
    if defers(other)? {
        return Ok(slf.py().NotImplemented().into_bound(slf.py()));
    }
    if !is_plain_operand(other) {
        let args = if reflected { [other, slf.as_any()] } else { [slf.as_any(), other] };
        if let Some(result) = operator_with_foreign(op, args)? {
            return Ok(result);
        }
    }
    let (py, mine, other) = (slf.py(), slf.as_any().clone(), other.clone());
    let args = if reflected { [other, mine] } else { [mine, other] };
    let op = Op::Elementwise(op);
    record_call(py, op, &args, |args| by_operator(op, args).unwrap_or_else(|| record(py, op, args, None)))
}

/// Whether an operation is recorded; not after the end of a tape whose variables then act as values. Of other tapes, an error.
#[inline]
fn is_recording(tape: &Bound<'_, Tape>, variable: &Variable) -> PyResult<bool> {
    match tape.get().check_recording(variable.id) {
        Err(_) if tape.get().is_detached() => Ok(false),
        checked => checked.map(|()| true),
    }
}

/// Whether a class asks arithmetic to leave its objects to their own operators, by NumPy's `__array_ufunc__ = None`.
fn defers(operand: &Object<'_>) -> PyResult<bool> {
    // A missing attribute is looked up by raising and dropping an error: numbers are spared it.
    let is_plain = operand.is_exact_instance_of::<Variable>()
        || operand.is_exact_instance_of::<PyFloat>()
        || operand.is_exact_instance_of::<PyInt>()
        || is_array(operand);
    Ok(!is_plain
        && operand
            .get_type()
            .getattr_opt(intern!(operand.py(), "__array_ufunc__"))?
            .is_some_and(|declared| declared.is_none()))
}

/// The operand as an entry of the tape or a constant, where it is a float of Python.
#[inline]
fn number_operand(tape: &Bound<'_, Tape>, operand: &Object<'_>) -> Option<(Option<Id>, f64)> {
    let Ok(variable) = operand.cast_exact::<Variable>() else {
        return host_number(operand).map(|number| (None, number));
    };
    match variable.get().value {
        Value::Number(number) if variable.get().tape.is(tape) => Some((Some(variable.get().id), number)),
        _ => None,
    }
}

/// A binary operator that changes the left operand in place.
pub fn augmented<'py>(slf: &Bound<'py, Variable>, value: &Object<'py>, op: Elementwise) -> PyResult<Object<'py>> {
    indexed_assignment::in_place(slf, binary(slf, value, op, false)?)
}

/// A binary operator whose result is a plain value.
pub fn plain_binary<'py>(
    slf: &Bound<'py, Variable>,
    other: &Object<'py>,
    op: Elementwise,
    reflected: bool,
) -> PyResult<Object<'py>> {
    let (mine, other) = (slf.as_any().clone(), other.clone());
    record(slf.py(), Op::Elementwise(op), &if reflected { [other, mine] } else { [mine, other] }, None)
}

#[inline]
pub fn unary<'py>(slf: &Bound<'py, Variable>, op: Elementwise) -> PyResult<Object<'py>> {
    let (this, tape) = (slf.get(), slf.get().tape.bind(slf.py()));
    if let Value::Number(a) = this.value
        && is_recording(tape, this)?
    {
        return record_numbers(tape, op, [(Some(this.id), a)]);
    }
    if let Some(mine) = ScalarOperand::of_variable(tape, slf)
        && is_recording(tape, this)?
        && let Some(variable) = record_scalars(tape, op, &[mine])?
    {
        return Ok(variable);
    }
    record(slf.py(), Op::Elementwise(op), &[slf.as_any().clone()], None)
}

/// The product of the operator, with the bits of the array library.
pub fn matmul<'py>(py: Python<'py>, args: [&Object<'py>; 2]) -> PyResult<Object<'py>> {
    record_call(py, Op::Structured(Structured::Matmul), &args.map(Clone::clone), |args| {
        args[0].matmul(&args[1]).map_err(|error| of_shapes(args, error))
    })
}

/// Raises `TypeError` for the third argument of `pow`, which is for integers.
pub fn refuse_modulo(modulo: Option<&Object<'_>>) -> PyResult<()> {
    match modulo.filter(|modulo| !modulo.is_none()) {
        Some(_) => Err(PyTypeError::new_err("pow of a variable takes no third argument")),
        None => Ok(()),
    }
}

/// The op of a NumPy ufunc; `None` if there is none.
pub fn ufunc_op(ufunc: &Object<'_>) -> PyResult<Option<Op>> {
    static BY_UFUNC: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let py = ufunc.py();
    let names = BY_UFUNC.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    let name = if let Some(name) = names.get_item(ufunc)? {
        name
    } else {
        let name = callbacks::op_of_ufunc(py, (ufunc,))?;
        // Ufuncs without an op are not cached: `frompyfunc` may make any number of them.
        if !name.is_none() {
            names.set_item(ufunc, &name)?;
        }
        name
    };
    Ok(if name.is_none() { None } else { Op::from_name(name.cast::<PyString>()?.to_str()?) })
}
