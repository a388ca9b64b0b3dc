//! The `Variable` class: a value on a tape, which is an array of the Array API standard.

use std::sync::atomic::{AtomicU32, Ordering};

use oxigrad_core::autodiff::aliasing::AliasId;
use oxigrad_core::autodiff::tape::{Id, Origin};
use oxigrad_core::kernel::Node;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;

use crate::arrays::compute::array_pool;
use crate::arrays::value::Value;
use crate::autodiff::graph::batched::is_float;
use crate::autodiff::graph::open_tapes::{OpenTapes, OpenTrace};
use crate::autodiff::graph::tape::Tape;
use crate::prelude::*;
use crate::tree::is_inexact;

/// A value on a tape: an array or a number, with the entry that recorded its origin.
///
/// It has the attributes, operators and indexing of an Array API array, and NumPy's functions accept it. Comparisons
/// give plain arrays. `value` is the wrapped array, float, or variable of an enclosing tape.
#[pyclass(frozen, mapping, module = "oxigrad")]
pub struct Variable {
    pub tape: Py<Tape>,
    /// The entry that it was made with.
    pub id: Id,
    /// The value of that entry; values assigned later have its shape and dtype.
    pub value: Value,
    /// The alias id of the variable; zero if it was neither viewed nor assigned to, `UNTRACKED` if, moreover, no
    /// derivative flows to it.
    slot: AtomicU32,
}

const UNTRACKED: u32 = u32::MAX;

/// The entry of a constant that has none: the tape does not know it.
pub const NO_ENTRY: Id = Id::MAX;

impl Drop for Variable {
    /// Returns the array to the pool, since the variable often has the only reference to it.
    fn drop(&mut self) {
        if matches!(self.value, Value::Object(_)) {
            Python::attach(|py| {
                array_pool::keep(py, std::mem::replace(&mut self.value, Value::Absent));
                let taken = self.slot().map(|slot| {
                    let mut inner = self.tape.get().lock();
                    (inner.aliases.take(slot), inner.items.remove(&slot))
                });
                if let Some((Some(value), _)) = taken {
                    array_pool::keep(py, value);
                }
            });
        }
    }
}

impl Variable {
    #[inline]
    pub fn new(tape: &Bound<'_, Tape>, id: Id, value: Value) -> Self {
        Self { tape: tape.clone().unbind(), id, value, slot: AtomicU32::new(0) }
    }

    /// The current entry of the variable, and its value; `ArrayMemoryError` if it is stale.
    #[inline]
    pub fn current(&self, py: Python<'_>) -> PyResult<(Id, Value)> {
        match self.slot() {
            Some(slot) if self.tape.get().lock().aliases.is_stale(slot) => Err(stale(&self.name())),
            _ => Ok(self.last(py)),
        }
    }

    /// As [`Variable::current`], for a stale variable too.
    #[inline]
    pub fn last(&self, py: Python<'_>) -> (Id, Value) {
        let of = |slot| {
            let inner = self.tape.get().lock();
            inner.aliases.assigned(slot).map(|(id, value)| (*id, value.share(py)))
        };
        self.slot().and_then(of).unwrap_or_else(|| (self.id, self.value.share(py)))
    }

    /// The current entry of the variable; a constant gets one.
    pub fn entry(&self, py: Python<'_>) -> PyResult<Id> {
        let (id, value) = self.current(py)?;
        Ok(if id == NO_ENTRY { self.tape.get().lock().tape.constant(value) } else { id })
    }

    /// The entry with respect to which gradients are taken: the watched one, or the one that the variable stands for.
    pub fn source(&self, py: Python<'_>) -> PyResult<Id> {
        if self.id != NO_ENTRY && (self.slot().is_none() || self.origin() == Origin::Input) {
            return Ok(self.id);
        }
        self.entry(py)
    }

    /// The alias id of the variable, if it was viewed or assigned to.
    #[inline]
    pub fn slot(&self) -> Option<AliasId> {
        AliasId::new(self.slot.load(Ordering::Relaxed)).filter(|slot| slot.get() != UNTRACKED)
    }

    /// Whether it is an operand that no program assigns to, and no derivative flows to.
    #[inline]
    pub fn is_untracked(&self) -> bool {
        self.slot.load(Ordering::Relaxed) == UNTRACKED
    }

