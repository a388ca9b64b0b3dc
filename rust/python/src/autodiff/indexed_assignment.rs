//! Variables changed in place: `x[key] = value` and `x += y`, as far as the program can tell.
//!
//! No array is changed. The variable stands for a new entry of the tape from then on, and whoever else holds the variable
//! sees it too. Other variables whose arrays would share its memory were the program run on plain arrays, its views, do
//! not follow: they share a count of changes with it, and one that has missed a change can be read no more.

use std::num::NonZeroU32;

use oxigrad_core::autodiff::tape::{Id, Origin};
use oxigrad_core::error::Error;
use oxigrad_core::op::{Elementwise, Op, Structured};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple};

use crate::autodiff::tape::Tape;
use crate::autodiff::value::Value;
use crate::autodiff::variable::{Variable, plain};
use crate::autodiff::vjp_rules::hook;
use crate::error::to_python;

/// What a tape knows of its variables that have been viewed or assigned to: which share memory.
#[derive(Debug, Default)]
pub struct Memories {
    variables: Vec<Shared>,
    /// How often each memory was changed, by any of the variables that share it.
    changes: Vec<u64>,
}

#[derive(Debug)]
struct Shared {
    /// Which memory it is.
    memory: usize,
    /// How many of its changes this variable knows of.
    seen: u64,
    /// What was assigned last: the entry that the variable stands for now, and its value.
    assigned: Option<(Id, Value)>,
}

/// Where a tape keeps what it knows of a variable.
pub type Slot = NonZeroU32;

impl Memories {
    /// A slot for a variable of its own memory.
    pub fn add(&mut self) -> Slot {
        self.changes.push(0);
        self.push(Shared { memory: self.changes.len() - 1, seen: 0, assigned: None })
    }

    /// A slot for a variable that shares the memory of another.
    fn add_view(&mut self, of: Slot) -> Slot {
        let Shared { memory, seen, .. } = *self.of(of);
        self.push(Shared { memory, seen, assigned: None })
    }

    fn push(&mut self, shared: Shared) -> Slot {
        self.variables.push(shared);
        let slot = u32::try_from(self.variables.len()).ok().and_then(NonZeroU32::new);
        slot.expect("a tape holds fewer than 2^32 entries")
    }

    fn of(&self, slot: Slot) -> &Shared {
        &self.variables[slot.get() as usize - 1]
    }

    /// Whether the variable has missed a change.
    pub fn is_stale(&self, slot: Slot) -> bool {
        let shared = self.of(slot);
        shared.seen != self.changes[shared.memory]
    }

    /// What was assigned last.
    pub fn assigned(&self, slot: Slot, py: Python<'_>) -> Option<(Id, Value)> {
        self.of(slot).assigned.as_ref().map(|(id, value)| (*id, value.share(py)))
    }

    /// What was assigned last to each variable.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.variables.iter().filter_map(|shared| shared.assigned.as_ref().map(|(_, value)| value))
    }

    /// Takes what was assigned last to all variables.
    pub fn forget(&mut self) -> Vec<(Id, Value)> {
        self.variables.iter_mut().filter_map(|shared| shared.assigned.take()).collect()
    }

    /// Takes what was assigned last.
    pub fn take(&mut self, slot: Slot) -> Option<(Id, Value)> {
        self.variables[slot.get() as usize - 1].assigned.take()
    }

    /// Counts a change, and gives what was assigned before.
    fn assign(&mut self, slot: Slot, assigned: (Id, Value)) -> Option<(Id, Value)> {
        let shared = &mut self.variables[slot.get() as usize - 1];
        let changes = &mut self.changes[shared.memory];
        *changes += 1;
        shared.seen = *changes;
        shared.assigned.replace(assigned)
    }
}

/// The error for a variable that has missed a change.
pub fn stale(name: &str) -> PyErr {
    to_python(&Error::Memory(format!(
        "variable {name} may share memory with one that was changed since: take the view after that, or a copy before, \
         xp.asarray(x, copy=True)"
    )))
}

/// Whether NumPy, or another library, may give a view of the memory of the first argument.
pub fn gives_view(op: Op, named: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
    if op == Op::Structured(Structured::Index) {
        let key = named.map(|named| named.get_item(intern!(named.py(), "key"))).transpose()?.flatten();
        return Ok(!key.map_or(Ok(false), |key| copies(&key))?);
    }
    Ok(matches!(
        op,
        Op::Elementwise(Elementwise::Real | Elementwise::Imag | Elementwise::Conj)
            | Op::Structured(
                Structured::Flip
                    | Structured::Reshape
                    | Structured::PermuteDims
                    | Structured::ExpandDims
                    | Structured::Squeeze
                    | Structured::BroadcastTo,
            )
    ))
}

