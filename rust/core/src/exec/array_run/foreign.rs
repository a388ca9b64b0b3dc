//! Functions of C over arrays, as NumPy's inner loops are. One of the files that touch foreign memory.

use std::ffi::c_void;

use crate::array::buffer::Dtype;
use crate::array::sum::Axes;

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

    /// Calls the function.
    ///
    /// # Safety
    /// There are as many addresses, extents and strides as the function has, of such arrays.
    pub(super) unsafe fn call(&self, arrays: &mut [*mut u8], extents: &[isize], strides: &[isize]) {
        // SAFETY: the address is that of such a function; the rest is the caller's promise.
        unsafe {
            let function = std::mem::transmute::<usize, Function>(self.function);
            let data = std::ptr::with_exposed_provenance_mut(self.data);
            function(arrays.as_mut_ptr(), extents.as_ptr(), strides.as_ptr(), data);
        }
    }

    /// Writes what the function of two numbers leaves of those along the middle axis, as NumPy's reductions of contiguous arrays do.
    ///
    /// # Safety
    /// The function is of two numbers; there are as many numbers of its dtype as the axes say, at least one along the middle axis, at `from`,
    /// and room for the results at `to`; the two do not overlap.
    pub(super) unsafe fn fold(&self, from: *mut u8, to: *mut u8, Axes { outer, count, inner }: Axes) {
        let size = self.dtype.size();
        let at = |pointer: *mut u8, number: usize| pointer.wrapping_add(number * size);
        for index in 0..outer {
            let (from, to) = (at(from, index * count * inner), at(to, index * inner));
            // SAFETY: promised by the caller.
            unsafe {
                to.copy_from_nonoverlapping(from, inner * size);
                let call = |first: usize, length: usize, step: usize| {
                    let strides = [step, size, step].map(usize::cast_signed);
                    self.call(&mut [to, at(from, first), to], &[length.cast_signed()], &strides);
                };
                match inner {
                    1 if count > 1 => call(1, count - 1, 0),
                    1 => {}
                    _ => (1..count).for_each(|row| call(row * inner, inner, size)),
                }
            }
        }
    }
}
