//! The part of oxigrad that knows no Python: no pyo3, no I/O, no globals.

pub mod buffer;
pub mod error;
pub mod exec;
pub mod kernel;
pub mod lane;
mod native;
pub mod noise;
pub mod op;
pub mod overlap;
pub mod print;
pub mod tape;
