//! In-place changes of variables: `x[key] = value` and `x += y`. No array is changed. The variable object refers to a
//! new entry of the tape from then on. Its views, variables whose arrays would share its memory in a program on plain
//! arrays, do not: they share a count of changes with it, and reading a variable whose count is behind raises.

use oxigrad_core::autodiff::aliasing::{Sharing, repeats_elements, sharing};
use oxigrad_core::autodiff::tape::{Id, Origin};
use oxigrad_core::op::Op;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::types::{PyDict, PyEllipsis, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple};

use crate::arrays::value::Value;
use crate::autodiff::graph::batched::is_above;
use crate::autodiff::graph::tape::Item;
use crate::autodiff::graph::variable::{NO_ENTRY, Variable, plain, snapshot};
use crate::callbacks;
use crate::prelude::*;

/// Whether NumPy, or another library, may give a view of the memory of the first argument.
pub fn gives_view(op: Op, named: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
    Ok(match sharing(op) {
        Sharing::Never => false,
        Sharing::Maybe => true,
        Sharing::BasicKeys => {
            let key = named.map(|named| named.get_item(intern!(named.py(), "key"))).transpose()?.flatten();
            !key.map_or(Ok(false), |key| copies(&key))?
        }
    })
}

/// Whether a key contains an array or a list, so that indexing with it copies.
fn copies(key: &Object<'_>) -> PyResult<bool> {
    if let Ok(parts) = key.cast::<PyTuple>() {
        for part in parts {
            if copies(&part)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    if key.is_none()
        || key.is_instance_of::<PySlice>()
        || key.is_instance_of::<PyInt>()
        || key.is(PyEllipsis::get(key.py()))
    {
        return Ok(false);
    }
    if key.is_instance_of::<PyList>() {
        return Ok(true);
    }
    match key.getattr_opt(intern!(key.py(), "shape"))? {
        Some(shape) => Ok(shape.len()? > 0),
        None => Ok(false),
    }
}

/// Records that `view` shares the memory of `base`; numbers and immutable scalars share none.
pub fn share(base: &Object<'_>, view: &Object<'_>) -> PyResult<()> {
    let (Ok(base), Ok(variable)) = (base.cast_exact::<Variable>(), view.cast_exact::<Variable>()) else {
        return Ok(());
    };
    let Value::Object(value) = &variable.get().value else { return Ok(()) };
    if base.get().is_untracked()
        || value.bind(view.py()).is_instance_of::<PyFloat>()
        || !has(variable, intern!(view.py(), "__setitem__"))?
    {
        return Ok(());
    }
    let slot = base.get().slot_or_new();
    variable.get().set_slot(base.get().tape.get().lock().aliases.add_view(slot));
    Ok(())
}

/// As [`share`], of a constant, whose view has no entry that tells its key.
pub fn share_constant(base: &Object<'_>, view: &Object<'_>, named: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    share(base, view)?;
    let (Ok(base), Ok(view)) = (base.cast_exact::<Variable>(), view.cast_exact::<Variable>()) else { return Ok(()) };
    let key = named.map(|named| named.get_item(intern!(named.py(), "key"))).transpose()?.flatten();
    if let (Some(slot), Some(base), Some(key)) = (view.get().slot(), base.get().slot(), key) {
        let mut inner = view.get().tape.get().lock();
        let seen = inner.aliases.seen(base);
        inner.items.insert(slot, Item { base, seen, key: key.unbind() });
    }
    Ok(())
}

/// Whether the arrays of a variable have a method that changes them in place.
fn has(variable: &Bound<'_, Variable>, method: &Bound<'_, PyString>) -> PyResult<bool> {
    plain(variable.as_any())?.get_type().hasattr(method)
}

/// `x[key] = value`.
pub fn assign<'py>(slf: &Bound<'py, Variable>, key: &Object<'py>, value: &Object<'py>) -> PyResult<()> {
    let py = slf.py();
    let (id, mine) = slf.get().last(py);
    if matches!(mine, Value::Number(_)) {
        return Err(PyTypeError::new_err("a number has no elements to assign to"));
    }
    if !completes(slf, id, key, value)? {
        slf.get().current(py)?;
    }
    let tape = slf.get().tape.bind(py);
    let before = Bound::new(py, Variable::new(tape, id, mine))?;
    let after = callbacks::assigned(py, (before, key, value))?;
    rebind(slf, &after)
}

/// Whether `value` is the view `x[key]` after an in-place change of it alone: the end of `x[key] += y`.
fn completes(slf: &Bound<'_, Variable>, id: Id, key: &Object<'_>, value: &Object<'_>) -> PyResult<bool> {
    let Ok(view) = value.cast_exact::<Variable>() else { return Ok(false) };
    let (Some(mine), Some(its)) = (slf.get().slot(), view.get().slot()) else { return Ok(false) };
    if !view.get().tape.is(&slf.get().tape) || copies(key)? {
        return Ok(false);
    }
    let py = slf.py();
    if view.get().id == NO_ENTRY {
        let own = {
            let inner = slf.get().tape.get().lock();
            let item = inner.items.get(&its).filter(|item| {
                item.base == mine && item.seen == inner.aliases.seen(mine) && !inner.aliases.is_stale(its)
            });
            item.map(|item| item.key.clone_ref(py))
        };
        return own.map_or(Ok(false), |own| own.bind(py).eq(key));
    }
    let of = {
        let inner = slf.get().tape.get().lock();
        let is_item = inner.aliases.is_current_item(&inner.tape, (mine, id), (its, view.get().id));
        let entry = inner.tape.view(view.get().id);
        let named = entry.attributes.and_then(|attributes| attributes.named.as_ref());
        named.filter(|_| is_item).map(|named| named.clone_ref(py))
    };
    let Some(of) = of else { return Ok(false) };
    of.bind(py).get_item("key")?.map_or(Ok(false), |own| own.eq(key))
}

/// Augmented assignment, `x += y`: changes `x` if its array would be changed, and returns a new variable otherwise.
pub fn in_place<'py>(slf: &Bound<'py, Variable>, result: Object<'py>) -> PyResult<Object<'py>> {
    let py = slf.py();
    if slf.get().is_scalar() || !has(slf, intern!(py, "__iadd__"))? {
        return Ok(result);
    }
    let fitted = callbacks::cast_in_place(py, (slf, result))?;
    rebind(slf, &fitted)?;
    Ok(slf.clone().into_any())
}

/// Makes a variable refer to the entry and value of `after`.
fn rebind(slf: &Bound<'_, Variable>, after: &Object<'_>) -> PyResult<()> {
    let (py, this) = (slf.py(), slf.get());
    let tape = this.tape.bind(py);
    if !this.is_constant() {
        tape.get().check_recording(this.id)?;
    }
    let assigned = match after.cast_exact::<Variable>() {
        Ok(own) if own.get().tape.is(tape) => own.get().current(py)?,
        Ok(inner) if inner.get().tape.get().serial > tape.get().serial => {
            let name = this.name();
            return Err(DerivativeError::new_err(format!(
                "variable {name} belongs to an outer function, and what is assigned to it to an inner one, whose \
                 derivative would be lost: make a new array in the inner function"
            )));
        }
        _ if is_above(after, tape.get().serial) => {
            let name = this.name();
            return Err(DerivativeError::new_err(format!(
                "variable {name} belongs to an outer function, and what is assigned to it differs between the examples of an \
                 inner vmap: make a new array in the inner function"
            )));
        }
        _ => (NO_ENTRY, Value::new(&snapshot(after)?)),
    };
    let is_repeated = matches!(this.origin(), Origin::Op(op) if repeats_elements(op));
    if is_repeated && this.last(py).0 == this.id {
        let name = this.name();
        return Err(ArrayMemoryError::new_err(format!(
            "variable {name}: found a broadcast array: change a copy, xp.asarray(x, copy=True)"
        )));
    }
    let slot = this.slot_or_new();
    let (entry, value) = assigned;
    let replaced = tape.get().lock().aliases.assign(slot, entry, value);
    if let Some(value) = replaced {
        crate::arrays::compute::array_pool::keep(py, value);
    }
    Ok(())
}