    /// Whether no derivative flows to it: a plain array that was lifted to a variable.
    #[inline]
    pub fn is_constant(&self) -> bool {
        self.is_untracked() || (self.id == NO_ENTRY || self.slot().is_some()) && self.last_id() == NO_ENTRY
    }

    /// Whether it has a derivative, of its tape or of one that its value belongs to.
    pub fn carries(&self, py: Python<'_>) -> bool {
        !self.is_constant()
            || self.last(py).1.object(py).cast_exact::<Self>().is_ok_and(|outer| outer.get().carries(py))
    }

    /// The current entry, also of a stale variable.
    fn last_id(&self) -> Id {
        let of = |slot| self.tape.get().lock().aliases.assigned(slot).map(|(id, _)| *id);
        self.slot().and_then(of).unwrap_or(self.id)
    }

    /// An operand that no program assigns to, and no derivative flows to.
    pub fn untracked(tape: &Bound<'_, Tape>, id: Id, value: Value) -> Self {
        Self { tape: tape.clone().unbind(), id, value, slot: AtomicU32::new(UNTRACKED) }
    }

    /// The alias id of the variable, added to the tape if there is none.
    pub fn slot_or_new(&self) -> AliasId {
        self.slot().unwrap_or_else(|| {
            let slot = self.tape.get().lock().aliases.add();
            self.set_slot(slot);
            slot
        })
    }

    pub fn set_slot(&self, slot: AliasId) {
        self.slot.store(slot.get(), Ordering::Relaxed);
    }

    /// The origin of the entry that the variable was made with.
    pub fn origin(&self) -> Origin {
        if self.id == NO_ENTRY { Origin::Constant } else { self.tape.get().lock().tape.origin(self.id) }
    }

    /// Whether the variable has not been assigned to, and derivatives flow to it.
    #[inline]
    pub fn is_as_made(&self) -> bool {
        self.slot.load(Ordering::Relaxed) == 0 && self.id != NO_ENTRY
    }

    /// Whether the value is a float of Python or NumPy, which cannot be changed.
    #[inline]
    pub const fn is_scalar(&self) -> bool {
        self.value.is_scalar()
    }

    /// The value of the variable, or an error if it is a symbol.
    pub fn known<'py>(&self, py: Python<'py>, what: &str) -> PyResult<Object<'py>> {
        self.known_at_all(what)?;
        Ok(self.current(py)?.1.into_object(py))
    }

    pub fn known_at_all(&self, what: &str) -> PyResult<()> {
        if !matches!(self.value, Value::Absent) {
            return Ok(());
        }
        Err(RuleError::new_err(format!(
            "a rule cannot use {what} of its arguments: it is traced once, without values, and then runs on every \
             leaf (xp.where takes the place of a branch)"
        )))
    }

    /// Whether the variable's tape, or an enclosing tape of its value, is open.
    pub fn is_recording(&self, py: Python<'_>) -> bool {
        let outer =
            |value: &Value| value.object(py).cast_exact::<Self>().is_ok_and(|outer| outer.get().is_recording(py));
        !self.tape.get().is_ended() || outer(&self.last(py).1)
    }
}

/// The plain value of a variable of any number of nested tapes; any other object unchanged.
#[pyfunction]
pub fn plain<'py>(value: &Object<'py>) -> PyResult<Object<'py>> {
    let mut value = value.clone();
    loop {
        let inner = match value.cast_exact::<Variable>() {
            Ok(variable) if !matches!(variable.get().value, Value::Absent) => {
                variable.get().current(value.py())?.1.into_object(value.py())
            }
            _ => return Ok(value),
        };
        value = inner;
    }
}

/// Whether an object is a variable of any number of nested tapes over a float of Python, also a recorded one.
pub fn is_of_number(object: &Object<'_>) -> bool {
    object.cast_exact::<Variable>().is_ok_and(|own| match &own.get().value {
        Value::Number(_) => true,
        Value::Object(inner) => {
            let inner = inner.bind(object.py());
            is_of_number(inner) || is_float(inner)
        }
        Value::Absent | Value::Float64(_) | Value::Float32(_) => false,
    })
}

