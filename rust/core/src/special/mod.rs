//! Special functions of numbers, one at a time: [`crate::simd::math`] calls them for each element of a lane.

pub mod bessel;
pub mod double_double;
pub mod error_function;
pub mod gamma;
pub mod incomplete;
pub mod incomplete_slopes;
