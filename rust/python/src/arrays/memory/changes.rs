//! Changes of arrays of which their library is notified.

use pyo3::types::{PySequenceMethods, PyTuple};

use crate::arrays::memory::dlpack::Export;
use crate::arrays::memory::exporters::Exporters;
use crate::arrays::memory::torch::Torch;
use crate::prelude::*;

/// Tensors whose memory was changed, to notify PyTorch.
#[derive(Default)]
pub struct Changed<'py> {
    tensors: Vec<Object<'py>>,
    /// Tensors of a step that are in tuples already.
    of_step: Option<Bound<'py, PyTuple>>,
    /// The owners of their memory: PyTorch counts a change four times faster for a tensor that has another reference.
    held: Vec<Export>,
}

impl<'py> Changed<'py> {
    /// Adds an object, if it is a tensor.
    pub fn push(&mut self, exporters: &mut Exporters<'py>, object: &Object<'py>) {
        if exporters.is_tensor(object) {
            self.tensors.push(object.clone());
        }
    }

    /// Adds tuples of tensors, and the owners of the memory of some.
    pub fn set_step(&mut self, tuples: Option<Bound<'py, PyTuple>>, held: Vec<Export>) {
        (self.of_step, self.held) = (tuples, held);
    }

    /// Notifies PyTorch. Called once all is written and the step counted, since an interrupt may come here.
    pub fn count(self, py: Python<'py>) -> PyResult<()> {
        let tensors = match (self.of_step, self.tensors.is_empty()) {
            (of_step, true) => of_step,
            (None, false) => Some(PyTuple::new(py, self.tensors)?),
            (Some(of_step), false) => Some(concatenated(&of_step, &PyTuple::new(py, self.tensors)?)?),
        };
        tensors.map_or(Ok(()), |tensors| Torch::count_changes(&tensors))
    }
}

/// The items of one tuple, then those of another.
fn concatenated<'py>(a: &Bound<'py, PyTuple>, b: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyTuple>> {
    a.as_sequence().concat(b.as_sequence())?.to_tuple()
}
