//! The only place that asks what the processor can do.

use super::scalar::Scalar;
use super::{Simd, float_env};

#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

/// An instruction set that this processor was seen to have.
///
/// The results do not depend on which is chosen, only the speed does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Isa(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Set {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// What runs on whichever instruction set there is. Mark `run` `#[inline(always)]`, and all that it calls in a loop.
pub trait Task {
    /// What `run` returns.
    type Output;
    /// Does the work on the lanes of one instruction set.
    fn run<S: Simd>(self) -> Self::Output;
}

/// What runs on an instruction set and is called by its address: see [`Simd::address`]. As of [`Task`], mark `call`
/// `#[inline(always)]`.
pub trait Body<A> {
    /// Does the work on the lanes of one instruction set.
    fn call<S: Simd>(argument: A);
}

impl Isa {
    /// One number at a time: any processor.
    pub const SCALAR: Self = Self(Set::Scalar);

    /// The fastest that this processor has. Detect once and pass it on.
    #[must_use]
    pub fn detect() -> Self {
        Self::available()[0]
    }

    /// All that this processor has, the fastest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") && has!("fma") {
                sets.push(Self(Set::Avx512));
            }
            if has!("avx2") && has!("fma") && has!("f16c") {
                sets.push(Self(Set::Avx2));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            sets.push(Self(Set::Neon));
        }
        sets.push(Self::SCALAR);
        sets
    }

    /// The name of the instruction set.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            Set::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Set::Neon => "neon",
        }
    }

    /// Runs the task, compiled for this instruction set, under the standard settings for floating point.
    #[inline]
    pub fn run<T: Task>(self, task: T) -> T::Output {
        let _found = float_env::standard();
        match self.0 {
            // With fused multiply-add in hardware where there is one: the bits are the same, a call to it is not.
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the feature is detected in the same line.
            Set::Scalar if std::arch::is_x86_feature_detected!("fma") => unsafe { on_scalar_with_fma(task) },
            Set::Scalar => task.run::<Scalar>(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `available` is the only source of this value, and it saw these features.
            Set::Avx2 => unsafe { on_avx2(task) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `available` is the only source of this value, and it saw these features.
            Set::Avx512 => unsafe { on_avx512(task) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: `available` is the only source of this value, and it saw the feature.
            Set::Neon => unsafe { on_neon(task) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma")]
fn on_scalar_with_fma<T: Task>(task: T) -> T::Output {
    task.run::<Scalar>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn on_avx2<T: Task>(task: T) -> T::Output {
    task.run::<Avx2>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
fn on_avx512<T: Task>(task: T) -> T::Output {
    task.run::<Avx512>()
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn on_neon<T: Task>(task: T) -> T::Output {
    task.run::<Neon>()
}

pub(super) fn scalar<B: Body<A>, A>(argument: A) {
    B::call::<Scalar>(argument);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn avx2<B: Body<A>, A>(argument: A) {
    B::call::<Avx2>(argument);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
pub(super) fn avx512<B: Body<A>, A>(argument: A) {
    B::call::<Avx512>(argument);
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
pub(super) fn neon<B: Body<A>, A>(argument: A) {
    B::call::<Neon>(argument);
}
