//! The lanes of each instruction set, by the macros of `intrinsics`: a file with its `impl Lane` and nothing else, and
//! a row in [`crate::simd::dispatch`]. `scalar` is one number at a time.

pub mod scalar;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod intrinsics;

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
#[cfg(target_arch = "aarch64")]
pub mod neon;
