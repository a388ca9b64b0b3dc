//! Kernels as custom calls of XLA's, by which JAX runs a step inside of a compiled function: the C structures (`abi`),
//! the checks of a call (`frame`), its text (`call`) and its execution (`handler`).
//!
//! Nothing here touches Python while a call runs.

mod abi;
mod call;
mod frame;
mod handler;

pub use call::xla_call;
pub use handler::xla_handler;
