//! The writes of a step besides the update: copies of arrays, and items of dicts and arrays.

use pyo3::types::PyDict;

use crate::arrays::compute::elementwise::Copying;
use crate::arrays::memory::changes::Changed;
use crate::arrays::memory::numpy::Numpy;
use crate::prelude::*;

/// A holder, the key of an item, and its new value.
pub(super) type Assignment<'py> = (Object<'py>, Object<'py>, Object<'py>);

/// An array, and the one that it is copied to.
pub(super) type Copy<'py> = (Object<'py>, Object<'py>);

/// Makes all checks and an update; then, unless a guard stopped the update, the copies and assignments, which cannot
/// fail. Adds the tensors that have `changed`.
pub(super) fn write<'py>(
    py: Python<'py>,
    update: impl FnOnce(&mut Changed<'py>) -> PyResult<bool>,
    assignments: &[Assignment<'py>],
    copies: &[Copy<'py>],
    changed: &mut Changed<'py>,
) -> PyResult<bool> {
    let copies: Vec<Copying> = copies.iter().map(|(from, to)| Copying::new(from, to)).collect::<PyResult<_>>()?;
    assignments.iter().try_for_each(|(holder, ..)| assignable(holder))?;
    if !update(changed)? {
        return Ok(false);
    }
    copies.into_iter().try_for_each(|copying| copying.run(py, changed))?;
    for (holder, key, value) in assignments {
        match holder.cast::<PyDict>() {
            Ok(slots) => slots.set_item(key, value)?, // past the checks and the copy of an assignment by the user
            Err(_) => holder.set_item(key, value)?,
        }
    }
    Ok(true)
}

/// Refuses holders whose items may not be assigned to: those of a dict may, those of an array if it is writable.
fn assignable(holder: &Object<'_>) -> PyResult<()> {
    if holder.is_instance_of::<PyDict>() {
        return Ok(());
    }
    let fields = Numpy::get(holder.py()).and_then(|numpy| numpy.fields(holder));
    if fields.is_some_and(|fields| fields.is_writable()) {
        return Ok(());
    }
    Err(ArrayMemoryError::new_err("the record of steps must be a writable NumPy array"))
}
