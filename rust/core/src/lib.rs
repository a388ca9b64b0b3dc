//! The core of oxigrad, independent of Python: no pyo3, no I/O, no globals.

#![allow(
    clippy::inline_always,
    reason = "lanes must be inlined into the loop compiled for their instruction set: see `simd`"
)]

#[cfg(test)]
extern crate self as oxigrad_core; // for tests of what is public

pub mod array;
pub mod autodiff;
pub mod error;
pub mod exec;
pub mod kernel;
pub mod op;
pub mod parallel;
pub mod recording;
pub mod scalar;
pub mod simd;
mod special;
pub mod tree;

// With the unit tests, since every further program would compile the kernels again.
#[cfg(test)]
#[path = "../tests/mod.rs"]
mod tests;
