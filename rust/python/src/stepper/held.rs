//! The objects that a resolved step of a torch optimizer holds, compared with those that are there now.

use pyo3::types::{PyDict, PyList};

use crate::prelude::*;

/// Whether the items of the lists, followed by the values of the dicts in `dicts`, are the objects in `held`, in this
/// order. No code of Python runs.
#[pyfunction]
pub fn are_held(held: &Bound<'_, PyList>, lists: Vec<Bound<'_, PyList>>, dicts: &Bound<'_, PyDict>) -> bool {
    let mut expected = held.iter();
    let mut is_next = |object: &Object<'_>| expected.next().is_some_and(|held| held.is(object));
    let in_lists = lists.iter().all(|list| list.iter().all(|item| is_next(&item)));
    let are_all = in_lists
        && dicts.iter().all(|(_, values)| {
            values.cast::<PyDict>().is_ok_and(|values| values.iter().all(|(_, value)| is_next(&value)))
        });
    are_all && expected.next().is_none()
}
