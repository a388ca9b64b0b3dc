//! Recorded functions as programs: entries that a host computes, and the passes over them.

mod passes;
mod program;
mod scalars;
mod schedule;

pub use program::{Entry, Id, Origin, Program};
pub use scalars::{Condition, ScalarCall, ScalarRun};
pub use schedule::{Schedule, Step};
