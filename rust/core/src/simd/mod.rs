//! SIMD lanes: vectors of floating-point numbers. The scalar lane is one number.
//!
//! [`lane`] has the traits, [`math`] the functions (by family in `functions`), and [`traced`] a lane that records what
//! is computed. Each of the `instruction_sets` has a row in [`dispatch`], which alone detects the features of the
//! processor. `float_env` sets the floating-point environment, `prefetch` prefetches memory, `crc32c` computes
//! checksums. All methods are `#[inline(always)]`, so that they are inlined into functions that `dispatch` compiles with
//! the features of the instruction set enabled.

mod crc32c;
pub mod dispatch;
mod float_env;
mod functions;
mod instruction_sets;
pub mod lane;
pub mod math;
pub mod noise;
mod prefetch;
pub mod traced;

pub use lane::{Binary, Body, Code, Element, Lane, Rare, Simd, Task, Ternary, Unary, Wide};
pub(crate) use prefetch::fetch;
