//! The part of oxigrad that knows no Python: no pyo3, no I/O, no globals.

#![allow(
    clippy::inline_always,
    reason = "lanes must melt into the loop compiled for their instruction set: see `lane`"
)]

pub mod buffer;
pub mod chart;
mod dtype;
pub mod error;
pub mod exec;
pub mod fold;
pub mod half;
pub mod kernel;
pub mod lane;
pub mod native;
pub mod noise;
pub mod op;
pub mod overlap;
pub mod print;
pub mod product;
pub mod quantized;
pub mod rows;
pub mod tape;
pub mod tree;
