//! AVX-512: sixteen `f32` or eight `f64`. Its lanes are used only in functions that `dispatch` calls after it has
//! detected the instruction set: every safety comment here that says "detected" means this.

#[allow(clippy::wildcard_imports, reason = "the names of the intrinsics say where they are from")]
use std::arch::x86_64::*;

use super::intrinsics::{detected, in_memory};
use crate::array::half::{Bfloat16, Float16};
use crate::simd::lane::{Binary, Function, Lane, Unary, Wide};
use crate::simd::noise::{Draws, FACTORS};

/// The instruction set: see its row in `dispatch`.
pub struct Avx512;

/// Sixteen `f32`.
#[derive(Clone, Copy)]
pub struct F32x16(__m512);

/// Eight `f64`.
#[derive(Clone, Copy)]
pub struct F64x8(__m512d);

/// The lowest `count` bits of sixteen.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "a lane has no more bits")]
fn first(count: usize) -> u16 {
    ((1u32 << count) - 1) as u16
}

/// The lowest `count` bits of eight.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "a lane has no more bits")]
fn first_of_eight(count: usize) -> u8 {
    ((1u32 << count) - 1) as u8
}

const BELOW: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;

impl Lane for F32x16 {
    type Mask = __mmask16;
    type Element = f32;
    type Wide = F64x8;
    type Set = Avx512;
    type Bits = __m512i;
    const WIDTH: usize = 16;
    const MASKED: bool = true;

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "rounding to the element is the point")]
    fn splat(value: f64) -> Self {
        // SAFETY: register arithmetic only, and the instruction set was detected.
        Self(unsafe { _mm512_set1_ps(value as f32) })
    }

    in_memory! {
        fn load(from: *const f32) -> Self = Self(_mm512_loadu_ps(from));
        fn load_part(from: *const f32, count: usize) -> Self = Self(_mm512_maskz_loadu_ps(first(count), from));
        fn store(self: Self, to: *mut f32) -> () = _mm512_storeu_ps(to, self.0);
        fn store_part(self: Self, to: *mut f32, count: usize) -> () = _mm512_mask_storeu_ps(to, first(count), self.0);
        fn store_wide(self: Self, to: *mut f64) -> () = {
            let [low, high] = widen(self);
            low.store(to);
            high.store(to.add(8));
        };
        fn load_wide(from: *const f64) -> Self = narrow(F64x8::load(from), F64x8::load(from.add(8)));
        fn load_bf16(from: *const Bfloat16) -> Self =
            Self(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast())))));
        fn load_f16(from: *const Float16) -> Self = Self(_mm512_cvtph_ps(_mm256_loadu_si256(from.cast())));
        fn store_bf16(self: Self, to: *mut Bfloat16) -> () = _mm256_storeu_si256(to.cast(), bfloat16(self));
        fn store_bf16_at_random(self: Self, to: *mut Bfloat16, draws: Draws) -> () =
            _mm256_storeu_si256(to.cast(), stochastic(self, draws));
        fn store_f16(self: Self, to: *mut Float16) -> () =
            _mm256_storeu_si256(to.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0));
    }

    detected! {
        fn add(self: Self, other: Self) -> Self = Self(_mm512_add_ps(self.0, other.0));
        fn sub(self: Self, other: Self) -> Self = Self(_mm512_sub_ps(self.0, other.0));
        fn mul(self: Self, other: Self) -> Self = Self(_mm512_mul_ps(self.0, other.0));
        fn div(self: Self, other: Self) -> Self = Self(_mm512_div_ps(self.0, other.0));
        fn mul_add(self: Self, factor: Self, summand: Self) -> Self = Self(_mm512_fmadd_ps(self.0, factor.0, summand.0));
        fn neg(self: Self) -> Self = Self(_mm512_xor_ps(self.0, _mm512_set1_ps(-0.0)));
        fn abs(self: Self) -> Self = Self(_mm512_abs_ps(self.0));
        fn sqrt(self: Self) -> Self = Self(_mm512_sqrt_ps(self.0));
        fn scaled(self: Self, k: Self) -> Self = Self(_mm512_scalef_ps(self.0, k.0));
        fn floor(self: Self) -> Self = Self(_mm512_roundscale_ps::<BELOW>(self.0));
        fn lt(self: Self, other: Self) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, other.0);
        fn le(self: Self, other: Self) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(self.0, other.0);
        fn eq(self: Self, other: Self) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self.0, other.0);
        fn ne(self: Self, other: Self) -> __mmask16 = _mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(self.0, other.0);
        fn select(mask: __mmask16, yes: Self, no: Self) -> Self = Self(_mm512_mask_blend_ps(mask, no.0, yes.0));
        fn at_most(self: Self, limit: Self) -> Self = Self(_mm512_min_ps(limit.0, self.0));
        fn at_least(self: Self, limit: Self) -> Self = Self(_mm512_max_ps(limit.0, self.0));
    }

    #[inline(always)]
    fn any(mask: __mmask16) -> bool {
        mask != 0
    }
    detected! {
        fn to_bits(self: Self) -> __m512i = _mm512_castps_si512(self.0);
        fn from_bits(bits: __m512i) -> Self = Self(_mm512_castsi512_ps(bits));
        fn bits_add(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32(a, b);
        fn bits_sub(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi32(a, b);
        fn bits_and(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b);
        fn bits_or(a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512(a, b);
        fn bits_up(a: __m512i) -> __m512i = _mm512_slli_epi32::<23>(a);
        fn bits_down(a: __m512i) -> __m512i = _mm512_srli_epi32::<23>(a);
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the lower half is the point")]
    fn bits(value: u64) -> __m512i {
        // SAFETY: register arithmetic only, and the instruction set was detected.
        unsafe { _mm512_set1_epi32((value as u32).cast_signed()) }
    }
    #[inline(always)]
    fn function<F: Function>(self) -> Self {
        F::single(self)
    }
    #[inline(always)]
    fn wide(self, f: impl Unary<F64x8>) -> Self {
        let [low, high] = widen(self);
        narrow(f.call(low), f.call(high))
    }
    #[inline(always)]
    fn wide_pair(self, other: Self, f: impl Binary<F64x8>) -> Self {
        let ([low, high], [other_low, other_high]) = (widen(self), widen(other));
        narrow(f.call(low, other_low), f.call(high, other_high))
    }
}

#[inline(always)]
fn widen(lane: F32x16) -> [F64x8; 2] {
    // SAFETY: register arithmetic only, and the instruction set was detected.
    unsafe {
        let high = _mm512_extractf32x8_ps::<1>(lane.0);
        [F64x8(_mm512_cvtps_pd(_mm512_castps512_ps256(lane.0))), F64x8(_mm512_cvtps_pd(high))]
    }
}

#[inline(always)]
fn narrow(low: F64x8, high: F64x8) -> F32x16 {
    // SAFETY: register arithmetic only, and the instruction set was detected.
    unsafe {
        let low = _mm512_castps256_ps512(_mm512_cvtpd_ps(low.0));
        F32x16(_mm512_insertf32x8::<1>(low, _mm512_cvtpd_ps(high.0)))
    }
}

/// As [`crate::array::half::Half::nearest`]; the instruction for it flushes subnormal numbers to zero.
#[inline(always)]
fn bfloat16(lane: F32x16) -> __m256i {
    // SAFETY: register arithmetic only, and the instruction set was detected.
    unsafe {
        let bits = _mm512_castps_si512(lane.0);
        let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
        let rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
        let quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x0040_0000));
        let bits = _mm512_mask_mov_epi32(rounded, lane.ne(lane), quiet);
        _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(bits))
    }
}

