//! AVX2 with FMA: eight `f32` or four `f64`. Its lanes are used only in functions that `dispatch` calls after it has
//! detected the instruction set: every safety comment here that says "detected" means this.

#[allow(clippy::wildcard_imports, reason = "the names of the intrinsics say where they are from")]
use std::arch::x86_64::*;

use super::intrinsics::{detected, in_memory};
use crate::array::half::{Bfloat16, Float16};
use crate::simd::lane::{Binary, Function, Lane, Unary, Wide};
use crate::simd::noise::{Draws, FACTORS};

/// The instruction set: see its row in `dispatch`.
pub struct Avx2;

/// Eight `f32`.
#[derive(Clone, Copy)]
pub struct F32x8(__m256);

/// Four `f64`.
#[derive(Clone, Copy)]
pub struct F64x4(__m256d);

static FIRST: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// All bits set in the first `count` of eight 32-bit elements; of four 64-bit elements, in half as many.
#[inline(always)]
fn first(count: usize) -> __m256i {
    // The bound is checked here since the callers' promise is about other memory.
    let from = &FIRST[8 - count.min(8)..][..8];
    // SAFETY: the slice is as long as the register, and the instruction set was detected.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

impl Lane for F32x8 {
    type Mask = __m256;
    type Element = f32;
    type Wide = F64x4;
    type Set = Avx2;
    type Bits = __m256i;
    const WIDTH: usize = 8;

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "rounding to the element is the point")]
    fn splat(value: f64) -> Self {
        // SAFETY: register arithmetic only, and the instruction set was detected.
        Self(unsafe { _mm256_set1_ps(value as f32) })
    }

    in_memory! {
        fn load(from: *const f32) -> Self = Self(_mm256_loadu_ps(from));
        fn load_part(from: *const f32, count: usize) -> Self = Self(_mm256_maskload_ps(from, first(count)));
        fn store(self: Self, to: *mut f32) -> () = _mm256_storeu_ps(to, self.0);
        fn store_part(self: Self, to: *mut f32, count: usize) -> () = _mm256_maskstore_ps(to, first(count), self.0);
        fn store_wide(self: Self, to: *mut f64) -> () = {
            let [low, high] = widen(self);
            low.store(to);
            high.store(to.add(4));
        };
        fn load_wide(from: *const f64) -> Self = narrow(F64x4::load(from), F64x4::load(from.add(4)));
        fn load_bf16(from: *const Bfloat16) -> Self =
            Self(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast())))));
        fn load_f16(from: *const Float16) -> Self = Self(_mm256_cvtph_ps(_mm_loadu_si128(from.cast())));
        fn store_bf16(self: Self, to: *mut Bfloat16) -> () = _mm_storeu_si128(to.cast(), bfloat16(self));
        fn store_bf16_at_random(self: Self, to: *mut Bfloat16, draws: Draws) -> () =
            _mm_storeu_si128(to.cast(), stochastic(self, draws));
        fn store_f16(self: Self, to: *mut Float16) -> () =
            _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0));
    }

    detected! {
        fn add(self: Self, other: Self) -> Self = Self(_mm256_add_ps(self.0, other.0));
        fn sub(self: Self, other: Self) -> Self = Self(_mm256_sub_ps(self.0, other.0));
        fn mul(self: Self, other: Self) -> Self = Self(_mm256_mul_ps(self.0, other.0));
        fn div(self: Self, other: Self) -> Self = Self(_mm256_div_ps(self.0, other.0));
        fn mul_add(self: Self, factor: Self, summand: Self) -> Self = Self(_mm256_fmadd_ps(self.0, factor.0, summand.0));
        fn neg(self: Self) -> Self = Self(_mm256_xor_ps(self.0, _mm256_set1_ps(-0.0)));
        fn abs(self: Self) -> Self = Self(_mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0));
        fn sqrt(self: Self) -> Self = Self(_mm256_sqrt_ps(self.0));
        fn floor(self: Self) -> Self = Self(_mm256_floor_ps(self.0));
        fn lt(self: Self, other: Self) -> __m256 = _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, other.0);
        fn le(self: Self, other: Self) -> __m256 = _mm256_cmp_ps::<_CMP_LE_OQ>(self.0, other.0);
        fn eq(self: Self, other: Self) -> __m256 = _mm256_cmp_ps::<_CMP_EQ_OQ>(self.0, other.0);
        fn ne(self: Self, other: Self) -> __m256 = _mm256_cmp_ps::<_CMP_NEQ_UQ>(self.0, other.0);
        fn select(mask: __m256, yes: Self, no: Self) -> Self = Self(_mm256_blendv_ps(no.0, yes.0, mask));
        fn at_most(self: Self, limit: Self) -> Self = Self(_mm256_min_ps(limit.0, self.0));
        fn at_least(self: Self, limit: Self) -> Self = Self(_mm256_max_ps(limit.0, self.0));
    }

    #[inline(always)]
    fn any(mask: __m256) -> bool {
        // SAFETY: register arithmetic only, and the instruction set was detected.
        unsafe { _mm256_movemask_ps(mask) != 0 }
    }
    detected! {
        fn to_bits(self: Self) -> __m256i = _mm256_castps_si256(self.0);
        fn from_bits(bits: __m256i) -> Self = Self(_mm256_castsi256_ps(bits));
        fn bits_add(a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi32(a, b);
        fn bits_sub(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi32(a, b);
        fn bits_and(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        fn bits_or(a: __m256i, b: __m256i) -> __m256i = _mm256_or_si256(a, b);
        fn bits_up(a: __m256i) -> __m256i = _mm256_slli_epi32::<23>(a);
        fn bits_down(a: __m256i) -> __m256i = _mm256_srli_epi32::<23>(a);
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the lower half is the point")]
    fn bits(value: u64) -> __m256i {
        // SAFETY: register arithmetic only, and the instruction set was detected.
        unsafe { _mm256_set1_epi32((value as u32).cast_signed()) }
    }
    #[inline(always)]
    fn function<F: Function>(self) -> Self {
        F::single(self)
    }
    #[inline(always)]
    fn wide(self, f: impl Unary<F64x4>) -> Self {
        let [low, high] = widen(self);
        narrow(f.call(low), f.call(high))
    }
    #[inline(always)]
    fn wide_pair(self, other: Self, f: impl Binary<F64x4>) -> Self {
        let ([low, high], [other_low, other_high]) = (widen(self), widen(other));
        narrow(f.call(low, other_low), f.call(high, other_high))
    }
}

#[inline(always)]
fn widen(lane: F32x8) -> [F64x4; 2] {
    // SAFETY: register arithmetic only, and the instruction set was detected.
    unsafe {
        let high = _mm256_extractf128_ps::<1>(lane.0);
        [F64x4(_mm256_cvtps_pd(_mm256_castps256_ps128(lane.0))), F64x4(_mm256_cvtps_pd(high))]
    }
}

#[inline(always)]
fn narrow(low: F64x4, high: F64x4) -> F32x8 {
    // SAFETY: register arithmetic only, and the instruction set was detected.
    unsafe {
        let low = _mm256_castps128_ps256(_mm256_cvtpd_ps(low.0));
        F32x8(_mm256_insertf128_ps::<1>(low, _mm256_cvtpd_ps(high.0)))
    }
}

/// As [`crate::array::half::Half::nearest`].
#[inline(always)]
fn bfloat16(lane: F32x8) -> __m128i {
    // SAFETY: register arithmetic only, and the instruction set was detected.
    unsafe {
        let bits = _mm256_castps_si256(lane.0);
        let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
        let rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
        upper_halves(lane, rounded)
    }
}

/// As [`crate::array::half::Half::stochastic`], of `Bfloat16`.
#[inline(always)]
fn stochastic(lane: F32x8, draws: Draws) -> __m128i {
    // SAFETY: register arithmetic only, and the instruction set was detected.
    unsafe {
        let all = |word: u32| _mm256_set1_epi32(word.cast_signed());
        let count = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let mut x = _mm256_xor_si256(_mm256_add_epi32(all(draws.index), count), all(draws.low));
        x = _mm256_mullo_epi32(_mm256_xor_si256(x, _mm256_srli_epi32::<16>(x)), all(FACTORS[0]));
        let keyed = _mm256_xor_si256(_mm256_srli_epi32::<15>(x), all(draws.high));
        x = _mm256_mullo_epi32(_mm256_xor_si256(x, keyed), all(FACTORS[1]));
        x = _mm256_xor_si256(x, _mm256_srli_epi32::<16>(x));
        let half = _mm256_srl_epi32(x, _mm_cvtsi32_si128(draws.shift.cast_signed()));
        let rounded = _mm256_add_epi32(_mm256_castps_si256(lane.0), _mm256_and_si256(half, all(0xffff)));
        upper_halves(lane, rounded)
    }
}

/// The upper halves of rounded bits; of the lane itself where it is NaN.
#[inline(always)]
fn upper_halves(lane: F32x8, rounded: __m256i) -> __m128i {
    // SAFETY: register arithmetic only, and the instruction set was detected.
    unsafe {
        let quiet = _mm256_or_si256(_mm256_castps_si256(lane.0), _mm256_set1_epi32(0x0040_0000));
        let bits = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(lane.ne(lane)));
        let upper = _mm256_srli_epi32::<16>(bits);
        // Packs within each half of the register: the wanted parts are the first and the third quarter.
        let packed = _mm256_packus_epi32(upper, upper);
        _mm256_castsi256_si128(_mm256_permute4x64_epi64::<0b1000>(packed))
    }
}

impl Lane for F64x4 {
    type Mask = __m256d;
    type Element = f64;
    type Wide = Self;
    type Set = Avx2;
    type Bits = __m256i;
    const WIDTH: usize = 4;

    in_memory! {
        fn load(from: *const f64) -> Self = Self(_mm256_loadu_pd(from));
        fn load_part(from: *const f64, count: usize) -> Self = Self(_mm256_maskload_pd(from, first(2 * count)));
        fn store(self: Self, to: *mut f64) -> () = _mm256_storeu_pd(to, self.0);
        fn store_part(self: Self, to: *mut f64, count: usize) -> () = _mm256_maskstore_pd(to, first(2 * count), self.0);
        fn store_wide(self: Self, to: *mut f64) -> () = self.store(to);
        fn load_wide(from: *const f64) -> Self = Self::load(from);
    }

    detected! {
        fn splat(value: f64) -> Self = Self(_mm256_set1_pd(value));
        fn add(self: Self, other: Self) -> Self = Self(_mm256_add_pd(self.0, other.0));
        fn sub(self: Self, other: Self) -> Self = Self(_mm256_sub_pd(self.0, other.0));
        fn mul(self: Self, other: Self) -> Self = Self(_mm256_mul_pd(self.0, other.0));
        fn div(self: Self, other: Self) -> Self = Self(_mm256_div_pd(self.0, other.0));
        fn mul_add(self: Self, factor: Self, summand: Self) -> Self = Self(_mm256_fmadd_pd(self.0, factor.0, summand.0));
        fn neg(self: Self) -> Self = Self(_mm256_xor_pd(self.0, _mm256_set1_pd(-0.0)));
        fn abs(self: Self) -> Self = Self(_mm256_andnot_pd(_mm256_set1_pd(-0.0), self.0));
        fn sqrt(self: Self) -> Self = Self(_mm256_sqrt_pd(self.0));
        fn floor(self: Self) -> Self = Self(_mm256_floor_pd(self.0));
        fn lt(self: Self, other: Self) -> __m256d = _mm256_cmp_pd::<_CMP_LT_OQ>(self.0, other.0);
        fn le(self: Self, other: Self) -> __m256d = _mm256_cmp_pd::<_CMP_LE_OQ>(self.0, other.0);
        fn eq(self: Self, other: Self) -> __m256d = _mm256_cmp_pd::<_CMP_EQ_OQ>(self.0, other.0);
        fn ne(self: Self, other: Self) -> __m256d = _mm256_cmp_pd::<_CMP_NEQ_UQ>(self.0, other.0);
        fn select(mask: __m256d, yes: Self, no: Self) -> Self = Self(_mm256_blendv_pd(no.0, yes.0, mask));
        fn at_most(self: Self, limit: Self) -> Self = Self(_mm256_min_pd(limit.0, self.0));
        fn at_least(self: Self, limit: Self) -> Self = Self(_mm256_max_pd(limit.0, self.0));
    }

    #[inline(always)]
    fn any(mask: __m256d) -> bool {
        // SAFETY: register arithmetic only, and the instruction set was detected.
        unsafe { _mm256_movemask_pd(mask) != 0 }
    }
    detected! {
        fn to_bits(self: Self) -> __m256i = _mm256_castpd_si256(self.0);
        fn from_bits(bits: __m256i) -> Self = Self(_mm256_castsi256_pd(bits));
        fn bits_add(a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi64(a, b);
        fn bits_sub(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi64(a, b);
        fn bits_and(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
        fn bits_or(a: __m256i, b: __m256i) -> __m256i = _mm256_or_si256(a, b);
        fn bits_up(a: __m256i) -> __m256i = _mm256_slli_epi64::<52>(a);
        fn bits_down(a: __m256i) -> __m256i = _mm256_srli_epi64::<52>(a);
    }

    #[inline(always)]
    fn bits(value: u64) -> __m256i {
        // SAFETY: register arithmetic only, and the instruction set was detected.
        unsafe { _mm256_set1_epi64x(value.cast_signed()) }
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

impl Wide for F64x4 {}
