//! Functions of C over small arrays, as NumPy's inner loops are. One of the files that touch foreign memory.

use std::ffi::c_void;

use smallvec::SmallVec;

use crate::array::buffer::Dtype;
use crate::array::shape::Strides;

/// A function over arrays, their extents and their strides in bytes, first those of a loop of one repetition, and data of its own.
pub type Function = unsafe extern "C" fn(*mut *mut u8, *const isize, *const isize, *mut c_void);

/// A function of arrays of one dtype, whose last operand is the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    function: usize,
    data: usize,
    pub(super) dtype: Dtype,
    /// For each operand the extents of its axes, by number.
    pub(super) operands: &'static [&'static [usize]],
}

impl Foreign {
    /// The function, with data.
    ///
    /// # Safety
    /// The function must compute on any arrays of the dtype of such operands that do not overlap, on any thread, for as long as this is there.
    #[must_use]
    pub unsafe fn new(
        function: Function,
        data: *mut c_void,
        dtype: Dtype,
        operands: &'static [&'static [usize]],
    ) -> Self {
        Self { function: function as usize, data: data.expose_provenance(), dtype, operands }
    }
}

/// The results of a function that are left to others: errors, or warnings, of its library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    None,
    /// Results that are not finite.
    Infinite,
    /// Results that are zero, or nearly, too.
    Small,
}

/// A function and the operands of a step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ForeignWork {
    pub function: Foreign,
    /// The first element of each argument, in bytes.
    pub firsts: SmallVec<[isize; 2]>,
    pub extents: SmallVec<[isize; 4]>,
    pub strides: Strides,
    /// The number of results.
    pub length: usize,
    pub left: Left,
}

impl ForeignWork {
    /// Computes the results of a step; returns whether none of them is left to others.
    ///
    /// # Safety
    /// The arguments and the memory of the results must be those of the plan.
    pub unsafe fn compute(&self, from: [*mut u8; 3], to: *mut u8) -> bool {
        let ahead = self.firsts.iter().zip(from).map(|(first, from)| from.wrapping_offset(*first));
        let mut arrays: SmallVec<[*mut u8; 3]> = ahead.chain([to]).collect();
        // SAFETY: the address is that of such a function; the operands are the caller's promise.
        unsafe {
            let function = std::mem::transmute::<usize, Function>(self.function.function);
            let data = std::ptr::with_exposed_provenance_mut(self.function.data);
            function(arrays.as_mut_ptr(), self.extents.as_ptr(), self.strides.as_ptr(), data);
            let number = |at| to.add(at * size_of::<f64>()).cast::<f64>().read_unaligned();
            let mut numbers = (0..self.length).map(number);
            match self.left {
                Left::None => true,
                Left::Infinite => numbers.all(f64::is_finite),
                Left::Small => numbers.all(f64::is_normal),
            }
        }
    }
}
