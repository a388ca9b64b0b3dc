//! The identity of all that a resolved step of tensors depends on: objects, and the places of tensors in memory.

use pyo3::gc::PyVisit;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::arrays::memory::device_places::Places;
use crate::prelude::*;

/// The dicts in each other that are looked into: the states of parameters, a state, and codes with their scales.
const DEPTH: usize = 3;

/// The objects of lists and of a dict, by identity, and the places of tensors in memory.
///
/// Where a tensor does not tell its place, as an array of another process, `describe` is called with all tensors.
#[pyclass(frozen, module = "oxigrad._core")]
pub struct Signature {
    objects: Vec<Py<PyAny>>,
    tensors: Py<PyList>,
    places: TensorPlaces,
}

enum TensorPlaces {
    Told(Places),
    Described { describe: Py<PyAny>, described: Py<PyAny> },
    None,
}

#[pymethods]
impl Signature {
    /// Of the items of `lists`, of the keys and values of `dict`, and of dicts among these.
    #[new]
    #[pyo3(signature = (lists, dict, tensors=None, describe=None))]
    fn new<'py>(
        py: Python<'py>,
        lists: Vec<Object<'py>>,
        dict: &Bound<'py, PyDict>,
        tensors: Option<Bound<'py, PyList>>,
        describe: Option<Object<'py>>,
    ) -> PyResult<Self> {
        let mut objects = Vec::new();
        visit_all(&lists, dict, &mut |object| {
            objects.push(object.clone().unbind());
            true
        });
        let tensors = tensors.unwrap_or_else(|| PyList::empty(py));
        let places = match (Places::of(&tensors)?, describe) {
            (Some(places), _) => TensorPlaces::Told(places),
            (None, Some(describe)) => {
                let described = describe.call1((&tensors,))?.unbind();
                TensorPlaces::Described { describe: describe.unbind(), described }
            }
            (None, None) => TensorPlaces::None,
        };
        Ok(Self { objects, tensors: tensors.unbind(), places })
    }

    /// Whether the lists and the dict have the same objects, in the same order, and all tensors are where they were,
    /// with their shapes and dtypes. No code of Python runs, but `describe`.
    fn holds<'py>(&self, py: Python<'py>, lists: Vec<Object<'py>>, dict: &Bound<'py, PyDict>) -> PyResult<bool> {
        let mut expected = self.objects.iter();
        let are_same = visit_all(&lists, dict, &mut |object| expected.next().is_some_and(|each| each.is(object)));
        if !are_same || expected.next().is_some() {
            return Ok(false);
        }
        let tensors = self.tensors.bind(py);
        match &self.places {
            TensorPlaces::Told(places) => places.are_there(tensors),
            TensorPlaces::Described { describe, described } => describe.bind(py).call1((tensors,))?.eq(described),
            TensorPlaces::None => Ok(false),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Visited {
        self.objects.iter().try_for_each(|object| visit.call(object))?;
        visit.call(&self.tensors)?;
        if let TensorPlaces::Described { describe, described } = &self.places {
            visit.call(describe)?;
            visit.call(described)?;
        }
        Ok(())
    }
}

/// Calls `visit` for the items of each list, each list ended by None, then for the keys and values of the dict, and of
/// dicts among these, until it returns false; whether it never did, and the lists are lists or tuples.
fn visit_all<'py>(
    lists: &[Object<'py>],
    dict: &Bound<'py, PyDict>,
    visit: &mut impl FnMut(&Object<'py>) -> bool,
) -> bool {
    lists.iter().all(|list| visit_items(list, visit) && visit(&list.py().None().into_bound(list.py())))
        && visit_entries(dict, DEPTH, visit)
}

fn visit_items<'py>(list: &Object<'py>, visit: &mut impl FnMut(&Object<'py>) -> bool) -> bool {
    if let Ok(list) = list.cast::<PyList>() {
        return list.iter().all(|item| visit(&item));
    }
    list.cast::<PyTuple>().is_ok_and(|tuple| tuple.iter().all(|item| visit(&item)))
}

fn visit_entries<'py>(dict: &Bound<'py, PyDict>, depth: usize, visit: &mut impl FnMut(&Object<'py>) -> bool) -> bool {
    dict.iter().all(|(key, value)| {
        visit(&key)
            && visit(&value)
            && (depth == 1 || value.cast::<PyDict>().map_or(true, |inner| visit_entries(inner, depth - 1, visit)))
    })
}
