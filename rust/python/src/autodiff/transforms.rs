//! Transforms of Python functions: one call watches the arguments, calls the function and, for a gradient, replays the
//! tape.

use std::cell::Cell;
use std::collections::HashSet;

use pyo3::exceptions::PyTypeError;
use pyo3::gc::PyVisit;
use pyo3::types::{PyComplex, PyDict, PyFloat, PyInt, PyList, PyTuple, PyWeakrefMethods, PyWeakrefReference};
use smallvec::{SmallVec, smallvec};

use crate::arrays::memory::contiguous::{element_of, is_float_array};
use crate::arrays::value::Value;
use crate::autodiff::graph::batched::{is_float, is_number};
use crate::autodiff::graph::open_tapes::OpenTapes;
use crate::autodiff::graph::tape::Tape;
use crate::autodiff::graph::variable::{Variable, copied, is_of_number, snapshot};
use crate::autodiff::vjp_rules::{seed, watchable};
use crate::callbacks;
use crate::prelude::*;
use crate::tree::{Structure, flatten, is_inexact, type_info};

thread_local! {
    /// The array by which this thread computed a gradient last, and this gradient.
    static LAST: Cell<Option<(Py<PyWeakrefReference>, Py<PyWeakrefReference>)>> = const { Cell::new(None) };
}

/// Whether a parameter is the last gradient of this thread, and its gradient the array by which it was computed: the
/// two arguments of an update are in the wrong order.
#[pyfunction]
pub fn are_swapped(py: Python<'_>, parameter: &Object<'_>, gradient: &Object<'_>) -> bool {
    let Some((array, its_gradient)) = LAST.take() else { return false };
    let is = |weak: &Py<PyWeakrefReference>, object: &Object<'_>| {
        weak.bind(py).upgrade().is_some_and(|referent| referent.is(object))
    };
    let are_swapped = is(&array, gradient) && is(&its_gradient, parameter);
    LAST.set(Some((array, its_gradient)));
    are_swapped
}

/// The arguments of one call, on a tape: the inputs of the function, and the structure of its gradients.
///
/// The function gets copies of the variables, so that assignments to its arguments have no effect outside it.
#[pyclass(frozen, module = "oxigrad")]
pub struct Watched {
    /// A variable for each leaf that is differentiated, argument after argument.
    variables: Vec<Py<Variable>>,
    /// The arguments with variables in place of the leaves that are differentiated.
    trees: Vec<Py<PyAny>>,
    arguments: Vec<Argument>,
}

/// An argument: its leaves, and which of them are differentiated.
struct Argument {
    /// `None` of an argument that is a leaf itself.
    structure: Option<Py<Structure>>,
    leaves: SmallVec<[Py<PyAny>; 1]>,
    chosen: SmallVec<[usize; 1]>,
}

impl Watched {
    fn new<'py>(tape: &Bound<'py, Tape>, primals: &[Object<'py>]) -> PyResult<Self> {
        let mut watched = Self { variables: Vec::new(), trees: Vec::new(), arguments: Vec::new() };
        for (position, primal) in primals.iter().enumerate() {
            let leaf = if is_differentiable(primal)? { Some(primal.clone()) } else { as_floats(primal)? };
            let Some(leaf) = leaf else {
                watched.watch_tree(tape, position, primal)?;
                continue;
            };
            let inside = watched.watch(tape, &leaf)?;
            watched.trees.push(inside);
            let (leaves, chosen) = (smallvec![leaf.unbind()], smallvec![0]);
            watched.arguments.push(Argument { structure: None, leaves, chosen });
        }
        Ok(watched)
    }

