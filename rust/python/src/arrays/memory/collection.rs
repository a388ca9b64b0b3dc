//! Objects that the collector of cycles need not visit.

use pyo3::ffi;

use crate::prelude::*;

/// Takes an object out of the lists of the collector, as Python does with tuples of numbers.
///
/// No cycle through it may ever be garbage: it has no attributes of its own, and holds what is never collected alone, or plain data.
pub fn untrack(object: &Object<'_>) {
    // SAFETY: the object is there, and the interpreter lock held. An object that is tracked has the head of a collected one; its class
    // lets it go whether it is tracked or not, as all classes must.
    unsafe {
        if ffi::PyObject_GC_IsTracked(object.as_ptr()) == 1 {
            ffi::PyObject_GC_UnTrack(object.as_ptr().cast());
        }
    }
}
