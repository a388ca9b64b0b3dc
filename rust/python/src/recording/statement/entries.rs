//! The entries of a program as a statement reads them.

use pyo3::types::{PyBool, PyBoolMethods, PyDict, PyFloat, PyInt, PyString, PyTuple};

use crate::arrays::memory::numpy::Numpy;
use crate::autodiff::graph::template::EntryId;
use crate::prelude::*;
use crate::recording::trace::arguments::is_any_leaf;
use crate::recording::trace::entry::TraceEntry;

/// The dtypes of arrays in runs.
pub const FLOATS: [&str; 2] = ["<f4", "<f8"];
pub const TRUTH: &str = "|b1";

/// A shape and a dtype, which is empty for what is no array.
pub type ArrayType = (Vec<usize>, String);

/// The part of a call in runs: its op, the shape of its arrays, and the dtype in which it is computed, followed by that of truth values where the
/// result is such; without a shape, the precisions of its arguments. Sums along axes have these, and whether they are kept; joined arrays have their
/// axis. A view has, for each axis of its argument, the extent, the first index and the position of the argument that is added to it, or zero; then
/// for each of its axes that of the argument, or -1, and the step. A product has the rows, the inner length and the columns as its shape.
pub type Stated = (String, Vec<usize>, Vec<String>, Option<(Vec<isize>, bool)>);

/// An entry among those of a program.
#[derive(Clone, Copy)]
pub struct At<'a, 'py> {
    pub entries: &'a [Bound<'py, TraceEntry>],
    pub at: usize,
}

impl<'a, 'py> At<'a, 'py> {
    pub fn py(self) -> Python<'py> {
        self.entries[self.at].py()
    }

    pub fn its(self) -> &'a TraceEntry {
        self.entries[self.at].get()
    }

    pub fn is(self, kind: &str) -> bool {
        self.its().kind.bind(self.py()).to_cow().is_ok_and(|its| its == kind)
    }

    /// The kind and the name of the function.
    pub fn target(self) -> (String, String) {
        self.its().target(self.py()).extract().unwrap_or_default()
    }

    /// Whether it calls one of these functions.
    pub fn calls(self, targets: &[(&str, &str)]) -> bool {
        let (kind, name) = self.target();
        targets.contains(&(&kind, &name))
    }

    pub fn args(self) -> Bound<'py, PyTuple> {
        self.its().args.bind(self.py()).clone()
    }

    pub fn named(self) -> Bound<'py, PyDict> {
        self.its().named(self.py())
    }

    pub fn is_named(self) -> bool {
        !self.named().is_empty()
    }

    /// An argument by name.
    pub fn value_of(self, name: &str) -> Option<Object<'py>> {
        self.named().get_item(name).ok().flatten()
    }

    /// The entry of an argument, which is an earlier one.
    pub fn entry_of(self, argument: &Object<'py>) -> Option<Self> {
        let at = argument.cast_exact::<EntryId>().ok()?.get().index();
        (at < self.at).then_some(Self { at, ..self })
    }

    /// The entry that is the first argument.
    pub fn first(self) -> Option<Self> {
        self.entry_of(&self.args().get_item(0).ok()?)
    }

    /// The arguments, if all are entries.
    pub fn reads(self) -> Option<Vec<Self>> {
        self.args().iter().map(|argument| self.entry_of(&argument)).collect()
    }

    /// Whether arguments after the first one are entries, or have some.
    pub fn reads_others(self) -> bool {
        let has_id = |value: &Object<'py>| {
            is_any_leaf(value, &mut |leaf| Ok(leaf.is_exact_instance_of::<EntryId>())).unwrap_or(true)
        };
        self.args().iter().skip(1).any(|argument| has_id(&argument)) || has_id(self.named().as_any())
    }

    fn value(self) -> Option<Object<'py>> {
        self.its().value.as_ref().filter(|_| self.is("constant")).map(|value| value.bind(self.py()).clone())
    }

    /// The shape and dtype that a replay must find.
    pub fn found(self) -> Option<ArrayType> {
        self.its().array_type(self.py())?.bind(self.py()).extract().ok()
    }

    /// The shape and dtype of the value.
    pub fn array_type(self) -> ArrayType {
        match self.value() {
            Some(value) if Numpy::get(self.py()).is_array(&value).unwrap_or(false) => type_of(&value),
            Some(_) => None,
            None => self.found(),
        }
        .unwrap_or_default()
    }

    /// Whether the value is an array of some axes that may lie in another order than that of its indices.
    pub fn is_permuted(self) -> bool {
        self.its().is_permuted() && self.array_type().0.iter().filter(|extent| **extent > 1).count() > 1
    }

    /// Whether the value is an array of truth values with dimensions.
    pub fn is_of_truths(self) -> bool {
        let (shape, dtype) = self.array_type();
        dtype == TRUTH && !shape.is_empty()
    }

    /// Whether the value, which an index reads, is an integer of Python.
    pub fn is_index(self) -> bool {
        match self.value() {
            Some(value) => value.is_exact_instance_of::<PyInt>(),
            None => self.found().is_none() && !self.its().is_float(),
        }
    }

    /// The precision of a float of Python or NumPy, or of an integer that is a constant.
    pub fn precision(self) -> Option<String> {
        let (shape, dtype) = match self.value() {
            Some(value) if is_number(&value) => return Some("float".to_owned()),
            Some(value) => type_of(&value)?,
            None if self.its().is_float() => return Some("float".to_owned()),
            None => self.found()?,
        };
        (shape.is_empty() && FLOATS.contains(&dtype.as_str())).then_some(dtype)
    }

    /// Whether the value is an array of this dtype or of truth values, or a number; with scalars of NumPy if asked for.
    pub fn fits(self, dtype: &str, with_scalars: bool) -> bool {
        if self.is_of_truths() {
            return true;
        }
        let found = match self.value() {
            Some(value) if is_number(&value) => return true,
            Some(value) => type_of(&value),
            None => match self.found() {
                None => return self.its().is_float(),
                found => found,
            },
        };
        found.is_some_and(|(shape, its)| its == dtype && (with_scalars || !shape.is_empty()))
    }
}

