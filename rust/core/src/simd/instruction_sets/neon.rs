//! NEON: four `f32` or two `f64`. Its lanes are used only in functions that `dispatch` calls after it has
//! detected the instruction set: every safety comment here that says "detected" means this.

#[allow(clippy::wildcard_imports, reason = "the names of the intrinsics say where they are from")]
use std::arch::aarch64::*;

use super::intrinsics::{detected, in_memory};
use crate::simd::lane::{Binary, Function, Lane, Unary, Wide};

/// The instruction set: see its row in `dispatch`.
pub struct Neon;

/// Four `f32`.
#[derive(Clone, Copy)]
pub struct F32x4(float32x4_t);

/// Two `f64`.
#[derive(Clone, Copy)]
pub struct F64x2(float64x2_t);

impl Lane for F32x4 {
    type Mask = uint32x4_t;
    type Element = f32;
    type Wide = F64x2;
    type Set = Neon;
    type Bits = uint32x4_t;
    const WIDTH: usize = 4;

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "rounding to the element is the point")]
    fn splat(value: f64) -> Self {
        // SAFETY: register arithmetic only, and the instruction set was detected.
        Self(unsafe { vdupq_n_f32(value as f32) })
    }

    in_memory! {
        fn load(from: *const f32) -> Self = Self(vreinterpretq_f32_u8(vld1q_u8(from.cast())));
        fn load_part(from: *const f32, count: usize) -> Self = {
            let mut numbers = [0.0f32; 4];
            std::ptr::copy_nonoverlapping(from.cast::<u8>(), numbers.as_mut_ptr().cast(), count * 4);
            Self::load(numbers.as_ptr())
        };
        fn store(self: Self, to: *mut f32) -> () = vst1q_u8(to.cast(), vreinterpretq_u8_f32(self.0));
        fn store_part(self: Self, to: *mut f32, count: usize) -> () = {
            let mut numbers = [0.0f32; 4];
            self.store(numbers.as_mut_ptr());
            std::ptr::copy_nonoverlapping(numbers.as_ptr().cast::<u8>(), to.cast(), count * 4);
        };
        fn store_wide(self: Self, to: *mut f64) -> () = {
            let [low, high] = widen(self);
            low.store(to);
            high.store(to.add(2));
        };
        fn load_wide(from: *const f64) -> Self = narrow(F64x2::load(from), F64x2::load(from.add(2)));
    }

    detected! {
        fn add(self: Self, other: Self) -> Self = Self(vaddq_f32(self.0, other.0));
        fn sub(self: Self, other: Self) -> Self = Self(vsubq_f32(self.0, other.0));
        fn mul(self: Self, other: Self) -> Self = Self(vmulq_f32(self.0, other.0));
        fn div(self: Self, other: Self) -> Self = Self(vdivq_f32(self.0, other.0));
        fn mul_add(self: Self, factor: Self, summand: Self) -> Self = Self(vfmaq_f32(summand.0, self.0, factor.0));
        fn neg(self: Self) -> Self = Self(vnegq_f32(self.0));
        fn abs(self: Self) -> Self = Self(vabsq_f32(self.0));
        fn sqrt(self: Self) -> Self = Self(vsqrtq_f32(self.0));
        fn floor(self: Self) -> Self = Self(vrndmq_f32(self.0));
        fn lt(self: Self, other: Self) -> uint32x4_t = vcltq_f32(self.0, other.0);
        fn le(self: Self, other: Self) -> uint32x4_t = vcleq_f32(self.0, other.0);
        fn eq(self: Self, other: Self) -> uint32x4_t = vceqq_f32(self.0, other.0);
        fn ne(self: Self, other: Self) -> uint32x4_t = vmvnq_u32(vceqq_f32(self.0, other.0));
        fn any(mask: uint32x4_t) -> bool = vmaxvq_u32(mask) != 0;
        fn select(mask: uint32x4_t, yes: Self, no: Self) -> Self = Self(vbslq_f32(mask, yes.0, no.0));
    }

    detected! {
        fn bits(value: u64) -> uint32x4_t = vdupq_n_u32(value as u32);
        fn to_bits(self: Self) -> uint32x4_t = vreinterpretq_u32_f32(self.0);
        fn from_bits(bits: uint32x4_t) -> Self = Self(vreinterpretq_f32_u32(bits));
        fn bits_add(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vaddq_u32(a, b);
        fn bits_sub(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vsubq_u32(a, b);
        fn bits_and(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vandq_u32(a, b);
        fn bits_or(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vorrq_u32(a, b);
        fn bits_up(a: uint32x4_t) -> uint32x4_t = vshlq_n_u32::<23>(a);
        fn bits_down(a: uint32x4_t) -> uint32x4_t = vshrq_n_u32::<23>(a);
    }
    #[inline(always)]
    fn function<F: Function>(self) -> Self {
        F::single(self)
    }
    #[inline(always)]
    fn wide(self, f: impl Unary<F64x2>) -> Self {
        let [low, high] = widen(self);
        narrow(f.call(low), f.call(high))
    }
    #[inline(always)]
    fn wide_pair(self, other: Self, f: impl Binary<F64x2>) -> Self {
        let ([low, high], [other_low, other_high]) = (widen(self), widen(other));
        narrow(f.call(low, other_low), f.call(high, other_high))
    }
}

#[inline(always)]
fn widen(lane: F32x4) -> [F64x2; 2] {
    // SAFETY: register arithmetic only, and the instruction set was detected.
    unsafe { [F64x2(vcvt_f64_f32(vget_low_f32(lane.0))), F64x2(vcvt_high_f64_f32(lane.0))] }
}

#[inline(always)]
fn narrow(low: F64x2, high: F64x2) -> F32x4 {
    // SAFETY: register arithmetic only, and the instruction set was detected.
    unsafe { F32x4(vcvt_high_f32_f64(vcvt_f32_f64(low.0), high.0)) }
}

impl Lane for F64x2 {
    type Mask = uint64x2_t;
    type Element = f64;
    type Wide = Self;
    type Set = Neon;
    type Bits = uint64x2_t;
    const WIDTH: usize = 2;

    in_memory! {
        fn load(from: *const f64) -> Self = Self(vreinterpretq_f64_u8(vld1q_u8(from.cast())));
        fn load_part(from: *const f64, count: usize) -> Self = {
            let mut numbers = [0.0f64; 2];
            std::ptr::copy_nonoverlapping(from.cast::<u8>(), numbers.as_mut_ptr().cast(), count * 8);
            Self::load(numbers.as_ptr())
        };
        fn store(self: Self, to: *mut f64) -> () = vst1q_u8(to.cast(), vreinterpretq_u8_f64(self.0));
        fn store_part(self: Self, to: *mut f64, count: usize) -> () = {
            let mut numbers = [0.0f64; 2];
            self.store(numbers.as_mut_ptr());
            std::ptr::copy_nonoverlapping(numbers.as_ptr().cast::<u8>(), to.cast(), count * 8);
        };
        fn store_wide(self: Self, to: *mut f64) -> () = self.store(to);
        fn load_wide(from: *const f64) -> Self = Self::load(from);
    }

    detected! {
        fn splat(value: f64) -> Self = Self(vdupq_n_f64(value));
        fn add(self: Self, other: Self) -> Self = Self(vaddq_f64(self.0, other.0));
        fn sub(self: Self, other: Self) -> Self = Self(vsubq_f64(self.0, other.0));
        fn mul(self: Self, other: Self) -> Self = Self(vmulq_f64(self.0, other.0));
        fn div(self: Self, other: Self) -> Self = Self(vdivq_f64(self.0, other.0));
        fn mul_add(self: Self, factor: Self, summand: Self) -> Self = Self(vfmaq_f64(summand.0, self.0, factor.0));
        fn neg(self: Self) -> Self = Self(vnegq_f64(self.0));
        fn abs(self: Self) -> Self = Self(vabsq_f64(self.0));
        fn sqrt(self: Self) -> Self = Self(vsqrtq_f64(self.0));
        fn floor(self: Self) -> Self = Self(vrndmq_f64(self.0));
        fn lt(self: Self, other: Self) -> uint64x2_t = vcltq_f64(self.0, other.0);
        fn le(self: Self, other: Self) -> uint64x2_t = vcleq_f64(self.0, other.0);
        fn eq(self: Self, other: Self) -> uint64x2_t = vceqq_f64(self.0, other.0);
        fn ne(self: Self, other: Self) -> uint64x2_t =
            vreinterpretq_u64_u32(vmvnq_u32(vreinterpretq_u32_u64(vceqq_f64(self.0, other.0))));
        fn any(mask: uint64x2_t) -> bool = vmaxvq_u32(vreinterpretq_u32_u64(mask)) != 0;
        fn select(mask: uint64x2_t, yes: Self, no: Self) -> Self = Self(vbslq_f64(mask, yes.0, no.0));
    }

    detected! {
        fn bits(value: u64) -> uint64x2_t = vdupq_n_u64(value);
        fn to_bits(self: Self) -> uint64x2_t = vreinterpretq_u64_f64(self.0);
        fn from_bits(bits: uint64x2_t) -> Self = Self(vreinterpretq_f64_u64(bits));
        fn bits_add(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vaddq_u64(a, b);
        fn bits_sub(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vsubq_u64(a, b);
        fn bits_and(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vandq_u64(a, b);
        fn bits_or(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t = vorrq_u64(a, b);
        fn bits_up(a: uint64x2_t) -> uint64x2_t = vshlq_n_u64::<52>(a);
        fn bits_down(a: uint64x2_t) -> uint64x2_t = vshrq_n_u64::<52>(a);
    }
    #[inline(always)]
    fn function<F: Function>(self) -> Self {
        F::double(self)
    }
    #[inline(always)]
    fn wide(self, f: impl Unary<Self>) -> Self {
        f.call(self)
    }
    #[inline(always)]
    fn wide_pair(self, other: Self, f: impl Binary<Self>) -> Self {
        f.call(self, other)
    }
}

impl Wide for F64x2 {}
