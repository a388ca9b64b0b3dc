//! PyTorch: properties of tensors that `DLPack` does not report.
//!
//! A tensor whose negative bit is set has the negatives of the numbers in its memory. The storage of a tensor may be
//! shrunk below it. And PyTorch counts the changes of
//! a tensor's memory, to refuse graphs whose arrays were changed; it is notified of changes by the core.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::view::ArrayView;
use pyo3::intern;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::arrays::memory::torch_tensor::TensorReader;
use crate::prelude::*;

/// The class and functions of PyTorch that the binding uses.
pub struct Torch {
    tensor: Py<PyType>,
    parameter: Py<PyAny>,
    is_neg: Py<PyAny>,
    increment_version: Py<PyAny>,
    untyped_storage: Py<PyAny>,
    reader: OnceLock<TensorReader>,
    /// The number of times that the functions of the reader were looked for.
    attempts: AtomicU8,
}

/// The most times that they are looked for: within a transformation of PyTorch no tensor can be made by which they are checked.
const ATTEMPTS: u8 = 20;

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

impl Torch {
    /// PyTorch, if the class is a class of its tensors; does not import it.
    pub fn of_class(class: &Bound<'_, PyType>) -> PyResult<Option<&'static Self>> {
        let py = class.py();
        if TORCH.get(py).is_none() {
            let modules = py.import("sys")?.getattr(intern!(py, "modules"))?.cast_into::<PyDict>()?;
            let Some(module) = modules.get_item(intern!(py, "torch"))? else { return Ok(None) };
            // While it is being imported there are no tensors yet.
            let Some(tensor) = module.getattr_opt(intern!(py, "Tensor"))? else { return Ok(None) };
            let Ok(tensor) = tensor.cast_into::<PyType>() else { return Ok(None) };
            if !class.is_subclass(&tensor)? {
                return Ok(None);
            }
            TORCH.get_or_try_init(py, || Self::new(tensor))?;
        }
        let Some(torch) = TORCH.get(py) else { return Ok(None) };
        Ok(class.is_subclass(torch.tensor.bind(py))?.then_some(torch))
    }

    fn new(tensor: Bound<'_, PyType>) -> PyResult<Self> {
        let py = tensor.py();
        let is_neg = tensor.getattr(intern!(py, "is_neg"))?.unbind();
        let untyped_storage = tensor.getattr(intern!(py, "untyped_storage"))?.unbind();
        let parameter = py.import("torch.nn.parameter")?.getattr(intern!(py, "Parameter"))?.unbind();
        let graph = py.import("torch.autograd.graph")?;
        let increment_version = graph.getattr(intern!(py, "increment_version"))?.unbind();
        let (reader, attempts) = (OnceLock::new(), AtomicU8::new(0));
        Ok(Self { tensor: tensor.unbind(), parameter, is_neg, increment_version, untyped_storage, reader, attempts })
    }

    /// The functions that read tensors without running Python, where they were found.
    #[inline]
    pub fn reader(&self) -> Option<&TensorReader> {
        self.reader.get()
    }

    /// Looks for the functions that read tensors, which runs Python, unless they were found or are not there.
    pub fn find_reader(&self, py: Python<'_>) -> PyResult<()> {
        if self.reader.get().is_some() || self.attempts.load(Ordering::Relaxed) >= ATTEMPTS {
            return Ok(());
        }
        self.attempts.fetch_add(1, Ordering::Relaxed);
        if let Some(reader) = TensorReader::find(py)? {
            _ = self.reader.set(reader);
        }
        Ok(())
    }

    /// Whether a class is that of tensors or of parameters, rather than one derived from them.
    pub fn is_own(&self, class: &Bound<'_, PyType>) -> bool {
        class.is(self.tensor.bind(class.py())) || class.is(self.parameter.bind(class.py()))
    }

    /// Whether the negative bit of a tensor is set.
    pub fn is_negated(&self, tensor: &Object<'_>) -> PyResult<bool> {
        self.is_neg.bind(tensor.py()).call1((tensor,))?.is_truthy()
    }

    /// Whether the storage of a tensor is too small for the elements of its view: it was shrunk after the tensor was made.
    pub fn is_shrunk(&self, tensor: &Object<'_>, view: &ArrayView) -> PyResult<bool> {
        let py = tensor.py();
        if let Some(has_all) = self.has_all(tensor, view) {
            return Ok(!has_all);
        }
        if view.extents.contains(&0) {
            return Ok(false);
        }
        let storage = self.untyped_storage.bind(py).call1((tensor,))?;
        let start: usize = storage.call_method0(intern!(py, "data_ptr"))?.extract()?;
        let length = storage.len()?; // in bytes
        let span = view.span(view.dtype.map_or(1, Dtype::size));
        Ok(span.start < start || span.end > start.saturating_add(length))
    }

    /// Whether all elements of a tensor, which a view describes, lie in its storage; `None` where only Python could tell.
    #[inline]
    fn has_all(&self, tensor: &Object<'_>, view: &ArrayView) -> Option<bool> {
        let size = view.dtype.map(Dtype::size)?;
        let span = view.span(size);
        Some(self.reader()?.storage(tensor)?.has(size, span.end - span.start))
    }

    /// Whether all elements of a tensor are known to lie in its storage; runs no Python.
    #[inline]
    pub fn is_whole(&self, tensor: &Object<'_>, view: &ArrayView) -> bool {
        self.has_all(tensor, view) == Some(true)
    }

    /// Counts a change of each of these tensors, if there are any.
    pub fn count_changes(tensors: &Bound<'_, PyTuple>) -> PyResult<()> {
        let py = tensors.py();
        let Some(torch) = TORCH.get(py) else { return Ok(()) };
        let count = || torch.increment_version.bind(py).call1((tensors,)).map(drop);
        // An interrupt may come before the count. The memory is written already: count first, then raise.
        count().or_else(|interrupt| count().and(Err(interrupt)))
    }
}
