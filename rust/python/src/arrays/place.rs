//! The place of an array in memory, found in one step and compared in the next.

use oxigrad_core::array::view::ArrayView;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::arrays::dlpack::{Export, Exporters};
use crate::arrays::numpy::Numpy;
use crate::error::unless;

/// Looks at arrays: whether they still are where they were. It runs no Python.
pub struct Look<'py> {
    numpy: &'py Numpy,
    pub exporters: Exporters<'py>,
}

impl<'py> Look<'py> {
    pub fn new(numpy: &'py Numpy) -> Self {
        Self { numpy, exporters: Exporters::default() }
    }

    /// Whether an object is the array that a view describes; no where only an export would tell.
    #[inline]
    pub fn is_at(&mut self, object: &Bound<'py, PyAny>, view: &ArrayView) -> bool {
        self.numpy.is_at(object, view).unwrap_or_else(|| self.exporters.is_at(object, view))
    }

    /// Whether `is_at` can tell of an object.
    pub fn can_tell(&mut self, object: &Bound<'py, PyAny>) -> bool {
        self.numpy.fields(object).is_some() || self.exporters.can_tell(object)
    }
}

/// The place of an array: its description, which keeps nothing alive.
pub struct Place {
    pub view: ArrayView,
    /// The object, if it is a tensor of PyTorch's: another one at the same place may have its negative bit set. For the
    /// one that was seen, only an assignment to its attribute `data` can set it and leave the memory the same.
    tensor: Option<Py<PyWeakrefReference>>,
}

// SAFETY: the pointer of the view is only compared, or handed to `Buffer`, which makes no use of it.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// The place of an object that has been seen to have its numbers in memory.
    pub fn new<'py>(look: &mut Look<'py>, object: &Bound<'py, PyAny>, view: ArrayView) -> PyResult<Self> {
        let tensor = if look.exporters.is_tensor(object) {
            unless::<PyTypeError, _>(object.py(), PyWeakrefReference::new(object))?.map(Bound::unbind)
        } else {
            None
        };
        Ok(Self { view, tensor })
    }

    /// The place of a NumPy array.
    pub fn of_numpy(view: ArrayView) -> Self {
        Self { view, tensor: None }
    }

    /// Whether an object is the one that was seen, where that matters.
    #[inline]
    pub fn is_of<'py>(&self, look: &mut Look<'py>, object: &Bound<'py, PyAny>) -> bool {
        match &self.tensor {
            None if look.numpy.is_plain_array(object) => true,
            Some(tensor) => tensor.bind(object.py()).upgrade().is_some_and(|seen| seen.is(object)),
            None => !look.exporters.is_tensor(object),
        }
    }

    /// Whether an object is the array that was seen here, with its numbers in memory.
    #[inline]
    pub fn has<'py>(&self, look: &mut Look<'py>, object: &Bound<'py, PyAny>) -> bool {
        look.numpy
            .is_at(object, &self.view)
            .unwrap_or_else(|| self.is_of(look, object) && look.exporters.is_at(object, &self.view))
    }

    /// As `has`; adds what holds the memory of a tensor, so that telling PyTorch of the change is quick.
    #[inline]
    pub fn holds<'py>(
        &self,
        look: &mut Look<'py>,
        object: &Bound<'py, PyAny>,
        held: &mut Vec<Export>,
    ) -> PyResult<bool> {
        if self.tensor.is_none() || !self.is_of(look, object) {
            return Ok(self.has(look, object));
        }
        let export = look.exporters.held_at(object, &self.view)?;
        Ok(export.map(|export| held.push(export)).is_some())
    }
}
