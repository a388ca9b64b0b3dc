//! Operands that are arrays of no array library: Python converts or refuses them, by class, before an op is computed.

use oxigrad_core::op::{Elementwise, Op, Structured};
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::arrays::compute::numpy_functions::is_array;
use crate::autodiff::graph::variable::Variable;
use crate::callbacks;
use crate::class_cache::ByClass;
use crate::prelude::*;

/// Whether an operand is a variable, an array of NumPy or a number of Python: most are, and take no further look.
#[inline]
pub fn is_plain_operand(operand: &Object<'_>) -> bool {
    operand.is_exact_instance_of::<Variable>()
        || is_array(operand)
        || operand.is_exact_instance_of::<PyFloat>()
        || operand.is_exact_instance_of::<PyInt>()
        || operand.is_exact_instance_of::<PyBool>()
}

pub fn is_list(operand: &Object<'_>) -> bool {
    operand.is_exact_instance_of::<PyList>() || operand.is_exact_instance_of::<PyTuple>()
}

/// Whether an operand is a list, a tuple, a string or None, none of which is an array.
pub fn is_no_array(operand: &Object<'_>) -> bool {
    is_list(operand) || operand.is_exact_instance_of::<PyString>() || operand.is_none()
}

/// Whether an operand is of a class that is neither an array of some library nor a number.
pub fn is_foreign(operand: &Object<'_>) -> PyResult<bool> {
    static FOREIGN: ByClass<bool> = ByClass::new();
    if is_plain_operand(operand) || is_no_array(operand) || !callbacks::are_installed(operand.py()) {
        return Ok(false);
    }
    let class = operand.get_type();
    if let Some(known) = FOREIGN.get(&class, |known| *known) {
        return Ok(known);
    }
    let found = callbacks::is_foreign(operand.py(), (operand,))?.is_truthy()?;
    FOREIGN.insert(&class, found)?;
    Ok(found)
}

/// An op with foreign operands; `None` where there is none, or where the op takes them as they are.
pub fn with_foreign<'py>(
    py: Python<'py>,
    op: Op,
    args: &[Object<'py>],
    named: Option<&Bound<'py, PyDict>>,
    is_operator: bool,
) -> PyResult<Option<Object<'py>>> {
    if matches!(op, Op::Structured(Structured::Call | Structured::Item)) {
        return Ok(None);
    }
    for arg in args {
        if is_foreign(arg)? {
            let result = callbacks::foreign(py, (op.name(), PyTuple::new(py, args)?, named, is_operator))?;
            let is_none = result.is(py.NotImplemented()) && !is_operator;
            return Ok((!is_none).then_some(result));
        }
    }
    Ok(None)
}

/// An operator of Python with a foreign operand; `None` where there is none.
pub fn operator_with_foreign<'py>(op: Elementwise, args: [&Object<'py>; 2]) -> PyResult<Option<Object<'py>>> {
    let py = args[0].py();
    with_foreign(py, Op::Elementwise(op), &args.map(Clone::clone), None, true)
}
