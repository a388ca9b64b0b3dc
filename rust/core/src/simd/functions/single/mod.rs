//! Formulas for `f32`, at most one unit in the last place away: `tests/functions/single.rs` tries all arguments.
//!
//! Each polynomial is minimax for the weighted error that its comment names, by the exchange algorithm of Remez in 160
//! bits. Its coefficients are rounded to `f32` one at a time, the lowest first, and the others fitted again after each.

mod angles;
mod exponentials;
mod logarithms;
mod parts;

pub use angles::{atan, cos, sin, tan};
pub use exponentials::{cosh, erf, exp, expit, expm1, sinh, tanh};
pub use logarithms::{log, log1p, log2};
