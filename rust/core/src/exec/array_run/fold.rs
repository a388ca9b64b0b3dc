//! Sums, means and extrema along axes. One of the files that touch foreign memory.

use super::foreign::Foreign;
use crate::array::buffer::Buffer;
use crate::array::sum::{Axes, sum};
use crate::error::Result;
use crate::simd::dispatch::Isa;

/// The result of the numbers along axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The result of a function of two numbers on the one of all before and the next.
    Foreign(Foreign),
}

impl Fold {
    /// Whether the bits of a result are known for so many numbers and columns: libraries take longer ones in pieces.
    pub(super) const fn fits(self, Axes { count, inner, .. }: Axes) -> bool {
        const LONGEST: usize = 1 << 12;
        match self {
            Self::Sum | Self::Mean => true,
            Self::Foreign(_) => count > 0 && count <= LONGEST && inner <= LONGEST,
        }
    }

    /// Writes the result along the middle axis of `from` to `to`.
    ///
    /// # Errors
    /// As [`sum`].
    ///
    /// # Safety
    /// As [`sum`]; the two are contiguous, have as many elements as the axes say, and are of the dtype of the function.
    pub(super) unsafe fn compute(self, from: &Buffer, to: &Buffer, axes: Axes, isa: Isa) -> Result<()> {
        #[allow(clippy::cast_precision_loss, reason = "no array has 2^53 elements")]
        let divisor = match self {
            Self::Sum => 1.0,
            Self::Mean => axes.count as f64,
            Self::Foreign(function) => {
                // SAFETY: promised by the caller.
                unsafe { function.fold(from.pointer(), to.pointer(), axes) };
                return Ok(());
            }
        };
        // SAFETY: promised by the caller.
        unsafe { sum(from, to, axes, divisor, isa, None) }
    }
}
