//! Guards of a recording, as a small program: places that a function reads, and what must be found there.

use std::sync::{Arc, Mutex};

use oxigrad_core::scalar::Scalar;
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyKeyError, PyLookupError, PyValueError};
use pyo3::gc::PyVisit;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFloatMethods, PyInt, PyString};

use crate::arrays::memory::contiguous::{Contiguous, element_of, scalar_of};
use crate::prelude::*;
use crate::recording::flat::Flat;

/// The number of a place, in the order in which places are read.
pub type Place = usize;

/// A place that a function reads.
enum Load {
    /// An object that the guards hold.
    Object(Py<PyAny>),
    /// An item, by its key: a variable in the namespace of a module.
    Item(Place, Py<PyAny>),
    /// An attribute: the contents of a cell.
    Attribute(Place, Py<PyString>),
    /// The leaves and the structure of a tree.
    Flat(Place),
}

/// The object that a place must hold.
enum Expected {
    /// This object.
    Same(Py<PyAny>),
    /// This object, or a value of the same type and bits.
    Equal(Py<PyAny>),
    /// The object of another place.
    Place(Place),
    /// A container of this length.
    Length(usize),
    /// Nothing.
    Absent,
}

/// An expectation of a place, which has a path in `why`.
struct Guard {
    path: String,
    place: Place,
    expected: Expected,
}

#[derive(Clone)]
enum Step {
    /// Reads the next place.
    Load,
    Guard(Arc<Guard>),
}

#[derive(Clone, Default)]
struct Program {
    loads: Vec<Arc<Load>>,
    steps: Vec<Step>,
}

impl Program {
    fn check_place(&self, place: Place) -> PyResult<()> {
        let count = self.loads.len();
        if place < count {
            return Ok(());
        }
        Err(PyIndexError::new_err(format!("found place {place}, expected one below {count}")))
    }
}

/// The value of a place.
pub enum Found<'py> {
    Absent,
    Object(Object<'py>),
    Flat(Box<Flat>),
}

/// The outcome of the guards: the values of all places; or, of the first guard that fails, the path, the expected value and the present one.
pub type Checked<'py> = Result<Vec<Found<'py>>, (String, Object<'py>, Object<'py>)>;

/// Places that a function reads, and what must be found there.
///
/// A place is a number, which methods give that state a place, and others take. `same` tells whether two values have one type and the same bits.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Guards {
    program: Mutex<Arc<Program>>,
    same: Py<PyAny>,
}

impl Guards {
    /// The program as it is now: a thread may add to it.
    fn program(&self) -> Arc<Program> {
        locked(&self.program).clone()
    }

    fn load(&self, load: Load) -> PyResult<Place> {
        let mut program = locked(&self.program);
        let program = Arc::make_mut(&mut program);
        load.of().map_or(Ok(()), |of| program.check_place(of))?;
        program.steps.push(Step::Load);
        program.loads.push(Arc::new(load));
        Ok(program.loads.len() - 1)
    }

    fn guard(&self, path: String, place: Place, expected: Expected) -> PyResult<()> {
        let mut program = locked(&self.program);
        let program = Arc::make_mut(&mut program);
        program.check_place(place)?;
        if let Expected::Place(other) = expected {
            program.check_place(other)?;
        }
        program.steps.push(Step::Guard(Arc::new(Guard { path, place, expected })));
        Ok(())
    }

