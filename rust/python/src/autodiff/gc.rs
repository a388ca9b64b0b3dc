//! Garbage collection of tapes and variables: their references, for the collector of cycles.
//!
//! A recorded function may refer to variables of the tape that holds it. Such a cycle is found here, and broken at the
//! tape. The collector calls these at any allocation: they wait for no lock, and what they miss counts as in use.

use std::sync::TryLockError;

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;

use crate::arrays::value::Value;
use crate::autodiff::tape::Fit;
use crate::autodiff::tape::{Attributes, Inner, Tape};
use crate::autodiff::variable::Variable;

pub type Visited = Result<(), PyTraverseError>;

impl Value {
    fn traverse(&self, visit: &PyVisit<'_>) -> Visited {
        if let Self::Object(object) = self { visit.call(object) } else { Ok(()) }
    }
}

impl Attributes {
    fn traverse(&self, visit: &PyVisit<'_>) -> Visited {
        self.named.iter().try_for_each(|named| visit.call(named))?;
        self.fits.iter().try_for_each(|fit| match fit {
            Fit::Array { shape, dtype } => visit.call(shape).and_then(|()| visit.call(dtype)),
            Fit::Same | Fit::Number => Ok(()),
        })
    }
}

impl Inner {
    fn traverse(&self, visit: &PyVisit<'_>) -> Visited {
        self.tape.values().iter().try_for_each(|value| value.traverse(visit))?;
        self.tape.attributes().iter().try_for_each(|attributes| attributes.traverse(visit))?;
        self.fingerprints.iter().try_for_each(|print| visit.call(&print.array))?;
        self.memories.values().try_for_each(|value| value.traverse(visit))
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
