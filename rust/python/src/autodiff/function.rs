//! Ops as Python functions: `record`, by name, and a `Function` for each elementwise op.

use oxigrad_core::op::{Elementwise, Op};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::elementwise::op_named;
use crate::autodiff::descriptions::description;
use crate::autodiff::record::record;

type Object<'py> = Bound<'py, PyAny>;

/// Computes an op on arrays, numbers and variables, by name: the entry point for the Python layer.
#[pyfunction]
#[pyo3(name = "record", signature = (name, args, named = None))]
pub fn record_named<'py>(
    name: &str,
    args: Vec<Object<'py>>,
    named: Option<Bound<'py, PyDict>>,
) -> PyResult<Object<'py>> {
    let Some(first) = args.first() else {
        return Err(PyTypeError::new_err(format!("{name} needs at least one argument")));
    };
    let op = op_named(name)?;
    match arity(op) {
        Some(arity) if arity != args.len() => {
            Err(PyTypeError::new_err(format!("{name} takes {arity} arrays, got {}", args.len())))
        }
        _ => record(first.py(), op, &args, named.as_ref()),
    }
}

// An elementwise op as a function of arrays, numbers and variables. (Without a docstring of the class, which would hide
// those of its instances.)
#[pyclass(frozen, module = "oxigrad.xp")]
pub struct Function(Elementwise);

#[pymethods]
impl Function {
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Object<'py>> {
        let arity = self.0.arity();
        if args.len() != arity {
            let (name, given) = (self.0.name(), args.len());
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
        let names: &[&str] = match self.0.arity() {
            1 => &["x"],
            2 => &["x1", "x2"],
            _ if self.0 == Elementwise::Where => &["condition", "x1", "x2"],
            _ => &["x1", "x2", "x3"],
        };
        let inspect = py.import("inspect")?;
        let class = inspect.getattr("Parameter")?;
        let kind = class.getattr("POSITIONAL_ONLY")?;
        let parameters: PyResult<Vec<_>> = names.iter().map(|name| class.call1((*name, &kind))).collect();
        inspect.getattr("Signature")?.call1((parameters?,))
    }

    /// Pickled by its name, as functions are.
    fn __reduce__(&self) -> &'static str {
        self.0.name()
    }

    #[getter]
    fn __doc__(&self) -> String {
        format!("{} Recorded on the tape of its arguments.", description(self.0))
    }

    fn __repr__(&self) -> String {
        format!("<oxigrad.xp.{}>", self.0.name())
    }
}

fn arity(op: Op) -> Option<usize> {
    match op {
        Op::Elementwise(op) => Some(op.arity()),
        Op::Structured(op) => op.arity(),
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
    Op::all().map(|op| (op.name(), arity(op))).collect()
}
