//! Compilation of symbolic programs (`program`) into kernels (`compiled`, `instruction`): simplification (`graph`),
//! lowering to phases (`lower`) and loop fusion (`fuse`); and their forms as native code (`codegen`, `native`, found by
//! `fingerprint`) and as text, to be looked at (`display`) and to be read back (`text`).
//!
//! Semantics of a program: every value that depends on no leaf and no noise is a scalar, computed in `f64` and rounded
//! to the leaf's type where it meets an array; everything else is computed element by element in the leaf's type. A
//! [`Node::Sum`] adds up a whole leaf and is a scalar from the next phase on; so is a [`Node::Dot`], whose products are
//! computed in `f64`, where no product of two `f32` overflows. A [`Node::Total`] adds up a scalar of all leaves.

pub mod codegen;
pub(crate) mod compiled;
pub mod cuda;
mod display;
mod fingerprint;
pub(crate) mod fuse;
mod graph;
mod instruction;
mod lower;
pub mod native;
mod program;
pub mod text;

pub use compiled::Kernel;
pub use program::{Node, Wanted};