/// The error for a stale variable.
pub fn stale(name: &str) -> PyErr {
    ArrayMemoryError::new_err(format!(
        "variable {name} may share memory with one that was changed since: take the view after that, or a copy before, \
         xp.asarray(x, copy=True)"
    ))
}

/// A value that later assignments do not change: for a variable of an enclosing tape, a new variable of its current
/// entry; the value of a constant.
pub fn snapshot<'py>(object: &Object<'py>) -> PyResult<Object<'py>> {
    match object.cast_exact::<Variable>() {
        Ok(outer) if outer.get().is_constant() => {
            snapshot(&outer.get().current(object.py())?.1.into_object(object.py()))
        }
        Ok(outer) if !outer.get().is_scalar() => copied(outer),
        _ => Ok(object.clone()),
    }
}

/// Another variable of the current entry: assignments to one do not change the other.
pub fn copied<'py>(variable: &Bound<'py, Variable>) -> PyResult<Object<'py>> {
    let (id, value) = variable.get().current(variable.py())?;
    let tape = variable.get().tape.bind(variable.py());
    let make = if variable.get().is_untracked() { Variable::untracked } else { Variable::new };
    Ok(Bound::new(variable.py(), make(tape, id, value))?.into_any())
}

/// Whether an object is a variable without a derivative: a constant, whose value is a plain array.
#[pyfunction]
pub fn is_constant(object: &Object<'_>) -> bool {
    object.cast_exact::<Variable>().is_ok_and(|variable| !variable.get().carries(object.py()))
}

/// The value of a variable that is a constant of its tape; any other object unchanged.
#[pyfunction]
pub fn value_of_constant<'py>(object: &Object<'py>) -> PyResult<Object<'py>> {
    let is_constant = object.cast_exact::<Variable>().is_ok_and(|variable| variable.get().is_constant());
    if is_constant { snapshot(object) } else { Ok(object.clone()) }
}

/// An array that takes assignments of variables: inside of a transform a constant of its tape, which records nothing until
/// a variable is assigned to it, and inside of a recording a value of that. Anything else, and an array of whole numbers,
/// is returned as it is.
#[pyfunction]
pub fn assignable<'py>(array: &Object<'py>) -> PyResult<Object<'py>> {
    let tape = OpenTapes::innermost(array.py());
    if let Some(trace) = OpenTrace::innermost(array.py(), tape.as_ref()) {
        return trace.call_method1(intern!(array.py(), "created"), (array,));
    }
    let Some(tape) = tape else { return Ok(array.clone()) };
    let is_there = array.cast_exact::<Variable>().is_ok_and(|own| own.get().tape.is(&tape));
    if is_there || tape.get().symbolic || !is_inexact(array)? {
        return Ok(array.clone());
    }
    Tape::lift(&tape, array, true)
}

impl Tape {
    /// Watches a value, or a symbol where the value is absent.
    pub fn input<'py>(slf: &Bound<'py, Self>, value: Value, symbol: Option<Node>) -> PyResult<Bound<'py, Variable>> {
        let py = slf.py();
        let tape = slf.get();
        let id = {
            let kept = value.share(py);
            let mut inner = tape.lock();
            inner.symbols.extend(symbol);
            inner.tape.watch(kept)
        };
        Bound::new(py, Variable::new(slf, id, value))
    }

    /// A plain array as a variable that no derivative flows to, and that a program may assign to.
    pub fn lift<'py>(slf: &Bound<'py, Self>, object: &Object<'py>, is_assignable: bool) -> PyResult<Object<'py>> {
        let value = Value::new(&snapshot(object)?);
        let make = if is_assignable { Variable::new } else { Variable::untracked };
        Ok(Bound::new(slf.py(), make(slf, NO_ENTRY, value))?.into_any())
    }

    pub fn own<'py>(slf: &Bound<'py, Self>, object: &Object<'py>, what: &str) -> PyResult<Bound<'py, Variable>> {
        let Ok(variable) = object.cast::<Variable>() else {
            let class = object.get_type().repr()?;
            return Err(PyTypeError::new_err(format!("{what}: found {}, expected a variable", class.to_cow()?)));
        };
        if variable.get().tape.is(slf) {
            Ok(variable.clone())
        } else {
            Err(PyTypeError::new_err(format!("{what}: found a variable of another tape")))
        }
    }
}
