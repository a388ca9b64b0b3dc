//! Parts of the formulas for `f32`.

use crate::simd::lane::{Lane, rounder};

/// A lane of `f32`.
pub trait Single: Lane<Element = f32> {}
impl<L: Lane<Element = f32>> Single for L {}

/// ln 2, and the rest of it.
pub const LN2: [f64; 2] = [0.693_147_182_464_599_6, -1.904_654_323_148_236e-9];

/// The nearest whole number, of a product that is less than 2^22.
#[inline(always)]
pub fn nearest_of<L: Single>(x: L, factor: f64) -> L {
    let round = L::splat(rounder::<f32>());
    x.mul_add(L::splat(factor), round).sub(round)
}