    /// Watches a leaf; returns the object that the function gets in its place.
    fn watch<'py>(&mut self, tape: &Bound<'py, Tape>, leaf: &Object<'py>) -> PyResult<Py<PyAny>> {
        let variable = Tape::input(tape, watchable(leaf)?, None)?;
        let inside = copied(&variable)?.unbind();
        self.variables.push(variable.unbind());
        Ok(inside)
    }

    fn watch_tree<'py>(&mut self, tape: &Bound<'py, Tape>, position: usize, primal: &Object<'py>) -> PyResult<()> {
        let py = tape.py();
        let (mut leaves, structure) = flatten(py, primal)?;
        if primal.is_exact_instance_of::<PyInt>() {
            leaves = vec![py.get_type::<PyFloat>().call1((primal,))?.unbind()];
        }
        let mut chosen = SmallVec::new();
        for (i, leaf) in leaves.iter().enumerate() {
            if structure.shape.is_trainable(i) && is_differentiable(leaf.bind(py))? {
                chosen.push(i);
            }
        }
        if chosen.is_empty() {
            return Err(nothing_to_differentiate(position, primal, &leaves, &structure)?);
        }
        let mut inside: Vec<Py<PyAny>> = leaves.iter().map(|leaf| leaf.clone_ref(py)).collect();
        for i in &chosen {
            let place = || named(&format!("argument {position}"), &structure.shape.path(*i).to_string());
            inside[*i] = self.watch(tape, leaves[*i].bind(py)).map_err(|error| at(py, place, error))?;
        }
        self.trees.push(structure.unflatten(py, inside)?);
        let (structure, leaves) = (Some(Py::new(py, structure)?), SmallVec::from_vec(leaves));
        self.arguments.push(Argument { structure, leaves, chosen });
        Ok(())
    }

    /// Remembers the first array that is differentiated, and its gradient, by weak references.
    fn remember(&self, py: Python<'_>, gradients: &Bound<'_, PyList>) {
        let first = self.arguments.iter().find_map(|each| Some(each.leaves[*each.chosen.first()?].bind(py)));
        let weak = |object: &Object<'_>| {
            if object.is_exact_instance_of::<PyFloat>() || object.is_exact_instance_of::<Variable>() {
                None
            } else {
                PyWeakrefReference::new(object).ok().map(Bound::unbind)
            }
        };
        let gradient = || gradients.get_item(0).ok().as_ref().and_then(weak);
        let pair = first.and_then(weak).and_then(|array| Some((array, gradient()?)));
        LAST.set(pair);
    }

    /// The gradients of the variables in the structure of the arguments; other leaves are those of the arguments.
    fn trees_of<'py>(&self, py: Python<'py>, gradients: Bound<'py, PyList>) -> PyResult<Vec<Py<PyAny>>> {
        let gradients = self.without_duplicates(gradients)?;
        self.remember(py, &gradients);
        let mut remaining = gradients.iter().map(Bound::unbind);
        let mut next =
            || remaining.next().ok_or_else(|| PyTypeError::new_err("there are fewer gradients than variables"));
        let mut trees = Vec::with_capacity(self.arguments.len());
        for Argument { structure, leaves, chosen } in &self.arguments {
            let mut filled: SmallVec<[Py<PyAny>; 1]> = leaves.iter().map(|leaf| leaf.clone_ref(py)).collect();
            for i in chosen {
                filled[*i] = next()?;
            }
            trees.push(match structure {
                Some(structure) => structure.get().unflatten(py, filled)?,
                None => filled.remove(0),
            });
        }
        Ok(trees)
    }

    /// The primal of each variable.
    fn primals(&self) -> impl Iterator<Item = &Py<PyAny>> {
        self.arguments.iter().flat_map(|argument| argument.chosen.iter().map(|i| &argument.leaves[*i]))
    }

    /// The gradients, with copies in place of repeated arrays of one primal, which an optimizer would count once.
    fn without_duplicates<'py>(&self, gradients: Bound<'py, PyList>) -> PyResult<Bound<'py, PyList>> {
        let py = gradients.py();
        if self.variables.len() < 2 {
            return Ok(gradients);
        }
        let mut seen = HashSet::with_capacity(self.variables.len());
        if self.primals().all(|primal| seen.insert(primal.as_ptr())) {
            return Ok(gradients);
        }
        let primals = PyList::new(py, self.primals())?;
        Ok(callbacks::copy_duplicates(py, (primals, gradients))?.cast_into::<PyList>()?)
    }
}

#[pymethods]
impl Watched {
    /// A variable for each leaf that is differentiated, argument after argument.
    #[getter]
    fn variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.variables)
    }

    /// For each argument, its structure and the positions of the leaves that are differentiated; None for a leaf.
    #[getter]
    fn structures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let item = |argument: &Argument| Some((argument.structure.as_ref()?.clone_ref(py), argument.chosen.to_vec()));
        PyList::new(py, self.arguments.iter().map(item).collect::<Vec<_>>())
    }

    /// The gradients of the variables in the structure of the arguments, a tree for each argument.
    fn unflatten<'py>(&self, gradients: Object<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let py = gradients.py();
        let gradients = match gradients.cast_into::<PyList>() {
            Ok(list) => list,
            Err(error) => PyList::new(py, items(&error.into_inner())?)?,
        };
        PyTuple::new(py, self.trees_of(py, gradients)?)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        self.variables.iter().try_for_each(|variable| visit.call(variable))?;
        self.trees.iter().try_for_each(|tree| visit.call(tree))?;
        self.arguments.iter().try_for_each(|Argument { structure, leaves, .. }| {
            structure.iter().try_for_each(|structure| visit.call(structure))?;
            leaves.iter().try_for_each(|leaf| visit.call(leaf))
        })
    }
}

