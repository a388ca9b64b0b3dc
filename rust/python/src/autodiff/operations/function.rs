//! Ops as Python functions: `record`, by name, and a `Function` for each elementwise op.

use oxigrad_core::op::{Elementwise, Op};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::compute::elementwise::op_taking;
use crate::autodiff::operations::record::record;
use crate::autodiff::vjp_rules::arg_names;
use crate::callbacks;
use crate::prelude::*;

/// Computes an op on arrays, numbers and variables, by name: the entry point for the Python layer.
#[pyfunction]
#[pyo3(name = "record", signature = (name, args, named = None))]
pub fn record_named<'py>(
    py: Python<'py>,
    name: &str,
    args: Vec<Object<'py>>,
    named: Option<Bound<'py, PyDict>>,
) -> PyResult<Object<'py>> {
    record(py, op_taking(name, args.len())?, &args, named.as_ref())
}

// An elementwise op as a function of arrays, numbers and variables. (Without a docstring of the class, which would hide
// those of its instances.)
#[pyclass(frozen, module = "oxigrad.xp")]
pub struct Function(Elementwise);

#[pymethods]
impl Function {
    #[pyo3(signature = (*args, **named))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>, named: Option<&Bound<'py, PyDict>>) -> PyResult<Object<'py>> {
        let (arity, is_named) = (self.0.arity(), named.is_some_and(|named| !named.is_empty()));
        if args.len() != arity || is_named {
            let (name, given) = (self.0.name(), args.len());
            let ufunc = self.numpy_ufunc(args.py())?;
            if !ufunc.is_none() && given == arity {
                return ufunc.call(args, named);
            }
            if is_named {
                return Err(PyTypeError::new_err(format!("{name} takes no keyword arguments")));
            }
            return Err(PyTypeError::new_err(format!("{name} takes {arity} positional arguments, got {given}")));
        }
        let args: Vec<Object<'py>> = args.iter().collect();
        record(args[0].py(), Op::Elementwise(self.0), &args, None)
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.0.name()
    }

    #[getter]
    fn __qualname__(&self) -> &'static str {
        self.0.name()
    }

    /// The arguments, named as the standard names them, for `inspect.signature`.
    #[getter]
    fn __signature__<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let inspect = py.import("inspect")?;
        let class = inspect.getattr("Parameter")?;
        let kind = class.getattr("POSITIONAL_ONLY")?;
        let parameters: PyResult<Vec<_>> =
            arg_names(Op::Elementwise(self.0)).iter().map(|name| class.call1((*name, &kind))).collect();
        inspect.getattr("Signature")?.call1((parameters?,))
    }

    /// A method of NumPy's ufunc of this name, such as `outer`, which takes variables too.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Object<'py>> {
        if matches!(name, "accumulate" | "at" | "outer" | "reduce" | "reduceat") {
            let ufunc = self.numpy_ufunc(py)?;
            if !ufunc.is_none() {
                return ufunc.getattr(name);
            }
        }
        Err(PyAttributeError::new_err(format!("function {:?} has no attribute {name:?}", self.0.name())))
    }

    /// Pickled by its name, as functions are.
    fn __reduce__(&self) -> &'static str {
        self.0.name()
    }

    #[getter]
    fn __doc__<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let text = format!("{} Recorded on the tape of its arguments.", self.0.description());
        callbacks::documentation(py, (self.0.name(), text, arg_names(Op::Elementwise(self.0))))
    }

    fn __repr__(&self) -> String {
        format!("<oxigrad.xp.{}>", self.0.name())
    }
}

impl Function {
    /// NumPy's ufunc of this name; None where it has none.
    fn numpy_ufunc<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        callbacks::numpy_ufunc(py, (self.0.name(),))
    }
}

/// Every elementwise op as a function, in the order of the table.
#[pyfunction]
pub fn elementwise_functions() -> Vec<Function> {
    Elementwise::ALL.iter().map(|op| Function(*op)).collect()
}

/// The name of every op and how many array arguments it takes (none: any number), in the order of the table.
#[pyfunction]
pub fn ops() -> Vec<(&'static str, Option<usize>)> {
    Op::all().map(|op| (op.name(), op.arity())).collect()
}

/// The operators of Python that an elementwise op has, by their names in `operator`, each with the name of the op.
#[pyfunction]
pub fn operators() -> Vec<(&'static str, &'static str)> {
    let named = |op: &Elementwise| op.operator().map(|operator| (operator.name(), op.name()));
    Elementwise::ALL.iter().filter_map(named).collect()
}
