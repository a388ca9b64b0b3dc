//! Execution of kernels over the leaves of a tree: the entry points (`run`), the work and its checks (`batch`, `check`)
//! and division (`plan`), the interpreter (`interpreter`, `loops`, `register`) and native code (`native`), and the
//! conversion and prefetch of memory (`transfer`, `prefetch`). `step_count` has the count and the progress of
//! an optimizer's steps, [`array_run`] runs calls of a recording, [`xla`] kernels for JAX.
//!
//! The result is the same, to the bit, for any instruction set, any number of threads and any layout of the memory.

pub mod array_run;
mod batch;
mod check;
mod interpreter;
mod loops;
mod native;
mod plan;
mod prefetch;
mod register;
mod run;
mod step_count;
mod transfer;
pub mod xla;

pub use batch::{Batch, CHUNK, Leaf};
pub use check::check;
pub use interpreter::Scratch;
pub use run::{Measured, Partials, apply, measure, run, run_checked, run_one};
pub use step_count::{MOST_STEPS, StepCount};
