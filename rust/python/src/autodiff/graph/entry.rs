//! An entry of a tape over Python values, as derivative rules read it.

use oxigrad_core::autodiff::tape::View;
use pyo3::types::{PyString, PyTuple};

use crate::arrays::value::Value;
use crate::autodiff::graph::tape::{Attributes, CotangentType};
use crate::prelude::*;

/// An entry with its attributes.
pub type Entry<'t> = View<'t, Value, Attributes>;

/// The shape and dtype of the cotangent of an argument, if the tape keeps them.
pub fn cotangent_type<'t>(entry: &Entry<'t>, which: usize) -> Option<&'t CotangentType> {
    entry.attributes.and_then(|attributes| attributes.cotangent_types.get(which))
}

/// The shape of an argument, as the tape keeps it for the rules that read it.
pub fn shape_of<'py>(entry: &Entry<'_>, which: usize, py: Python<'py>) -> Object<'py> {
    match cotangent_type(entry, which) {
        Some(CotangentType::Array { shape, .. }) => shape.bind(py).clone(),
        Some(CotangentType::Same | CotangentType::Number) | None => PyTuple::empty(py).into_any(),
    }
}

/// An attribute of the op.
pub fn named<'py>(entry: &Entry<'_>, name: &Bound<'py, PyString>) -> PyResult<Option<Object<'py>>> {
    let named = entry.attributes.and_then(|attributes| attributes.named.as_ref());
    named.map(|named| named.bind(name.py()).get_item(name)).transpose().map(Option::flatten)
}
