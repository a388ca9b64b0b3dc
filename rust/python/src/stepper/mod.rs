//! Steps of optimizers: tracing rules into kernels, running them over host memory, and the lock of an optimizer.

mod checks;
pub mod lock;
mod parameter;
mod phase;
mod prepared;
mod requirements;
mod slot;
pub mod stated;
pub mod step;
pub mod symbols;
mod update;
mod write;
