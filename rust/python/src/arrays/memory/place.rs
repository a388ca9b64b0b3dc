//! The place of an array in memory, found in one step and compared in the next.

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::view::ArrayView;

use crate::arrays::memory::dlpack::Export;
use crate::arrays::memory::exporters::Exporters;
use crate::arrays::memory::numpy::Numpy;
use crate::prelude::*;

/// Checks whether arrays still are where they were, without running Python.
pub struct Look<'py> {
    numpy: &'py Numpy,
    pub exporters: Exporters<'py>,
}

impl<'py> Look<'py> {
    pub fn new(py: Python<'py>) -> Self {
        Self { numpy: Numpy::get(py), exporters: Exporters::default() }
    }

    /// Whether an object is the array that a view describes; false where only an export could tell.
    #[inline]
    pub fn is_at(&mut self, object: &Object<'py>, view: &ArrayView) -> bool {
        self.numpy.is_at(object, view).unwrap_or_else(|| self.exporters.is_at(object, view))
    }

    /// Whether `is_at` is available for an object.
    pub fn can_tell(&mut self, object: &Object<'py>) -> bool {
        self.numpy.fields(object).is_some() || self.exporters.can_tell(object)
    }
}

/// The place of an array: its description, without a reference.
pub struct Place {
    pub view: ArrayView,
    negative_bit: NegativeBit,
}

/// The negative bit of an array.
enum NegativeBit {
    /// An array that cannot have a negative bit.
    Impossible,
    /// A PyTorch tensor without its negative bit, by the address of the object.
    Unset(usize),
    /// The same, of a tensor whose bit may change while its memory stays the same, so that it is checked each time.
    Unsure(usize),
}

// SAFETY: the pointer of the view is only compared, or passed to `Buffer`, which does not dereference it.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// The place of an object whose negative bit is known not to be set.
    pub fn new<'py>(look: &mut Look<'py>, object: &Object<'py>, view: ArrayView) -> Self {
        let negative_bit = match look.exporters.is_tensor(object) {
            false => NegativeBit::Impossible,
            true if is_no_part(&view) => NegativeBit::Unset(object.as_ptr().addr()),
            true => NegativeBit::Unsure(object.as_ptr().addr()),
        };
        Self { view, negative_bit }
    }

    /// The place of a NumPy array.
    pub fn of_numpy(view: ArrayView) -> Self {
        Self { view, negative_bit: NegativeBit::Impossible }
    }

    /// Whether an object that still is here has no negative bit: it is the tensor that was checked, or not a tensor.
    ///
    /// A weak reference would tell a new tensor at the address of a freed one, but a tensor that has one cannot be
    /// swapped with another (`torch.utils.swap_tensors`).
    #[inline]
    pub fn is_of<'py>(&self, look: &mut Look<'py>, object: &Object<'py>) -> bool {
        match self.negative_bit {
            NegativeBit::Impossible => look.numpy.is_plain_array(object) || !look.exporters.is_tensor(object),
            NegativeBit::Unset(address) => object.as_ptr().addr() == address,
            NegativeBit::Unsure(_) => false,
        }
    }

    /// Whether it is that of a PyTorch tensor.
    pub fn is_of_tensor(&self) -> bool {
        !matches!(self.negative_bit, NegativeBit::Impossible)
    }

    /// Whether it is that of this very tensor, whose negative bit is to be checked each time.
    #[inline]
    pub fn is_unsure_of(&self, object: &Object<'_>) -> bool {
        matches!(self.negative_bit, NegativeBit::Unsure(address) if address == object.as_ptr().addr())
    }

    /// Whether an object, which `is_of` this place, is still here.
    #[inline]
    pub fn has<'py>(&self, look: &mut Look<'py>, object: &Object<'py>) -> bool {
        look.is_at(object, &self.view)
    }

    /// As `has`; adds the owner of the memory of a tensor, which makes notifying PyTorch of the change faster.
    #[inline]
    pub fn holds<'py>(&self, look: &mut Look<'py>, object: &Object<'py>, held: &mut Vec<Export>) -> PyResult<bool> {
        if !self.is_of_tensor() {
            return Ok(self.has(look, object));
        }
        let export = look.exporters.held_at(object, &self.view)?;
        Ok(export.map(|export| held.push(export)).is_some())
    }
}

/// Whether the elements cannot be the imaginary part of a complex array, of whose conjugate it would have the negative bit:
/// they lie next to each other along some axis, or it is a single one where none can lie.
fn is_no_part(view: &ArrayView) -> bool {
    let size = view.dtype.map_or(0, Dtype::size);
    let is_single = view.extents.iter().all(|extent| *extent == 1);
    let mut axes = view.extents.iter().zip(&view.strides);
    axes.any(|(extent, stride)| *extent > 1 && *stride == size.cast_signed())
        || (is_single && size > 0 && view.pointer.addr().is_multiple_of(2 * size))
}
