//! Numbers of more bits than `f64` has, as unevaluated sums of two lanes (Dekker 1971), and their logarithm: as
//! `special::double_double`, without branches.

use super::parts::{LN2_HIGH, LN2_LOW, log_parts, polynomial};
use crate::simd::lane::Wide;

/// The sum `high + low`, where `low` is small beside `high`.
#[derive(Clone, Copy)]
pub struct Pair<W> {
    pub high: W,
    pub low: W,
}

impl<W: Wide> Pair<W> {
    #[inline(always)]
    pub fn splat(high: f64, low: f64) -> Self {
        Self { high: W::splat(high), low: W::splat(low) }
    }

    /// `a + b` without rounding, for `|a| >= |b|`.
    #[inline(always)]
    pub fn sum(a: W, b: W) -> Self {
        let high = a.add(b);
        Self { high, low: b.sub(high.sub(a)) }
    }

    /// `a + b` without rounding (Knuth 1969).
    #[inline(always)]
    pub fn sum_of_any(a: W, b: W) -> Self {
        let high = a.add(b);
        let part = high.sub(a);
        Self { high, low: a.sub(high.sub(part)).add(b.sub(part)) }
    }

    /// `a * b` without rounding, unless it underflows.
    #[inline(always)]
    pub fn product(a: W, b: W) -> Self {
        let high = a.mul(b);
        Self { high, low: a.mul_add(b, high.neg()) }
    }

    /// `self + other`, for `other` no larger than `self`.
    #[inline(always)]
    pub fn add(self, other: Self) -> Self {
        let sum = Self::sum(self.high, other.high);
        Self { high: sum.high, low: sum.low.add(self.low.add(other.low)) }
    }

    /// The product; that of the lower parts is too small to count.
    #[inline(always)]
    pub fn mul(self, other: Self) -> Self {
        let product = Self::product(self.high, other.high);
        let low = self.high.mul_add(other.low, product.low);
        Self { high: product.high, low: self.low.mul_add(other.high, low) }
    }

    #[inline(always)]
    pub fn div(self, other: Self) -> Self {
        let inverse = W::one().div(other.high);
        let high = self.high.mul(inverse);
        let rest = other.high.neg().mul_add(high, self.high);
        Self { high, low: other.low.neg().mul_add(high, rest.add(self.low)).mul(inverse) }
    }

    /// The square root of a positive number.
    #[inline(always)]
    pub fn sqrt(self) -> Self {
        let high = self.high.sqrt();
        let rest = high.neg().mul_add(high, self.high).add(self.low);
        Self { high, low: rest.div(high.add(high)) }
    }

    /// The sum of any two, to all bits.
    #[inline(always)]
    pub fn plus(self, other: Self) -> Self {
        let (high, low) = (Self::sum_of_any(self.high, other.high), Self::sum_of_any(self.low, other.low));
        let high = Self::sum(high.high, high.low.add(low.high));
        Self::sum(high.high, high.low.add(low.low))
    }

    /// The product to all bits.
    #[inline(always)]
    pub fn times(self, other: Self) -> Self {
        let high = Self::product(self.high, other.high);
        let low = self.high.mul(other.low).add(self.low.mul(other.high));
        Self::sum(high.high, high.low.add(low))
    }

    /// The quotient to all bits.
    #[inline(always)]
    pub fn over(self, other: Self) -> Self {
        let times = |x: W| other.times(Self { high: x, low: W::zero() });
        let less = |a: Self, b: Self| a.plus(Self { high: b.high.neg(), low: b.low.neg() });
        let first = self.high.div(other.high);
        let rest = less(self, times(first));
        let second = rest.high.div(other.high);
        let last = less(rest, times(second)).high.div(other.high);
        let quotient = Self::sum(first, second);
        Self::sum(quotient.high, quotient.low.add(last))
    }

    #[inline(always)]
    pub fn twice(self) -> Self {
        Self { high: self.high.add(self.high), low: self.low.add(self.low) }
    }

    /// `yes` where the mask is set, `no` elsewhere.
    #[inline(always)]
    pub fn select(mask: W::Mask, yes: Self, no: Self) -> Self {
        Self { high: W::select(mask, yes.high, no.high), low: W::select(mask, yes.low, no.low) }
    }

    /// The nearest number.
    #[inline(always)]
    pub fn rounded(self) -> W {
        self.high.add(self.low)
    }
}

/// ln 2.
pub fn ln2<W: Wide>() -> Pair<W> {
    Pair::splat(std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17)
}

/// The natural logarithm of a positive, finite number, to about 70 bits.
#[inline(always)]
pub fn log<W: Wide>(x: W) -> Pair<W> {
    let (k, f) = log_parts(x);
    // log(1 + f) = 2 atanh(s) with s = f / (f + 2), at most 0.1716.
    let s = Pair { high: f, low: W::zero() }.div(Pair::sum(W::splat(2.0), f));
    // The series s + s^3/3 + s^5/5 + ...; of the terms from s^7 on, one lane and a Chebyshev fit are enough (2^-60).
    let z = s.mul(s);
    let tail = polynomial(
        z.high,
        [
            0.142_857_142_857_142_85,
            0.111_111_111_111_114_75,
            0.090_909_090_906_498_07,
            0.076_923_077_625_936_17,
            0.066_666_573_235_283_41,
            0.058_830_258_362_525_84,
            0.052_364_291_315_644_615,
            0.053_087_663_827_524_98,
        ],
    );
    let fifth = Pair::splat(1.0 / 5.0, FIFTH).add(Pair { high: z.high.mul(tail), low: W::zero() });
    let third = Pair::splat(1.0 / 3.0, THIRD).add(z.mul(fifth));
    let cubes = s.mul(z.mul(third));
    // The product of `k`, which has 11 bits, and of the upper part of ln 2 is exact.
    let whole = Pair::sum(k.mul(W::splat(LN2_HIGH)), s.high.add(s.high));
    let low = k.mul_add(W::splat(LN2_LOW), whole.low.add(s.low.add(s.low)));
    let sum = Pair { high: whole.high, low }.add(cubes.twice());
    Pair::sum(sum.high, sum.low)
}

/// The natural logarithm of a positive, finite number of two lanes.
#[inline(always)]
pub fn log_of<W: Wide>(x: Pair<W>) -> Pair<W> {
    let sum = log(x.high).add(Pair { high: x.low.div(x.high), low: W::zero() });
    Pair::sum(sum.high, sum.low)
}

/// The rests of 1/3 and 1/5 beyond the nearest number.
pub const THIRD: f64 = 1.850_371_707_708_594_2e-17;
const FIFTH: f64 = -1.110_223_024_625_156_6e-17;
