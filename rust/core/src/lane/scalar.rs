//! The scalar lane: the meaning of every op.

use super::Lane;

macro_rules! scalar_lane {
    ($($t:ty)*) => {$(
        #[allow(clippy::cast_possible_truncation, clippy::float_cmp, clippy::cast_lossless, reason = "rounds to the lane")]
        impl Lane for $t {
            type Mask = bool;

            #[inline(always)]
            fn zero() -> Self { 0.0 }
            #[inline(always)]
            fn one() -> Self { 1.0 }
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn div(self, other: Self) -> Self { self / other }
            #[inline(always)]
            fn neg(self) -> Self { -self }
            #[inline(always)]
            fn abs(self) -> Self { <$t>::abs(self) }
            #[inline(always)]
            fn sqrt(self) -> Self { <$t>::sqrt(self) }
            #[inline(always)]
            fn floor(self) -> Self { <$t>::floor(self) }
            #[inline(always)]
            fn lt(self, other: Self) -> bool { self < other }
            #[inline(always)]
            fn le(self, other: Self) -> bool { self <= other }
            #[inline(always)]
            fn eq(self, other: Self) -> bool { self == other }
            #[inline(always)]
            fn ne(self, other: Self) -> bool { self != other }
            #[inline(always)]
            fn select(mask: bool, yes: Self, no: Self) -> Self { if mask { yes } else { no } }
            #[inline(always)]
            fn map(self, f: impl Fn(f64) -> f64) -> Self { f(self as f64) as $t }
            #[inline(always)]
            fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self { f(self as f64, other as f64) as $t }
        }
    )*};
}

scalar_lane!(f32 f64);
