//! Garbage collection of tapes and variables: their references, for the collector of cycles. A recorded function may
//! refer to variables of the tape that holds it. The collector finds such a cycle by these functions, and breaks it at
//! the tape. It may call them at any allocation: they do not wait for locks, and objects that they skip count as in
//! use.

use std::sync::TryLockError;

use pyo3::gc::PyVisit;

use crate::arrays::value::Value;
use crate::autodiff::graph::tape::{Attributes, CotangentType, Inner, Tape};
use crate::autodiff::graph::variable::Variable;
use crate::prelude::*;

impl Value {
    fn traverse(&self, visit: &PyVisit<'_>) -> Visited {
        if let Self::Object(object) = self { visit.call(object) } else { Ok(()) }
    }
}

impl Attributes {
    fn traverse(&self, visit: &PyVisit<'_>) -> Visited {
        self.named.iter().try_for_each(|named| visit.call(named))?;
        self.cotangent_types.iter().try_for_each(|fit| match fit {
            CotangentType::Array { shape, dtype } => visit.call(shape).and_then(|()| visit.call(dtype)),
            CotangentType::Same | CotangentType::Number => Ok(()),
        })
    }
}

impl Inner {
    fn traverse(&self, visit: &PyVisit<'_>) -> Visited {
        self.tape.values().iter().try_for_each(|value| value.traverse(visit))?;
        self.tape.attributes().iter().try_for_each(|attributes| attributes.traverse(visit))?;
        self.fingerprints.iter().try_for_each(|print| visit.call(&print.array))?;
        self.items.values().try_for_each(|item| visit.call(&item.key))?;
        self.aliases.values().try_for_each(|value| value.traverse(visit))
    }
}

impl Tape {
    /// Visits the objects that the tape keeps.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Visited {
        match self.try_lock() {
            Ok(inner) => inner.traverse(visit),
            Err(TryLockError::Poisoned(inner)) => inner.into_inner().traverse(visit),
            Err(TryLockError::WouldBlock) => Ok(()),
        }
    }
}

impl Variable {
    /// Visits the tape and the value.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Visited {
        visit.call(&self.tape)?;
        self.value.traverse(visit)
    }
}