    /// Reads all places, and compares what is found with what is expected.
    pub fn check<'py>(&self, py: Python<'py>) -> PyResult<Checked<'py>> {
        let program = self.program();
        let mut found: Vec<Found<'py>> = Vec::with_capacity(program.loads.len());
        for step in &program.steps {
            match step {
                Step::Load => {
                    let load = &program.loads[found.len()];
                    found.push(load.value(py, load.of().map(|of| &found[of]))?);
                }
                Step::Guard(guard) => {
                    let Guard { path, place, expected } = &**guard;
                    if !self.holds(py, expected, &found, *place)? {
                        let (old, mut new) = (expected.described(py)?, found[*place].described(py));
                        if matches!(expected, Expected::Length(_)) && !matches!(found[*place], Found::Absent) {
                            new = new.len()?.into_pyobject(py)?.into_any();
                        }
                        return Ok(Err((path.clone(), old, new)));
                    }
                }
            }
        }
        Ok(Ok(found))
    }

    /// Whether two values have one type and the same bits.
    pub fn are_same(&self, expected: &Object<'_>, found: &Object<'_>) -> PyResult<bool> {
        match is_equal(expected, found)? {
            Some(is_equal) => Ok(is_equal),
            None => self.same.bind(found.py()).call1((found, expected))?.is_truthy(),
        }
    }

    fn holds<'py>(&self, py: Python<'py>, expected: &Expected, found: &[Found<'py>], place: Place) -> PyResult<bool> {
        Ok(match (expected, &found[place]) {
            (Expected::Absent, Found::Absent) => true,
            (Expected::Same(expected), Found::Object(object)) => object.is(expected),
            (Expected::Equal(expected), Found::Object(object)) => self.are_same(expected.bind(py), object)?,
            (Expected::Place(other), Found::Object(object)) => {
                matches!(&found[*other], Found::Object(other) if other.is(object))
            }
            (Expected::Length(length), Found::Object(object)) => object.len()? == *length,
            _ => false,
        })
    }
}

#[pymethods]
impl Guards {
    #[new]
    fn new(same: Py<PyAny>) -> Self {
        Self { program: Mutex::default(), same }
    }

    /// The place of an object.
    fn object(&self, value: Py<PyAny>) -> PyResult<Place> {
        self.load(Load::Object(value))
    }

    /// The place of an item of what is in another place.
    fn item(&self, of: Place, key: Py<PyAny>) -> PyResult<Place> {
        self.load(Load::Item(of, key))
    }

    /// The place of an attribute.
    fn attribute(&self, of: Place, name: &Bound<'_, PyString>) -> PyResult<Place> {
        self.load(Load::Attribute(of, name.clone().unbind()))
    }

    /// The place of the leaves and of the structure of a tree.
    fn flat(&self, of: Place) -> PyResult<Place> {
        self.load(Load::Flat(of))
    }

    /// Expects an object; with `by_value`, or another one of the same type and bits.
    fn expect(&self, path: String, place: Place, value: Py<PyAny>, by_value: bool) -> PyResult<()> {
        self.guard(path, place, if by_value { Expected::Equal(value) } else { Expected::Same(value) })
    }

    /// Expects the object of another place.
    fn expect_place(&self, path: String, place: Place, other: Place) -> PyResult<()> {
        self.guard(path, place, Expected::Place(other))
    }

    /// Expects a container of a length.
    fn expect_length(&self, path: String, place: Place, length: usize) -> PyResult<()> {
        self.guard(path, place, Expected::Length(length))
    }

    /// Expects nothing.
    fn expect_nothing(&self, path: String, place: Place) -> PyResult<()> {
        self.guard(path, place, Expected::Absent)
    }

    /// The present value of a place; `KeyError` where there is none.
    fn read<'py>(&self, py: Python<'py>, place: Place) -> PyResult<Object<'py>> {
        let program = self.program();
        program.check_place(place)?;
        let (mut chain, mut at) = (Vec::new(), Some(place));
        while let Some(here) = at {
            chain.push(here);
            at = program.loads[here].of();
        }
        let mut found = Found::Absent;
        for here in chain.into_iter().rev() {
            found = program.loads[here].value(py, Some(&found))?;
        }
        match found {
            Found::Object(object) => Ok(object),
            Found::Flat(flat) => Ok(flat.objects(py)?.into_any()),
            Found::Absent => Err(PyKeyError::new_err("nothing is there")),
        }
    }

    /// The path, the expected and the present value of the first guard that fails; None where all hold.
    fn changed<'py>(&self, py: Python<'py>) -> PyResult<Option<(String, Object<'py>, Object<'py>)>> {
        Ok(self.check(py)?.err())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        visit.call(&self.same)?;
        // The lock is held by no thread that waits for the collector.
        let Ok(program) = self.program.try_lock() else { return Ok(()) };
        program.loads.iter().try_for_each(|load| match &**load {
            Load::Object(object) | Load::Item(_, object) => visit.call(object),
            Load::Attribute(..) | Load::Flat(_) => Ok(()),
        })?;
        program.steps.iter().try_for_each(|step| match step {
            Step::Load => Ok(()),
            Step::Guard(guard) => match &guard.expected {
                Expected::Same(object) | Expected::Equal(object) => visit.call(object),
                Expected::Place(_) | Expected::Length(_) | Expected::Absent => Ok(()),
            },
        })
    }
}

