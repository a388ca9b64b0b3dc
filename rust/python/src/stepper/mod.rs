//! Steps of optimizers: tracing of rules into kernels (`symbols`) and their text for devices (`cuda`), the step (`step`,
//! its arguments `stated`), its `parameters`, its update and other writes (`update`, `slices`, `launches`, `write`),
//! and the lock of an optimizer (`lock`).

pub mod cuda;
mod launches;
pub mod lock;
mod parameters;
pub mod signature;
pub mod slices;
pub mod stated;
pub mod step;
pub mod symbols;
mod update;
mod write;
