//! SIMD lanes: vectors of floating-point numbers. The scalar lane is one number.
//!
//! [`lane`] has the traits, [`math`] the functions (with `exponential`, `logarithm`, `power`, `trigonometric`, `angle`,
//! `hyperbolic`, `error_function` and `whole`, of the `parts`; `pair` are numbers of two lanes), and [`traced`] a lane that records what is computed. Each instruction set
//! (`scalar`, `avx2`, `avx512`, `neon`, by the macros of `intrinsics`) has a file with its `impl Lane` and nothing else,
//! and a row in [`dispatch`], which alone detects the features of the processor. `float_env` sets the floating-point
//! environment, `prefetch` prefetches memory, `crc32c` computes checksums. All methods are `#[inline(always)]`, so that
//! they are inlined into functions that `dispatch` compiles with the features of the instruction set enabled.

mod angle;
mod crc32c;
pub mod dispatch;
mod error_function;
mod exponential;
mod float_env;
mod hyperbolic;
pub mod lane;
mod logarithm;
pub mod math;
mod pair;
mod parts;
mod power;
mod prefetch;
mod scalar;
pub mod traced;
mod trigonometric;
mod whole;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod intrinsics;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

pub use lane::{Binary, Body, Element, Lane, Rare, Simd, Task, Ternary, Unary, Wide};
pub(crate) use prefetch::fetch;
