//! Rounding of numbers to those of a narrower type: each lane is stored in that type, and loaded again.

use super::lane::{Lane, WIDEST};
use crate::array::half::{Bfloat16, Float16, Half};

/// The nearest number of bfloat16, ties to even.
#[inline(always)]
pub fn to_bfloat16<L: Lane>(a: L) -> L {
    let mut halves = [Bfloat16::from_bits(0); WIDEST];
    // SAFETY: the array has room for the widest lane.
    unsafe {
        a.store_bf16(halves.as_mut_ptr());
        L::load_bf16(halves.as_ptr())
    }
}

/// The nearest number of float16, ties to even.
#[inline(always)]
pub fn to_float16<L: Lane>(a: L) -> L {
    let mut halves = [Float16::from_bits(0); WIDEST];
    // SAFETY: the array has room for the widest lane.
    unsafe {
        a.store_f16(halves.as_mut_ptr());
        L::load_f16(halves.as_ptr())
    }
}
