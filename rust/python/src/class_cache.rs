//! Cache of values by class, which keeps no class alive.

use std::collections::HashMap;
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyType, PyWeakrefMethods, PyWeakrefReference};

use crate::error::{locked, set_locked};

/// Cache of values by class. An address may be reused after its class is freed, so an entry is valid only while its
/// class lives.
pub struct ByClass<T>(Mutex<Option<HashMap<usize, Entry<T>>>>);

type Entry<T> = (Py<PyWeakrefReference>, T);

/// Number of entries above which entries of freed classes are removed, each time that the number has doubled.
const FEW: usize = 64;

fn address(class: &Bound<'_, PyType>) -> usize {
    class.as_ptr() as usize
}

impl<T> ByClass<T> {
    /// An empty cache.
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The value of a class, as another reference that `share` makes.
    pub fn get(&self, class: &Bound<'_, PyType>, share: impl FnOnce(&T) -> T) -> Option<T> {
        let py = class.py();
        let (weak, value) = {
            let entries = locked(&self.0);
            let (weak, value) = entries.as_ref()?.get(&address(class))?;
            (weak.clone_ref(py), share(value))
        };
        weak.bind(py).upgrade().is_some_and(|seen| seen.is(class)).then_some(value)
    }

    /// Sets the value of a class.
    pub fn insert(&self, class: &Bound<'_, PyType>, value: T) -> PyResult<()> {
        let py = class.py();
        let weak = PyWeakrefReference::new(class)?.unbind();
        let (_gone, full) = {
            let mut entries = locked(&self.0);
            let entries = entries.get_or_insert_default();
            let gone = entries.insert(address(class), (weak, value));
            let is_full = entries.len() >= FEW && entries.len().is_power_of_two();
            (gone, is_full.then(|| std::mem::take(entries)))
        };
        if let Some(mut full) = full {
            full.retain(|_, (weak, _)| weak.bind(py).upgrade().is_some());
            locked(&self.0).get_or_insert_default().extend(full);
        }
        Ok(())
    }

    /// Removes all entries.
    pub fn clear(&self) {
        set_locked(&self.0, None);
    }
}