/// Calls a function of which some arguments are variables of the tape, and ends the tape.
#[pyfunction]
#[pyo3(signature = (tape, f, args, named, argnums))]
pub fn record_call<'py>(
    tape: &Bound<'py, Tape>,
    f: &Object<'py>,
    args: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
    argnums: &Object<'py>,
) -> PyResult<(Watched, Object<'py>)> {
    let positions = positions(argnums, args.len())?;
    let mut filled: SmallVec<[Object<'py>; 4]> = args.iter().collect();
    let primals: SmallVec<[Object<'py>; 4]> = positions.iter().map(|at| filled[*at].clone()).collect();
    let called = Watched::new(tape, &primals).and_then(|watched| {
        for (at, tree) in positions.iter().zip(&watched.trees) {
            filled[*at] = tree.bind(tape.py()).clone();
        }
        let _open = OpenTapes::with(tape);
        let result = f.call(PyTuple::new(tape.py(), filled)?, named)?;
        Ok((watched, result))
    });
    tape.get().end();
    called
}

/// The value of a function that returns a real scalar, and its gradient. `finish(tape, watched, result)` is called for
/// any other result, with `has_aux` for every one, and returns both.
///
/// With `begin`, `begin(watched, constants, value)` is called before the replay, and returns a function that is called with the
/// position of a variable among those of `watched` and its gradient, as soon as that is final. Where it returns true, the
/// variable's value may have changed in place, and 0.0 takes the place of the gradient. `constants` are the arrays on the
/// tape that are no variables, which the replay may read.
#[pyfunction]
#[pyo3(signature = (f, args, named, argnums, has_aux, finish, begin=None))]
pub fn value_and_grad<'py>(
    f: &Object<'py>,
    args: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
    argnums: &Object<'py>,
    has_aux: bool,
    finish: &Object<'py>,
    begin: Option<&Object<'py>>,
) -> PyResult<(Object<'py>, Object<'py>)> {
    let py = f.py();
    let tape = Bound::new(py, Tape::new(false))?;
    let (watched, result) = record_call(&tape, f, args, named, argnums)?;
    let target = result.cast_exact::<Variable>().ok().filter(|target| !has_aux && target.get().tape.is(&tape));
    let Some(target) = target else { return finish.call1((tape, watched, result))?.extract() };
    let (id, value) = (target.get().entry(py)?, target.get().current(py)?.1);
    let is_number = |value: &Value| matches!(value, Value::Object(value) if is_of_number(value.bind(py)));
    let is_nested = begin.is_none() && is_number(&value) && !target.get().is_constant();
    if !(is_real_scalar(&value, py) || is_nested) {
        return finish.call1((tape, watched, result))?.extract();
    }
    let seeds = vec![(id, seed(target, None)?)];
    let sources: Vec<Object<'py>> =
        watched.variables.iter().map(|variable| variable.bind(py).clone().into_any()).collect();
    let mut trees = match begin.filter(|_| !tape.get().debug_nans) {
        Some(begin) => {
            let watched = Bound::new(py, watched)?;
            let take = begin.call1((&watched, tape.get().constants(py), value.object(py)))?;
            watched.get().trees_of(py, Tape::pull_back(&tape, seeds, &sources, true, Some(take), true)?)?
        }
        None => watched.trees_of(py, Tape::pull_back(&tape, seeds, &sources, true, None, true)?)?,
    };
    let gradient = match trees.pop_if(|_| argnums.is_instance_of::<PyInt>()) {
        Some(only) => only.into_bound(py),
        None => PyTuple::new(py, trees)?.into_any(),
    };
    Ok((snapshot(&value.into_object(py))?, gradient))
}

/// Whether a value is known to be real and without dimensions.
fn is_real_scalar(value: &Value, py: Python<'_>) -> bool {
    match value {
        Value::Object(object) => element_of(object.bind(py)).is_some() || is_float(object.bind(py)),
        value => value.is_scalar(),
    }
}

/// Whether a value can have a derivative: a float, a complex number, an array of either's dtype, or a variable.
fn is_differentiable(value: &Object<'_>) -> PyResult<bool> {
    Ok(is_float_array(value)
        || value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyComplex>()
        || value.is_instance_of::<Variable>()
        || is_number(value)?
        || is_inexact(value)?)
}

/// An array of integers as one of floats; `None` for any other object.
fn as_floats<'py>(value: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    let is_array = || Ok::<_, PyErr>(value.getattr_opt("dtype")?.is_some() && type_info(&value.get_type())?.is_leaf());
    if value.is_exact_instance_of::<PyInt>() || !is_array()? {
        return Ok(None);
    }
    let floats = callbacks::as_floats(value.py(), (value,))?;
    Ok((!floats.is_none()).then_some(floats))
}