/// As [`crate::array::half::Half::stochastic`], of `Bfloat16`.
#[inline(always)]
fn stochastic(lane: F32x16, draws: Draws) -> __m256i {
    // SAFETY: register arithmetic only, and the instruction set was detected.
    unsafe {
        let all = |word: u32| _mm512_set1_epi32(word.cast_signed());
        let count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let mut x = _mm512_xor_si512(_mm512_add_epi32(all(draws.index), count), all(draws.low));
        x = _mm512_mullo_epi32(_mm512_xor_si512(x, _mm512_srli_epi32::<16>(x)), all(FACTORS[0]));
        let keyed = _mm512_xor_si512(_mm512_srli_epi32::<15>(x), all(draws.high));
        x = _mm512_mullo_epi32(_mm512_xor_si512(x, keyed), all(FACTORS[1]));
        x = _mm512_xor_si512(x, _mm512_srli_epi32::<16>(x));
        let half = _mm512_srl_epi32(x, _mm_cvtsi32_si128(draws.shift.cast_signed()));
        let bits = _mm512_castps_si512(lane.0);
        let rounded = _mm512_add_epi32(bits, _mm512_and_si512(half, all(0xffff)));
        let quiet = _mm512_or_si512(bits, all(0x0040_0000));
        let bits = _mm512_mask_mov_epi32(rounded, lane.ne(lane), quiet);
        _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(bits))
    }
}