/// Whether a key has an array or a list in it, so that what is indexed with it is a copy.
fn copies(key: &Bound<'_, PyAny>) -> PyResult<bool> {
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

/// Lets `view` share the memory of `base`; numbers, and scalars that cannot be changed, have none to share.
pub fn share(base: &Bound<'_, PyAny>, view: &Bound<'_, PyAny>) -> PyResult<()> {
    let (Ok(base), Ok(variable)) = (base.cast_exact::<Variable>(), view.cast_exact::<Variable>()) else {
        return Ok(());
    };
    let Value::Object(value) = &variable.get().value else { return Ok(()) };
    if base.get().is_constant()
        || value.bind(view.py()).is_instance_of::<PyFloat>()
        || !has(variable, intern!(view.py(), "__setitem__"))?
    {
        return Ok(());
    }
    let slot = base.get().slot_or_new();
    variable.get().set_slot(base.get().tape.get().lock().memories.add_view(slot));
    Ok(())
}

/// Whether the arrays of a variable have a method by which they are changed.
fn has(variable: &Bound<'_, Variable>, method: &Bound<'_, PyString>) -> PyResult<bool> {
    plain(variable.as_any())?.get_type().hasattr(method)
}

/// `x[key] = value`.
pub fn assign<'py>(slf: &Bound<'py, Variable>, key: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> PyResult<()> {
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
    let after = hook(py, "assigned")?.call1((before, key, value))?;
    rebind(slf, &after)
}

/// Whether `value` is the view `x[key]`, which was changed in place and alone since: `x[key] += y` ends so.
fn completes(slf: &Bound<'_, Variable>, id: Id, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(view) = value.cast_exact::<Variable>() else { return Ok(false) };
    let (Some(mine), Some(its)) = (slf.get().slot(), view.get().slot()) else { return Ok(false) };
    if !view.get().tape.is(&slf.get().tape) || copies(key)? {
        return Ok(false);
    }
    let of = {
        let inner = slf.get().tape.get().lock();
        let is_shared = inner.memories.of(mine).memory == inner.memories.of(its).memory;
        let entry = inner.tape.view(view.get().id);
        let is_ours = entry.origin == Origin::Op(Op::Structured(Structured::Index)) && entry.args == [id];
        let named = entry.attributes.and_then(|attributes| attributes.named.as_ref());
        let is_it = is_shared && is_ours && !inner.memories.is_stale(its);
        named.filter(|_| is_it).map(|named| named.clone_ref(slf.py()))
    };
    let Some(of) = of else { return Ok(false) };
    of.bind(slf.py()).get_item("key")?.map_or(Ok(false), |own| own.eq(key))
}

/// `x += y` and its like: changes `x` where its array would be changed, and is a new variable where it would not.
pub fn in_place<'py>(slf: &Bound<'py, Variable>, result: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    if slf.get().is_scalar() || !has(slf, intern!(py, "__iadd__"))? {
        return Ok(result);
    }
    let fitted = hook(py, "fitted_in_place")?.call1((slf, result))?;
    rebind(slf, &fitted)?;
    Ok(slf.clone().into_any())
}

/// Lets a variable stand for what `after` is.
fn rebind(slf: &Bound<'_, Variable>, after: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, this) = (slf.py(), slf.get());
    let tape = this.tape.bind(py);
    tape.get().check_recording(this.id)?;
    let assigned = match after.cast_exact::<Variable>() {
        Ok(own) if own.get().tape.is(tape) => own.get().current(py)?,
        Ok(inner) if inner.get().tape.get().serial > tape.get().serial => {
            let name = this.name();
            return Err(to_python(&Error::Derivative(format!(
                "variable {name} belongs to an outer function, and what is assigned to it to an inner one, whose \
                 derivative would be lost: make a new array in the inner function"
            ))));
        }
        _ => Tape::constant(tape, after)?,
    };
    let is_repeated = this.origin() == Origin::Op(Op::Structured(Structured::BroadcastTo));
    if is_repeated && this.last(py).0 == this.id {
        let name = this.name();
        return Err(to_python(&Error::Memory(format!(
            "variable {name} is a broadcast one, whose elements share memory: change a copy, xp.asarray(x, copy=True)"
        ))));
    }
    let slot = this.slot_or_new();
    let replaced = tape.get().lock().memories.assign(slot, assigned);
    if let Some((_, value)) = replaced {
        crate::arrays::array_pool::keep(py, value);
    }
    Ok(())
}

/// A value as a tape keeps it: for a variable of an enclosing tape, another of the same entry, which nobody else has.
pub fn settled<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match object.cast_exact::<Variable>() {
        Ok(outer) if !outer.get().is_scalar() => {
            let py = object.py();
            let (id, value) = outer.get().current(py)?;
            let (tape, outer) = (outer.get().tape.bind(py), outer.get());
            let make = if outer.is_constant() { Variable::constant } else { Variable::new };
            Ok(Bound::new(py, make(tape, id, value))?.into_any())
        }
        _ => Ok(object.clone()),
    }
}
