//! Hyperbolic functions and their inverses, by exponentials and logarithms of more bits than `f64` has.

use super::exponential::exp_argument;
use super::pair::{Pair, ln2, log_of};
use super::parts::{polynomial, with_sign_of};
use crate::simd::lane::{Wide, power_of_two};

/// Half of `exp(x) + sign * exp(-x)`, for `x` that is not negative.
#[inline(always)]
fn half_sum<W: Wide>(x: W, sign: f64) -> W {
    let one = W::one();
    let (k, r, lost) = exp_argument(x.at_most(W::splat(711.0)), W::zero());
    // Taylor's series of `(cosh(r) - 1) / r^2` and `(sinh(r) / r - 1) / r^2`: their remainders are less than 0.02 units.
    let square = r.mul(r);
    let even = [1.0 / 2.0, 1.0 / 24.0, 1.0 / 720.0, 1.0 / 40_320.0, 1.0 / 3_628_800.0, 1.0 / 479_001_600.0];
    let odd = [1.0 / 6.0, 1.0 / 120.0, 1.0 / 5_040.0, 1.0 / 362_880.0, 1.0 / 39_916_800.0, 1.0 / 6_227_020_800.0];
    let (even, odd) = (polynomial(square, even), polynomial(square, odd));
    // Twice the value over 2^k, which may be too large, is `of_cosh cosh(r) + of_sinh sinh(r)`.
    let other = power_of_two(k.mul(W::splat(-2.0)).at_least(W::splat(-1023.0))).mul(W::splat(sign));
    let (of_cosh, of_sinh) = (one.add(other), one.sub(other));
    let near = of_sinh.mul_add(r, of_cosh);
    let rest = of_sinh.mul_add(r, of_cosh.sub(near)).add(one.sub(of_cosh).add(other));
    let rest = of_sinh.mul_add(r.mul(square).mul_add(odd, lost), rest);
    let rest = of_cosh.mul(square).mul_add(even, rest);
    near.add(rest).mul(W::splat(0.5)).scaled(k)
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh<W: Wide>(x: W) -> W {
    half_sum(x.abs(), 1.0)
}

/// Hyperbolic sine.
#[inline(always)]
pub fn sinh<W: Wide>(x: W) -> W {
    with_sign_of(half_sum(x.abs(), -1.0), x)
}

/// Beyond this, `x` and the root of its square plus or minus one are equal.
const LARGE: f64 = 1e9;
/// Below this, `x` is as near as a number can be to its inverse hyperbolic sine and tangent.
const SMALL: f64 = 1e-9;

/// `log(x + root)`, where `x` is at most [`LARGE`], and `log(2 x)` elsewhere.
#[inline(always)]
fn log_of_sum<W: Wide>(x: W, root: Pair<W>) -> W {
    let large = W::splat(LARGE).lt(x);
    let larger = W::select(x.lt(root.high), root.high, x);
    let smaller = W::select(x.lt(root.high), x, root.high);
    let sum = Pair::sum(larger, smaller);
    let sum = Pair { high: sum.high, low: sum.low.add(root.low) };
    let log = log_of(Pair::select(large, Pair { high: x, low: W::zero() }, sum));
    let log = Pair::select(large, log.add(ln2()), log).rounded();
    W::select(x.lt(W::splat(f64::INFINITY)), log, x)
}

/// Inverse hyperbolic sine.
#[inline(always)]
pub fn asinh<W: Wide>(x: W) -> W {
    let size = x.abs();
    let square = Pair::product(size, size);
    let one = Pair::splat(1.0, 0.0);
    let more = size.lt(W::one());
    let sum = Pair::select(more, one, square).add(Pair::select(more, square, one));
    let value = with_sign_of(log_of_sum(size, sum.sqrt()), x);
    W::select(size.lt(W::splat(SMALL)), x, value)
}

/// Inverse hyperbolic cosine.
#[inline(always)]
pub fn acosh<W: Wide>(x: W) -> W {
    let square = Pair::product(x, x);
    let value = log_of_sum(x, square.add(Pair::splat(-1.0, 0.0)).sqrt());
    let value = W::select(x.eq(W::one()), W::zero(), value);
    W::select(W::one().le(x), value, W::splat(f64::NAN))
}

/// Inverse hyperbolic tangent.
#[inline(always)]
pub fn atanh<W: Wide>(x: W) -> W {
    let size = x.abs();
    let quotient = Pair::sum(W::one(), size).div(Pair::sum(W::one(), size.neg()));
    let value = log_of(Pair::sum(quotient.high, quotient.low)).rounded().mul(W::splat(0.5));
    let value = W::select(size.eq(W::one()), W::splat(f64::INFINITY), value);
    let value = W::select(size.le(W::one()), value, W::splat(f64::NAN));
    W::select(size.lt(W::splat(SMALL)), x, with_sign_of(value, x))
}
