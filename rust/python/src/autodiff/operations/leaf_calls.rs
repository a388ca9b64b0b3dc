//! Calls of functions with a rule of the user's, of which each argument and the value is one leaf: numbers of Python and arrays of NumPy.
//! Their entries are those of any other call (`function_calls.py`), which also takes over where anything else is met.

use oxigrad_core::autodiff::tape::Id;
use oxigrad_core::op::{Op, Structured};
use pyo3::gc::PyVisit;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};
use pyo3::{PyTraverseError, intern};
use smallvec::SmallVec;

use crate::arrays::compute::numpy_functions::lent;
use crate::arrays::memory::contiguous::{is_float_array, scalar_of};
use crate::arrays::memory::numpy::Numpy;
use crate::arrays::value::Value;
use crate::autodiff::graph::variable::{NO_ENTRY, Variable};
use crate::autodiff::operations::record::append;
use crate::prelude::*;

/// A call in the attributes of its entry.
///
/// ``pull(g, y, args, named, at, residuals)`` returns the cotangents of the arguments at the positions ``at`` and None for others.
/// A tuple in its place has a rule of tangents for each argument, or None for zeros: ``rule((t, y, *args), named)`` is linear in ``t``, and transposed.
/// ``expand(args, named, hole, y, residuals)`` makes the call of any leaves, with ``hole`` in the place of each variable:
/// an object with methods ``function``, ``pull``, ``push``, ``fitted`` and ``seed``, and a ``name``.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct LeafCall {
    pub pull: Py<PyAny>,
    expand: Py<PyAny>,
    pub args: Py<PyTuple>,
    pub named: Py<PyDict>,
    pub at: SmallVec<[usize; 4]>,
    y: Py<PyAny>,
    pub residuals: Option<Py<PyAny>>,
}

#[pymethods]
impl LeafCall {
    /// The results for these values of the variables.
    #[pyo3(signature = (*values))]
    fn function<'py>(&self, values: &Bound<'py, PyTuple>) -> PyResult<Object<'py>> {
        self.expanded(values.py())?.call_method1(intern!(values.py(), "function"), values)
    }

    /// The cotangents of the variables.
    fn __call__<'py>(&self, g: Object<'py>, y: Object<'py>, values: Object<'py>) -> PyResult<Object<'py>> {
        self.expanded(g.py())?.call_method1(intern!(g.py(), "pull"), (&g, y, values))
    }

    /// The tangents of the results.
    fn push<'py>(&self, values: Object<'py>, tangents: Object<'py>) -> PyResult<Object<'py>> {
        self.expanded(values.py())?.call_method1(intern!(values.py(), "push"), (&values, tangents))
    }

    /// The name of the function, for errors.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        self.expanded(py)?.getattr(intern!(py, "name"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        [&self.pull, &self.expand, &self.y].into_iter().try_for_each(|object| visit.call(object))?;
        visit.call(&self.args)?;
        visit.call(&self.named)?;
        self.residuals.iter().try_for_each(|residuals| visit.call(residuals))
    }
}

impl LeafCall {
    pub fn expanded<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        self.expand.bind(py).call1((&self.args, &self.named, &self.expand, &self.y, self.residuals.as_ref()))
    }
}

