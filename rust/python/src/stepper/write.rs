//! The writes of a step besides the update: copies of arrays, and items of dicts and arrays.

use pyo3::types::PyDict;

use super::stated::Writes;
use crate::arrays::compute::elementwise::Copying;
use crate::arrays::memory::changes::Changed;
use crate::arrays::memory::numpy::Numpy;
use crate::prelude::*;

/// Makes all checks and an update; then, unless a guard stopped the update, the copies and assignments, which cannot
/// fail. Adds the tensors that have `changed`.
pub(super) fn write<'py, E: From<PyErr>>(
    py: Python<'py>,
    update: impl FnOnce(&mut Changed<'py>) -> Result<bool, E>,
    writes: &Writes,
    changed: &mut Changed<'py>,
) -> Result<bool, E> {
    let copies: Vec<Copying> =
        writes.copies.iter().map(|(from, to)| Copying::new(from.bind(py), to.bind(py))).collect::<PyResult<_>>()?;
    writes.assignments.iter().try_for_each(|(holder, ..)| assignable(holder.bind(py)))?;
    if !update(changed)? {
        return Ok(false);
    }
    copies.into_iter().try_for_each(|copying| copying.run(py, changed))?;
    for (holder, key, value) in &writes.assignments {
        let holder = holder.bind(py);
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
    if Numpy::get(holder.py()).fields(holder).is_some_and(|fields| fields.is_writable()) {
        return Ok(());
    }
    Err(ArrayMemoryError::new_err("the record of steps must be a writable NumPy array"))
}
