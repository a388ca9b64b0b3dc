//! The part of oxigrad that knows no Python: no pyo3, no I/O, no globals.

pub mod error;
pub mod lane;
pub mod op;
pub mod tree;
