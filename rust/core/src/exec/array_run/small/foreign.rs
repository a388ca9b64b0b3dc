//! Functions of C as steps of a run. One of the files that touch foreign memory.

use smallvec::SmallVec;

use super::super::foreign::Foreign;
use crate::array::shape::Strides;

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
        // SAFETY: promised by the caller.
        unsafe {
            self.function.call(&mut arrays, &self.extents, &self.strides);
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
