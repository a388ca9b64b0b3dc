//! Detection of arrays that are changed in place between recording and replay, by hashes of their contents
//! (`check=True`).

use oxigrad_core::autodiff::tape::{Id, Origin};

use crate::autodiff::graph::describe::describe;
use crate::autodiff::graph::tape::{Fingerprint, Tape};
use crate::callbacks;
use crate::prelude::*;

impl Tape {
    /// Stores the hashes of the arrays that an entry will read.
    pub fn guard<'a, 'py: 'a>(&self, id: Id, read: impl Iterator<Item = &'a Object<'py>>) -> PyResult<()> {
        for array in read {
            let bytes: Option<u64> = callbacks::fingerprint(array.py(), (array,))?.extract()?;
            if let Some(bytes) = bytes {
                self.lock().fingerprints.push(Fingerprint { id, array: array.clone().unbind(), bytes });
            }
        }
        Ok(())
    }

    /// Raises `ArrayMemoryError`, with the name of the entry, if an array has changed since.
    pub fn check_unchanged(&self, py: Python<'_>) -> PyResult<()> {
        let held: Vec<_> = {
            let fingerprints = &self.lock().fingerprints;
            fingerprints.iter().map(|print| (print.id, print.array.clone_ref(py), print.bytes)).collect()
        };
        for (id, array, bytes) in held {
            let now: Option<u64> = callbacks::fingerprint(py, (&array,))?.extract()?;
            if now != Some(bytes) {
                let (name, what) = (self.name(id), describe(array.bind(py))?);
                let origin = self.lock().tape.origin(id);
                let op = if let Origin::Op(op) = origin { op.name() } else { "watch" };
                return Err(ArrayMemoryError::new_err(format!(
                    "{name} = {op}(...) reads {what}, which was changed in place after it was recorded: change a copy, \
                     or replay the tape first"
                )));
            }
        }
        Ok(())
    }
}