/// The shape and dtype of an array or a scalar of NumPy.
fn type_of(value: &Object<'_>) -> Option<ArrayType> {
    let numpy = Numpy::get(value.py());
    if !(numpy.is_array(value).ok()? || numpy.is_scalar(value).ok()?) {
        return None;
    }
    Some((
        value.getattr("shape").ok()?.extract().ok()?,
        value.getattr("dtype").ok()?.getattr("str").ok()?.extract().ok()?,
    ))
}

fn is_number(value: &Object<'_>) -> bool {
    value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>()
}

/// The integers of an axis or of some axes, and whether they are stated as axes; booleans are no integers.
pub fn axes_of(value: &Object<'_>) -> Option<Vec<isize>> {
    match value.cast_exact::<PyTuple>() {
        Ok(axes) if !axes.is_empty() => axes.iter().map(|axis| integer(&axis)).collect(),
        Ok(_) => None,
        Err(_) => Some(vec![integer(value)?]),
    }
}

pub fn integer(value: &Object<'_>) -> Option<isize> {
    value.cast_exact::<PyInt>().ok()?.extract().ok()
}

/// A truth value; false where there is none.
pub fn truth(value: Option<&Object<'_>>) -> Option<bool> {
    value.map_or(Some(false), |value| value.cast_exact::<PyBool>().ok().map(PyBoolMethods::is_true))
}

/// Whether a text is one of these.
pub fn is_text(value: &Object<'_>, text: &str) -> bool {
    value.cast::<PyString>().is_ok_and(|value| value.to_cow().is_ok_and(|value| value == text))
}
