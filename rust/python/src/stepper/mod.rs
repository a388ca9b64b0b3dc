//! Steps of optimizers: tracing of rules into kernels (`symbols`) and their text for devices (`cuda`), the step (`step`, its arguments `stated`, its
//! `phase`), its parameters and slots (`parameter`, `slot`, `prepared`), its checks (`checks`, `requirements`), its
//! update and other writes (`update`, `launches`, `write`), and the lock of an optimizer (`lock`).

mod checks;
pub mod cuda;
mod launches;
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
