//! Evaluation of ops on plain values: numbers here, NumPy arrays by kernels, other arrays by their own library.

use oxigrad_core::op::{Elementwise, Op, Operator, ResultKind, Structured};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyAttributeError;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyTuple};
use smallvec::SmallVec;

use crate::arrays::compute::elementwise::{elementwise, function};
use crate::arrays::compute::numpy_functions::broadcast_to;
use crate::arrays::compute::products::matmul;
use crate::arrays::compute::reduce::reduce;
use crate::arrays::value::{Value, host_number};
use crate::autodiff::graph::batched::batched;
use crate::autodiff::graph::describe::describe;
use crate::callbacks;
use crate::class_cache::ByClass;
use crate::prelude::*;

/// Computes an op on plain values.
pub fn evaluate<'py>(
    py: Python<'py>,
    op: Op,
    args: &[Object<'py>],
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Object<'py>> {
    if let Op::Elementwise(op) = op {
        if let Some(result) = on_host_numbers(py, op, args) {
            return Ok(result);
        }
        let values: SmallVec<[Value; 3]> = args.iter().map(Value::of_argument).collect();
        if let Some((result, _)) = elementwise(py, op, values.iter())? {
            return Ok(result);
        }
        if let Some(result) = function(op, &values, args)? {
            return Ok(result);
        }
    }
    let by_core = match op {
        Op::Structured(Structured::BroadcastTo) => broadcast_to(&args[0], named)?,
        Op::Structured(Structured::Matmul) if args.len() == 2 => matmul(&args[0], &args[1])?,
        Op::Structured(op) => reduce(op, &args[0], named)?,
        Op::Elementwise(_) => None,
    };
    if let Some(result) = by_core {
        return Ok(result);
    }
    if let Some(result) = batched(py, None, op, args, named)? {
        return Ok(result);
    }
    if let Some(result) = by_operator(op, args) {
        return result.map_err(|error| match op {
            Op::Structured(Structured::Matmul) => of_shapes(args, error),
            _ => error,
        });
    }
    let sample = args.iter().find(|arg| host_number(arg).is_none()).unwrap_or(&args[0]);
    implementation(op, sample)?.call(PyTuple::new(py, args)?, named).map_err(|error| explained(op, args, error))
}

/// An `AttributeError` of an array library, for an argument that is not an array, as a `DtypeError` that names the op.
fn explained(op: Op, args: &[Object<'_>], error: PyErr) -> PyErr {
    let Some(py) = args.first().map(Bound::py).filter(|py| error.is_instance_of::<PyAttributeError>(*py)) else {
        return error;
    };
    let what: Vec<String> = match args.iter().map(describe).collect() {
        Ok(what) => what,
        Err(raised) => return raised,
    };
    let (name, what) = (op.name(), what.join(", "));
    let explained = DtypeError::new_err(format!("{name} of {what}: expected arrays of numbers, or numbers among them"));
    explained.set_cause(py, Some(error));
    explained
}

/// The error of shapes that do not fit in place of that of an array library.
pub fn of_shapes(args: &[Object<'_>], error: PyErr) -> PyErr {
    let Some(py) = args.first().map(Bound::py) else { return error };
    let checked = PyTuple::new(py, args).and_then(|args| callbacks::check_matmul(py, args));
    checked.err().unwrap_or(error)
}

fn on_host_numbers<'py>(py: Python<'py>, op: Elementwise, args: &[Object<'py>]) -> Option<Object<'py>> {
    let mut numbers = [0.0; 3];
    for (number, arg) in numbers.iter_mut().zip(args) {
        *number = host_number(arg)?;
    }
    let result = op.on_numbers(numbers);
    Some(match op.kind() {
        ResultKind::Truth => PyBool::new(py, result != 0.0).to_owned().into_any(),
        ResultKind::Smooth | ResultKind::Step => PyFloat::new(py, result).into_any(),
    })
}

/// Computes the op by Python's operator, if it has one: the fastest call of any array library.
pub fn by_operator<'py>(op: Op, args: &[Object<'py>]) -> Option<PyResult<Object<'py>>> {
    let operator = op.operator()?;
    let a = args.first()?;
    let b = args.get(1);
    let compare = |how| Some(a.rich_compare(b?, how));
    match operator {
        Operator::Add => Some(a.add(b?)),
        Operator::Subtract => Some(a.sub(b?)),
        Operator::Multiply => Some(a.mul(b?)),
        Operator::Divide => Some(a.div(b?)),
        Operator::Power => Some(a.pow(b?, a.py().None())),
        Operator::Remainder => Some(a.rem(b?)),
        Operator::FloorDivide => Some(a.floor_div(b?)),
        Operator::MatrixMultiply => Some(a.matmul(b?)),
        Operator::Negative => Some(a.neg()),
        Operator::Positive => Some(a.pos()),
        Operator::Abs => Some(a.abs()),
        Operator::Less => compare(CompareOp::Lt),
        Operator::LessEqual => compare(CompareOp::Le),
        Operator::Greater => compare(CompareOp::Gt),
        Operator::GreaterEqual => compare(CompareOp::Ge),
        Operator::Equal => compare(CompareOp::Eq),
        Operator::NotEqual => compare(CompareOp::Ne),
    }
}

/// The functions of array libraries for ops, by the class of the array.
static FUNCTIONS: ByClass<Py<PyList>> = ByClass::new();

/// Looks the functions of array libraries for ops up again.
#[pyfunction]
pub fn forget_functions() {
    FUNCTIONS.clear();
}

/// The array library's function for an op, looked up once for each type of array.
fn implementation<'py>(op: Op, sample: &Object<'py>) -> PyResult<Object<'py>> {
    let py = sample.py();
    let kind = sample.get_type();
    let functions = if let Some(functions) = FUNCTIONS.get(&kind, |functions| functions.clone_ref(py)) {
        functions.into_bound(py)
    } else {
        let functions = PyList::new(py, Op::all().map(|_| py.None()))?;
        FUNCTIONS.insert(&kind, functions.clone().unbind())?;
        functions
    };
    let known = functions.get_item(op.index())?;
    if !known.is_none() {
        return Ok(known);
    }
    let found = callbacks::implementation(py, (op.name(), sample))?;
    functions.set_item(op.index(), &found)?;
    Ok(found)
}