impl Lane for F64x8 {
    type Mask = __mmask8;
    type Element = f64;
    type Wide = Self;
    type Set = Avx512;
    type Bits = __m512i;
    const WIDTH: usize = 8;
    const MASKED: bool = true;

    in_memory! {
        fn load(from: *const f64) -> Self = Self(_mm512_loadu_pd(from));
        fn load_part(from: *const f64, count: usize) -> Self = Self(_mm512_maskz_loadu_pd(first_of_eight(count), from));
        fn store(self: Self, to: *mut f64) -> () = _mm512_storeu_pd(to, self.0);
        fn store_part(self: Self, to: *mut f64, count: usize) -> () =
            _mm512_mask_storeu_pd(to, first_of_eight(count), self.0);
        fn store_wide(self: Self, to: *mut f64) -> () = self.store(to);
        fn load_wide(from: *const f64) -> Self = Self::load(from);
    }

    detected! {
        fn splat(value: f64) -> Self = Self(_mm512_set1_pd(value));
        fn add(self: Self, other: Self) -> Self = Self(_mm512_add_pd(self.0, other.0));
        fn sub(self: Self, other: Self) -> Self = Self(_mm512_sub_pd(self.0, other.0));
        fn mul(self: Self, other: Self) -> Self = Self(_mm512_mul_pd(self.0, other.0));
        fn div(self: Self, other: Self) -> Self = Self(_mm512_div_pd(self.0, other.0));
        fn mul_add(self: Self, factor: Self, summand: Self) -> Self = Self(_mm512_fmadd_pd(self.0, factor.0, summand.0));
        fn neg(self: Self) -> Self = Self(_mm512_xor_pd(self.0, _mm512_set1_pd(-0.0)));
        fn abs(self: Self) -> Self = Self(_mm512_abs_pd(self.0));
        fn sqrt(self: Self) -> Self = Self(_mm512_sqrt_pd(self.0));
        fn scaled(self: Self, k: Self) -> Self = Self(_mm512_scalef_pd(self.0, k.0));
        fn floor(self: Self) -> Self = Self(_mm512_roundscale_pd::<BELOW>(self.0));
        fn lt(self: Self, other: Self) -> __mmask8 = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, other.0);
        fn le(self: Self, other: Self) -> __mmask8 = _mm512_cmp_pd_mask::<_CMP_LE_OQ>(self.0, other.0);
        fn eq(self: Self, other: Self) -> __mmask8 = _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(self.0, other.0);
        fn ne(self: Self, other: Self) -> __mmask8 = _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(self.0, other.0);
        fn select(mask: __mmask8, yes: Self, no: Self) -> Self = Self(_mm512_mask_blend_pd(mask, no.0, yes.0));
        fn at_most(self: Self, limit: Self) -> Self = Self(_mm512_min_pd(limit.0, self.0));
        fn at_least(self: Self, limit: Self) -> Self = Self(_mm512_max_pd(limit.0, self.0));
    }

    #[inline(always)]
    fn any(mask: __mmask8) -> bool {
        mask != 0
    }
    detected! {
        fn to_bits(self: Self) -> __m512i = _mm512_castpd_si512(self.0);
        fn from_bits(bits: __m512i) -> Self = Self(_mm512_castsi512_pd(bits));
        fn bits_add(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi64(a, b);
        fn bits_sub(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi64(a, b);
        fn bits_and(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b);
        fn bits_or(a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512(a, b);
        fn bits_up(a: __m512i) -> __m512i = _mm512_slli_epi64::<52>(a);
        fn bits_down(a: __m512i) -> __m512i = _mm512_srli_epi64::<52>(a);
    }

    #[inline(always)]
    fn bits(value: u64) -> __m512i {
        // SAFETY: register arithmetic only, and the instruction set was detected.
        unsafe { _mm512_set1_epi64(value.cast_signed()) }
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

impl Wide for F64x8 {}
