//! Powers and logarithms to other bases than e, by a natural logarithm of about 70 bits.
//!
//! Numbers of more bits than `f64` has are unevaluated sums of two lanes, as in `special::double_double`.

use super::lane::Wide;
use super::math::{LN2_HIGH, LN2_LOW, clamp, exp_of_sum, log_parts, polynomial};

/// The sum `high + low`, where `low` is small beside `high`.
#[derive(Clone, Copy)]
struct Pair<W> {
    high: W,
    low: W,
}

impl<W: Wide> Pair<W> {
    fn constant(high: f64, low: f64) -> Self {
        Self { high: W::splat(high), low: W::splat(low) }
    }

    /// `a + b` without rounding, for `|a| >= |b|`.
    #[inline(always)]
    fn sum(a: W, b: W) -> Self {
        let high = a.add(b);
        Self { high, low: b.sub(high.sub(a)) }
    }

    /// The product; `self.low * other.low` is too small to count.
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let high = self.high.mul(other.high);
        let lost = self.high.mul_add(other.high, high.neg());
        Self { high, low: self.low.mul_add(other.high, self.high.mul_add(other.low, lost)) }
    }

    /// `self + b`, for `b` no larger than `self`.
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        let sum = Self::sum(self.high, b.high);
        Self { high: sum.high, low: sum.low.add(self.low.add(b.low)) }
    }
}

/// The natural logarithm of a positive, finite number.
#[inline(always)]
fn log<W: Wide>(x: W) -> Pair<W> {
    let tiny = x.lt(W::splat(f64::MIN_POSITIVE));
    let (k, f) = log_parts(W::select(tiny, x.mul(W::splat(18_014_398_509_481_984.0)), x));
    let k = W::select(tiny, k.sub(W::splat(54.0)), k);
    // log(1 + f) = 2 atanh(s) with s = f / (f + 2), at most 0.1716.
    let below = Pair::sum(W::splat(2.0), f);
    let inverse = W::one().div(below.high);
    let s = f.mul(inverse);
    let rest = below.low.neg().mul_add(s, below.high.neg().mul_add(s, f));
    let s = Pair { high: s, low: rest.mul(inverse) };
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
    let fifth = Pair::constant(1.0 / 5.0, FIFTH).add(Pair { high: z.high.mul(tail), low: W::zero() });
    let third = Pair::constant(1.0 / 3.0, THIRD).add(z.mul(fifth));
    let cubes = s.mul(z.mul(third));
    // The product of `k`, which has 11 bits, and of the upper part of ln 2 is exact.
    let sum = Pair::sum(k.mul(W::splat(LN2_HIGH)), s.high.add(s.high));
    let whole = Pair { high: sum.high, low: k.mul_add(W::splat(LN2_LOW), sum.low.add(s.low.add(s.low))) };
    let sum = whole.add(Pair { high: cubes.high.add(cubes.high), low: cubes.low.add(cubes.low) });
    Pair::sum(sum.high, sum.low)
}

/// What the nearest number leaves of 1/3 and of 1/5.
const THIRD: f64 = 1.850_371_707_708_594_2e-17;
const FIFTH: f64 = -1.110_223_024_625_156_6e-17;

/// `a` to the power `b`.
#[inline(always)]
pub fn pow<W: Wide>(a: W, b: W) -> W {
    let (zero, one) = (W::zero(), W::one());
    let size = a.abs();
    let log = log(size);
    // With the logarithms of zero and of infinity, the product is infinite or, by zero, NaN: the power is 0, infinity, or 1.
    let high = W::select(size.eq(W::splat(f64::INFINITY)), size, log.high);
    let high = W::select(size.eq(zero), W::splat(f64::NEG_INFINITY), high);
    let high = W::select(size.ne(size), size, high);
    // Larger exponents than this give 0, 1 or infinity as well; it keeps products finite.
    let exponent = clamp(b, -1e21, 1e21);
    let product = exponent.mul(high);
    let lost = exponent.mul_add(log.low, exponent.mul_add(high, product.neg()));
    let lost = W::select(product.abs().lt(W::splat(750.0)), lost, zero);
    let power = exp_of_sum(product, lost);

    // Of a negative number: NaN unless the exponent is whole, negative where that is odd.
    let half = b.mul(W::splat(0.5));
    let of_even = W::select(half.floor().eq(half), power, W::from_bits(W::bits_or(power.to_bits(), sign(a))));
    let fractional =
        W::select(a.lt(zero), W::select(size.eq(W::splat(f64::INFINITY)), power, W::splat(f64::NAN)), power);
    let power = W::select(b.floor().eq(b), of_even, fractional);

    let power = W::select(b.eq(W::splat(2.0)), a.mul(a), power);
    let power = W::select(b.eq(one), a, power);
    let power = W::select(b.eq(zero), one, power);
    W::select(a.eq(one), one, power)
}

/// The sign bit.
#[inline(always)]
fn sign<W: Wide>(a: W) -> W::Bits {
    W::bits_and(a.to_bits(), W::bits(1 << 63))
}