/// The arguments that `argnums` names, counted from the front.
fn positions(argnums: &Object<'_>, count: usize) -> PyResult<SmallVec<[usize; 4]>> {
    if argnums.is_exact_instance_of::<PyInt>() {
        return Ok(smallvec![position(argnums, argnums, count)?]);
    }
    if !argnums.is_instance_of::<PyTuple>() && !argnums.is_instance_of::<PyList>() {
        return Err(not_positions(argnums));
    }
    let items = items(argnums)?;
    let positions =
        items.iter().map(|item| position(item, argnums, count)).collect::<PyResult<SmallVec<[usize; 4]>>>()?;
    let is_repeated = |(at, position): (usize, &usize)| positions[..at].contains(position);
    if positions.iter().enumerate().any(is_repeated) {
        let text = argnums.str()?;
        return Err(PyTypeError::new_err(format!("argnums is {}: expected each argument once", text.to_cow()?)));
    }
    Ok(positions)
}

fn position(item: &Object<'_>, argnums: &Object<'_>, count: usize) -> PyResult<usize> {
    if !item.is_exact_instance_of::<PyInt>() {
        return Err(not_positions(argnums));
    }
    let found = item.extract::<isize>().ok().and_then(|position| {
        let position = if position < 0 { position.checked_add_unsigned(count)? } else { position };
        usize::try_from(position).ok().filter(|position| *position < count)
    });
    let Some(found) = found else {
        let text = argnums.str()?;
        let text = text.to_cow()?;
        return Err(PyTypeError::new_err(format!(
            "argnums is {text}: expected positions among {count} positional arguments"
        )));
    };
    Ok(found)
}

fn not_positions(argnums: &Object<'_>) -> PyErr {
    let named = |text: Bound<'_, pyo3::types::PyString>| text.to_string();
    match argnums.repr().map(named) {
        Ok(text) => PyTypeError::new_err(format!("argnums is {text}: expected an int, or a tuple of them")),
        Err(error) => error,
    }
}

/// The error for an argument without a leaf that has a derivative: it names the first leaves of a tree.
fn nothing_to_differentiate(
    position: usize,
    primal: &Object<'_>,
    leaves: &[Py<PyAny>],
    structure: &Structure,
) -> PyResult<PyErr> {
    const AT_MOST: usize = 3;
    let mut found = class_and_dtype(primal)?;
    let is_leaf = primal.is_none() || leaves.first().is_some_and(|leaf| leaf.bind(primal.py()).is(primal));
    if !is_leaf {
        let mut parts = vec![];
        for (i, leaf) in leaves.iter().take(AT_MOST).enumerate() {
            let class = class_and_dtype(leaf.bind(primal.py()))?;
            let excluded = if structure.shape.is_trainable(i) { "" } else { ", which is not trainable" };
            parts.push(format!("{}: {class}{excluded}", structure.shape.path(i)));
        }
        if leaves.len() > AT_MOST {
            parts.push(format!("{} more", leaves.len() - AT_MOST));
        }
        found =
            if parts.is_empty() { format!("an empty {found}") } else { format!("{found} with {}", parts.join(", ")) };
    }
    let hint = if is_object_with_attributes(primal)? {
        "; to be a tree, its class is made a dataclass or registered by ox.tree.register"
    } else {
        ""
    };
    Ok(DtypeError::new_err(format!(
        "argument {position} has nothing to differentiate: expected a float, an array of floating-point dtype or a tree \
         that has one, found {found}{hint}"
    )))
}

fn class_and_dtype(value: &Object<'_>) -> PyResult<String> {
    let class = value.get_type().name()?.to_cow()?.into_owned();
    match (value.getattr_opt("dtype")?, value.hasattr("shape")?) {
        (Some(dtype), true) => Ok(format!("{class} of dtype {}", dtype.str()?.to_cow()?)),
        _ => Ok(class),
    }
}

/// Whether a value is a leaf with attributes that may be meant for its children: an instance of a plain class.
fn is_object_with_attributes(value: &Object<'_>) -> PyResult<bool> {
    let has = |name| value.hasattr(name);
    Ok(has("__dict__")? && !value.is_callable() && !has("shape")? && !has("__dataclass_fields__")?)
}

/// The name of a leaf in errors: the argument, and the key path if it has one.
fn named(argument: &str, path: &str) -> String {
    if path.is_empty() { argument.to_owned() } else { format!("{argument}, {path}") }
}

/// A `DtypeError` with the name of the leaf as a prefix; any other error unchanged.
fn at(py: Python<'_>, place: impl Fn() -> String, error: PyErr) -> PyErr {
    if !error.is_instance_of::<DtypeError>(py) {
        return error;
    }
    DtypeError::new_err(format!("{}: {}", place(), error.value(py)))
}
