//! The arguments of `Stepper` with named fields: parameters in host memory, and the writes of a step; and its answer to
//! arrays that do not fit.

use pyo3::exceptions::PyBaseException;
use pyo3::gc::PyVisit;

use super::launches::{Call, Launches};
use crate::prelude::*;
use crate::tree::KeyPath;

/// A slot with its name.
pub(super) type Named = (String, Py<PyAny>);

/// A parameter in host memory: an argument of `Stepper.prepare`.
///
/// `slots` are arrays by name, codes as tuples of the codes, the scales and, of four bits, the shape; `numbers` are slots of
/// one number.
/// Of a slice, `first` is the index of its first element in the parameter, and `whole` the number of elements of the parameter.
/// `program` and `scalar_set` are the indices of the program of a step that updates the parameter, and of its set of
/// scalars.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct HostParameter {
    pub(super) path: String,
    pub(super) position: u64,
    pub(super) array: Py<PyAny>,
    pub(super) slots: Vec<Named>,
    pub(super) numbers: Vec<Named>,
    pub(super) catches_up: bool,
    pub(super) stochastic: bool,
    pub(super) program: usize,
    pub(super) scalar_set: usize,
    pub(super) first: usize,
    pub(super) whole: Option<usize>,
}

#[pymethods]
impl HostParameter {
    #[new]
    #[pyo3(signature = (*, path, position, array, slots, numbers, catches_up, stochastic, program, scalar_set, first=0, whole=None))]
    #[expect(clippy::too_many_arguments, reason = "the fields, by keyword")]
    fn new(
        path: String,
        position: u64,
        array: Py<PyAny>,
        slots: Vec<Named>,
        numbers: Vec<Named>,
        catches_up: bool,
        stochastic: bool,
        program: usize,
        scalar_set: usize,
        first: usize,
        whole: Option<usize>,
    ) -> Self {
        Self { path, position, array, slots, numbers, catches_up, stochastic, program, scalar_set, first, whole }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        visit.call(&self.array)?;
        self.slots.iter().chain(&self.numbers).try_for_each(|(_, array)| visit.call(array))
    }
}

/// The writes of a step besides the update in host memory: `replacements` of parts of the model by key path,
/// `assignments` of items of dicts and arrays, as (holder, key, value), `copies` of arrays, as (from, to), and `launches`
/// of kernels on devices, which write to the memory of `launched` arrays.
#[pyclass(frozen, module = "oxigrad._core")]
#[derive(Default)]
pub struct Writes {
    pub(super) replacements: Vec<(KeyPath, Py<PyAny>)>,
    pub(super) assignments: Vec<(Py<PyAny>, Py<PyAny>, Py<PyAny>)>,
    pub(super) copies: Vec<(Py<PyAny>, Py<PyAny>)>,
    pub(super) launches: Option<Launches>,
}

#[pymethods]
impl Writes {
    #[new]
    #[pyo3(signature = (*, replacements=Vec::new(), assignments=Vec::new(), copies=Vec::new(), launches=None, launched=Vec::new()))]
    fn new(
        py: Python<'_>,
        replacements: Vec<(KeyPath, Py<PyAny>)>,
        assignments: Vec<(Py<PyAny>, Py<PyAny>, Py<PyAny>)>,
        copies: Vec<(Py<PyAny>, Py<PyAny>)>,
        launches: Option<LaunchesOf>,
        launched: Vec<Py<PyAny>>,
    ) -> PyResult<Self> {
        let launches = launches.map(|(calls, fail)| Launches::new(py, calls, fail, launched)).transpose()?;
        Ok(Self { replacements, assignments, copies, launches })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        self.replacements.iter().try_for_each(|(_, value)| visit.call(value))?;
        self.assignments
            .iter()
            .try_for_each(|(holder, key, value)| [holder, key, value].into_iter().try_for_each(|x| visit.call(x)))?;
        self.copies.iter().try_for_each(|(from, to)| visit.call(from).and_then(|()| visit.call(to)))?;
        self.launches.iter().try_for_each(|launches| launches.traverse(&visit))
    }
}

/// The answer of a step that was not taken: its arrays do not fit the prepared parameters. Nothing was written.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Misfit(Py<PyBaseException>);

impl Misfit {
    /// The answer for an error of the checks; any other error, such as an interrupt, is returned.
    pub(super) fn of(py: Python<'_>, error: PyErr) -> PyResult<Self> {
        let is_misfit = error.is_instance_of::<ArrayMemoryError>(py)
            || error.is_instance_of::<AliasError>(py)
            || error.is_instance_of::<DtypeError>(py)
            || error.is_instance_of::<ShapeError>(py)
            || error.is_instance_of::<StructureError>(py);
        if is_misfit { Ok(Self(error.into_value(py))) } else { Err(error) }
    }
}

#[pymethods]
impl Misfit {
    /// The reason, as the error to raise where nothing else fits.
    #[getter]
    fn error<'py>(&self, py: Python<'py>) -> &Bound<'py, PyBaseException> {
        self.0.bind(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        visit.call(&self.0)
    }
}

/// The calls of launches, and the function that raises the error of one: see `Launches`.
type LaunchesOf = (Vec<Call>, Py<PyAny>);
