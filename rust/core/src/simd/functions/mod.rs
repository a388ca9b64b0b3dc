//! The functions of [`crate::simd::math`], by family, and the `parts` of which they are made. `pair` has numbers of two
//! lanes, `single` the formulas for `f32`, `whole` what rounds.

pub mod angle;
pub mod error_function;
pub mod exponential;
pub mod hyperbolic;
pub mod logarithm;
mod pair;
pub mod parts;
pub mod power;
pub mod single;
pub mod trigonometric;
pub mod whole;