impl Load {
    /// The place that it reads from.
    const fn of(&self) -> Option<Place> {
        match self {
            Self::Object(_) => None,
            Self::Item(of, _) | Self::Attribute(of, _) | Self::Flat(of) => Some(*of),
        }
    }

    /// The value, given that of the place that it reads from.
    fn value<'py>(&self, py: Python<'py>, of: Option<&Found<'py>>) -> PyResult<Found<'py>> {
        let of = match (self, of) {
            (Self::Object(object), _) => return Ok(Found::Object(object.bind(py).clone())),
            (_, Some(Found::Object(of))) => of,
            _ => return Ok(Found::Absent),
        };
        let read = match self {
            Self::Item(..) if of.is_none() => return Ok(Found::Absent),
            Self::Item(_, key) => match of.cast_exact::<PyDict>() {
                Ok(dict) => return Ok(dict.get_item(key.bind(py))?.map_or(Found::Absent, Found::Object)),
                Err(_) => of.get_item(key.bind(py)).map(Found::Object),
            },
            Self::Attribute(_, name) => of.getattr(name.bind(py)).map(Found::Object),
            Self::Flat(_) => Flat::of(of).map(|flat| Found::Flat(Box::new(flat))),
            Self::Object(_) => return Ok(Found::Absent),
        };
        match read {
            Err(error) if is_missing(py, &error) => Ok(Found::Absent),
            read => read,
        }
    }
}

/// Whether an error says that nothing is in a place: a name is not defined, a cell is empty, a value is no tree.
fn is_missing(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyLookupError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyAttributeError>(py)
}

impl Expected {
    /// The value that `why` shows.
    fn described<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        Ok(match self {
            Self::Same(object) | Self::Equal(object) => object.bind(py).clone(),
            Self::Place(_) => PyBool::new(py, true).to_owned().into_any(),
            Self::Length(length) => length.into_pyobject(py)?.into_any(),
            Self::Absent => PyString::new(py, "nothing").into_any(),
        })
    }
}

impl<'py> Found<'py> {
    /// The value that `why` shows.
    fn described(&self, py: Python<'py>) -> Object<'py> {
        match self {
            Self::Absent => PyString::new(py, "nothing").into_any(),
            Self::Object(object) => object.clone(),
            Self::Flat(flat) => PyString::new(py, &flat.shown()).into_any(),
        }
    }
}

/// Whether two values have one type and the same bits; `None` where that takes Python to tell.
#[pyfunction]
#[pyo3(name = "have_same_bits")]
pub fn is_equal(expected: &Object<'_>, found: &Object<'_>) -> PyResult<Option<bool>> {
    if found.is(expected) {
        return Ok(Some(true));
    }
    if found.get_type_ptr() != expected.get_type_ptr() {
        return Ok(Some(false));
    }
    if let (Ok(expected), Ok(found)) = (expected.cast_exact::<PyFloat>(), found.cast_exact::<PyFloat>()) {
        return Ok(Some(expected.value().to_bits() == found.value().to_bits()));
    }
    if expected.is_exact_instance_of::<PyInt>() || expected.is_exact_instance_of::<PyString>() {
        return expected.eq(found).map(Some);
    }
    if let (Some(expected), Some(found)) = (number_of(expected), number_of(found)) {
        return Ok(Some(expected.precision == found.precision && expected.number.to_bits() == found.number.to_bits()));
    }
    Ok(match (Contiguous::of(expected), Contiguous::of(found)) {
        (Some(expected), Some(found)) => Some(expected.has_bits_of(&found)),
        _ => None,
    })
}

/// The number of a scalar of NumPy, or of an array without dimensions.
fn number_of(object: &Object<'_>) -> Option<Scalar> {
    scalar_of(object).or_else(|| element_of(object))
}
