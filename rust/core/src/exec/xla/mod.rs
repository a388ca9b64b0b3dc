//! Kernels as custom calls of XLA's, by which JAX runs a step inside of a compiled function: the C structures (`abi`),
//! the checks of a call (`frame`), its text (`call`) and its execution (`handler`).

mod abi;
mod call;
mod frame;
mod handler;
#[cfg(test)]
mod tests;

pub use abi::{CallFrame, Error};
pub use call::{CallLeaf, Calls, Stated, StatedProgram};
pub use handler::handle;
