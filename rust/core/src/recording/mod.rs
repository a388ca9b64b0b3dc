//! Recorded functions as programs: entries that a host computes, and the passes over them.

mod hash;
mod passes;
mod program;
mod rolled;
mod scalar_op;
mod scalars;
mod schedule;
mod steps;

pub use hash::{WordHasher, Words};
pub use program::{Entry, Id, Origin, Program};
pub use rolled::{Loop, Rolled};
pub use scalar_op::ScalarOp;
pub use scalars::{ScalarCall, ScalarRun};
pub use schedule::{Schedule, Step};
pub use steps::Computation;