/// Calls a function ``f`` with a rule of the user's.
///
/// ``forward``, where given, is called in place of ``f`` on variables: it returns the value and residuals. ``pull`` and ``expand``
/// are as in [`LeafCall`]. ``whole(args, named, outcome)`` is the call of arguments of any kind; ``outcome`` is empty, or
/// holds the result of ``f`` or ``forward`` where it was called. Arrays of variables are read-only in these functions.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "what a definition knows, and the arguments")]
pub fn call_leaves<'py>(
    f: &Object<'py>,
    forward: &Object<'py>,
    pull: &Object<'py>,
    pushes: bool,
    whole: &Object<'py>,
    expand: &Object<'py>,
    args: &Bound<'py, PyTuple>,
    named: &Bound<'py, PyDict>,
) -> PyResult<Object<'py>> {
    let py = args.py();
    let Some(variables) = variables_of(args, named, pull)? else {
        return whole.call1((args, named, PyTuple::empty(py)));
    };
    let keywords = (!named.is_empty()).then_some(named);
    let Some((_, first, _)) = variables.first() else { return f.call(args, keywords) };
    let tape = first.get().tape.bind(py).clone();
    let mut values: SmallVec<[Object<'py>; 4]> = args.iter().collect();
    let mut template = values.clone();
    for (at, _, (_, value)) in &variables {
        values[*at] = lent(&value.object(py))?;
        template[*at] = expand.clone();
    }
    let called = if forward.is_none() { f } else { forward }.call(PyTuple::new(py, values)?, keywords)?;
    let (result, residuals) = match (forward.is_none(), called.cast_exact::<PyTuple>()) {
        (true, _) => (called.clone(), None),
        (false, Ok(pair)) if pair.len() == 2 => (pair.get_item(0)?, Some(pair.get_item(1)?.unbind())),
        _ => return whole.call1((args, named, (called,))),
    };
    if !is_float_leaf(&result) {
        return whole.call1((args, named, (called,)));
    }
    let call = LeafCall {
        pull: pull.clone().unbind(),
        expand: expand.clone().unbind(),
        args: PyTuple::new(py, template)?.unbind(),
        named: named.clone().unbind(),
        at: variables.iter().map(|(at, _, _)| *at).collect(),
        y: result.clone().unbind(),
        residuals,
    };
    let call = Bound::new(py, call)?;
    let attributes = PyDict::new(py);
    attributes.set_item(intern!(py, "function"), call.getattr(intern!(py, "function"))?)?;
    attributes.set_item(intern!(py, "pull"), &call)?;
    let push = if pushes { call.getattr(intern!(py, "push"))? } else { py.None().into_bound(py) };
    attributes.set_item(intern!(py, "push"), push)?;
    let operands = variables.into_iter().map(|(_, _, (id, value))| (Some(id), value)).collect();
    let results = PyTuple::new(py, [&result])?.into_any();
    let results = append(&tape, Op::Structured(Structured::Call), operands, Some(&attributes), results, false)?;
    let operand = std::iter::once(results.cast_exact::<Variable>()?.get().last(py));
    let operand = operand.map(|(id, value)| (Some(id), value)).collect();
    append(&tape, Op::Structured(Structured::Item), operand, Some(first_item(py)?), result, false)
}

type Operand<'py> = (usize, Bound<'py, Variable>, (Id, Value));

/// The variables among the arguments, all on one tape, with their entries; `None` where something is no leaf of Python's or NumPy's.
fn variables_of<'py>(
    args: &Bound<'py, PyTuple>,
    named: &Bound<'py, PyDict>,
    pull: &Object<'py>,
) -> PyResult<Option<SmallVec<[Operand<'py>; 4]>>> {
    let py = args.py();
    if !named.values().iter().all(|value| is_plain_leaf(&value)) {
        return Ok(None);
    }
    let mut variables: SmallVec<[Operand<'py>; 4]> = SmallVec::new();
    for (at, arg) in args.iter().enumerate() {
        let Ok(variable) = arg.cast_exact::<Variable>() else {
            if is_plain_leaf(&arg) {
                continue;
            }
            return Ok(None);
        };
        let (own, tape) = (variable.get(), variable.get().tape.get());
        let is_alone = variables.first().is_none_or(|(_, first, _)| first.get().tape.is(&own.tape));
        if !is_alone || tape.symbolic || tape.check || own.is_untracked() || tape.check_recording(own.id).is_err() {
            return Ok(None);
        }
        let (id, value) = own.current(py)?;
        if id == NO_ENTRY || !is_float_value(py, &value) {
            return Ok(None);
        }
        variables.push((at, variable.clone(), (id, value)));
    }
    Ok((variables.is_empty() || !pull.is_none()).then_some(variables))
}

/// Whether a value is a number of Python's or NumPy's, a text, None or an array of NumPy's: a leaf that is not traced.
fn is_plain_leaf(value: &Object<'_>) -> bool {
    value.is_none()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyString>()
        || Numpy::get(value.py()).is_plain_array(value)
        || scalar_of(value).is_some()
}

/// Whether a value is a real floating-point number, or an array of NumPy's of these.
pub fn is_float_leaf(value: &Object<'_>) -> bool {
    value.is_exact_instance_of::<PyFloat>() || scalar_of(value).is_some() || is_float_array(value)
}

fn is_float_value(py: Python<'_>, value: &Value) -> bool {
    value.is_scalar() || matches!(value, Value::Object(object) if is_float_array(object.bind(py)))
}

/// The attributes of the first result of a call.
fn first_item(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static ATTRIBUTES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let attributes = ATTRIBUTES.get_or_try_init(py, || {
        let attributes = PyDict::new(py);
        attributes.set_item("index", 0)?;
        Ok::<_, PyErr>(attributes.unbind())
    })?;
    Ok(attributes.bind(py))
}
