//! The scalar lane: the meaning of every op.

use crate::simd::lane::{Binary, Body, Element, Function, Lane, Simd, Unary, Wide, methods};

/// Plain numbers, on any processor.
pub struct Scalar;

impl Simd for Scalar {
    type F32 = f32;
    type F64 = f64;

    fn address<B: Body<A>, A>() -> unsafe fn(A) {
        // Not `B::call` itself, which is inlined and would be compiled again wherever its address is taken.
        fn call<B: Body<A>, A>(argument: A) {
            B::call::<Scalar>(argument);
        }
        call::<B, A>
    }
}

macro_rules! scalar_lane {
    ($($t:ident $bits:ident $formula:ident $digits:literal $exponents:literal;)*) => {$(
        #[allow(clippy::cast_possible_truncation, clippy::cast_lossless, reason = "rounding to the element is the point")]
        impl Element for $t {
            const FRACTION: u32 = $digits;
            const EXPONENTS: u64 = $exponents;
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value as $t }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
        }

        #[allow(clippy::float_cmp, reason = "exact comparisons of IEEE 754 are intended")]
        #[allow(clippy::cast_possible_truncation, reason = "the lower half of the bits is the point")]
        impl Lane for $t {
            type Mask = bool;
            type Element = $t;
            type Wide = f64;
            type Bits = $bits;
            type Set = Scalar;
            const WIDTH: usize = 1;

            #[inline(always)]
            fn splat(value: f64) -> Self { <$t>::from_f64(value) }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                // SAFETY: the caller promises one number at `from`.
                unsafe { from.read_unaligned() }
            }
            #[inline(always)]
            unsafe fn load_part(_: *const $t, _: usize) -> Self { 0.0 }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                // SAFETY: the caller promises room for one number at `to`.
                unsafe { to.write_unaligned(self) }
            }
            #[inline(always)]
            unsafe fn store_part(self, _: *mut $t, _: usize) {}
            methods! {
                #[inline(always)]
                fn add(self: Self, other: Self) -> Self = self + other;
                fn sub(self: Self, other: Self) -> Self = self - other;
                fn mul(self: Self, other: Self) -> Self = self * other;
                fn div(self: Self, other: Self) -> Self = self / other;
                fn mul_add(self: Self, factor: Self, summand: Self) -> Self = <$t>::mul_add(self, factor, summand);
                fn neg(self: Self) -> Self = -self;
                fn abs(self: Self) -> Self = <$t>::abs(self);
                fn sqrt(self: Self) -> Self = <$t>::sqrt(self);
                fn floor(self: Self) -> Self = <$t>::floor(self);
                fn lt(self: Self, other: Self) -> bool = self < other;
                fn le(self: Self, other: Self) -> bool = self <= other;
                fn eq(self: Self, other: Self) -> bool = self == other;
                fn ne(self: Self, other: Self) -> bool = self != other;
                fn bits(value: u64) -> $bits = value as $bits;
                fn to_bits(self: Self) -> $bits = <$t>::to_bits(self);
                fn from_bits(bits: $bits) -> Self = <$t>::from_bits(bits);
                fn bits_add(a: $bits, b: $bits) -> $bits = a.wrapping_add(b);
                fn bits_sub(a: $bits, b: $bits) -> $bits = a.wrapping_sub(b);
                fn bits_and(a: $bits, b: $bits) -> $bits = a & b;
                fn bits_or(a: $bits, b: $bits) -> $bits = a | b;
                fn bits_up(a: $bits) -> $bits = a << $digits;
                fn bits_down(a: $bits) -> $bits = a >> $digits;
                fn any(mask: bool) -> bool = mask;
                fn select(mask: bool, yes: Self, no: Self) -> Self = if mask { yes } else { no };
            }
            #[inline(always)]
            fn function<F: Function>(self) -> Self { F::$formula(self) }
            #[inline(always)]
            fn wide(self, f: impl Unary<f64>) -> Self { <$t>::from_f64(f.call(self.to_f64())) }
            #[inline(always)]
            fn wide_pair(self, other: Self, f: impl Binary<f64>) -> Self {
                <$t>::from_f64(f.call(self.to_f64(), other.to_f64()))
            }
            #[inline(always)]
            unsafe fn load_wide(from: *const f64) -> Self {
                // SAFETY: the caller promises one number at `from`.
                <$t>::from_f64(unsafe { from.read_unaligned() })
            }
            #[inline(always)]
            unsafe fn store_wide(self, to: *mut f64) {
                // SAFETY: the caller promises room for one number at `to`.
                unsafe { to.write_unaligned(self.to_f64()) }
            }
        }
    )*};
}

scalar_lane! {
    f32 u32 single 23 256;
    f64 u64 double 52 2048;
}

impl Wide for f64 {}
