//! The place of an array in memory, found in one step and compared in the next.

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::view::ArrayView;
use pyo3::prelude::*;

use crate::arrays::dlpack::{Export, Exporters};
use crate::arrays::numpy::Numpy;

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
    kind: Kind,
}

enum Kind {
    /// An array whose numbers are those in its memory, always.
    Plain,
    /// A tensor of PyTorch's, seen without its negative bit, by the address of the object.
    Tensor(usize),
    /// A tensor that may be given the bit and stay where it is, and has to be asked each time.
    Unsure,
}

// SAFETY: the pointer of the view is only compared, or handed to `Buffer`, which makes no use of it.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// The place of an object that has been seen to have its numbers in memory.
    pub fn new<'py>(look: &mut Look<'py>, object: &Bound<'py, PyAny>, view: ArrayView) -> Self {
        let kind = match look.exporters.is_tensor(object) {
            false => Kind::Plain,
            true if is_adjacent(&view) => Kind::Tensor(object.as_ptr().addr()),
            true => Kind::Unsure,
        };
        Self { view, kind }
    }

    /// The place of a NumPy array.
    pub fn of_numpy(view: ArrayView) -> Self {
        Self { view, kind: Kind::Plain }
    }

    /// Whether an object has its numbers in memory, if it still is here: it is the tensor that was seen, or none.
    ///
    /// A weak reference would tell a new tensor at the address of a freed one, but a tensor that has one cannot be
    /// swapped with another (`torch.utils.swap_tensors`).
    #[inline]
    pub fn is_of<'py>(&self, look: &mut Look<'py>, object: &Bound<'py, PyAny>) -> bool {
        match self.kind {
            Kind::Plain => look.numpy.is_plain_array(object) || !look.exporters.is_tensor(object),
            Kind::Tensor(address) => object.as_ptr().addr() == address,
            Kind::Unsure => false,
        }
    }

    /// Whether an object, which `is_of` this place, is still here.
    #[inline]
    pub fn has<'py>(&self, look: &mut Look<'py>, object: &Bound<'py, PyAny>) -> bool {
        look.is_at(object, &self.view)
    }

    /// As `has`; adds what holds the memory of a tensor, so that telling PyTorch of the change is quick.
    #[inline]
    pub fn holds<'py>(
        &self,
        look: &mut Look<'py>,
        object: &Bound<'py, PyAny>,
        held: &mut Vec<Export>,
    ) -> PyResult<bool> {
        if !matches!(self.kind, Kind::Tensor(_)) {
            return Ok(self.has(look, object));
        }
        let export = look.exporters.held_at(object, &self.view)?;
        Ok(export.map(|export| held.push(export)).is_some())
    }
}

/// Whether elements lie next to each other along some axis. Not so those of the imaginary part of a complex array: that
/// of its conjugate is where the negative bit comes from.
fn is_adjacent(view: &ArrayView) -> bool {
    let size = view.dtype.map_or(0, Dtype::size).cast_signed();
    view.extents.iter().zip(&view.strides).any(|(extent, stride)| *extent > 1 && *stride == size)
}
