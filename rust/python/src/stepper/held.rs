//! The objects that a resolved step of a torch optimizer is of, compared with those that are there now.

use pyo3::types::{PyDict, PyList, PyTuple};

use crate::prelude::*;

/// The dicts in each other that are looked into: the states of parameters, a state, and codes with their scales.
const DEPTH: usize = 3;

/// The items of the lists, each list ended by None, then the keys and values of the dict, and of dicts among these.
#[pyfunction]
pub fn held<'py>(lists: Vec<Object<'py>>, dict: &Bound<'py, PyDict>) -> Vec<Object<'py>> {
    let mut objects = Vec::new();
    visit_all(&lists, dict, &mut |object| {
        objects.push(object.clone());
        true
    });
    objects
}

/// Whether [`held`] of the lists and the dict has the objects in `held`, in this order. No code of Python runs.
#[pyfunction]
pub fn are_held(held: &Bound<'_, PyList>, lists: Vec<Object<'_>>, dict: &Bound<'_, PyDict>) -> bool {
    let mut expected = held.iter();
    visit_all(&lists, dict, &mut |object| expected.next().is_some_and(|held| held.is(object)))
        && expected.next().is_none()
}

/// Calls `visit` for each object until it returns false; whether it never did, and the lists are lists or tuples.
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
