//! Steps of optimizers: tracing rules into kernels, running them over host memory, and the lock of an optimizer.

pub mod lock;
pub mod step;
pub mod symbols;
