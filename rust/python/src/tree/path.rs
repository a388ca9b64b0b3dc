//! `KeyPath`: reads and writes one part of a tree.

use oxigrad_core::tree;
use pyo3::prelude::*;

/// The way from the root of a tree to one of its parts.
#[pyclass(frozen, eq, hash, ord, module = "oxigrad.tree")]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPath(pub tree::KeyPath);

#[pymethods]
impl KeyPath {
    fn __str__(&self) -> String {
        self.0.to_string()
    }
}
