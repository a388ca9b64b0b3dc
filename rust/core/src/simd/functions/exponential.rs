//! The exponential function and the logistic function.

#![allow(clippy::many_single_char_names, reason = "the letters of the formulas")]

use super::pair::Pair;
use super::parts::{ROUND, clamp, expit_of_parts, expm1_of_parts, polynomial_by_squares};
use crate::simd::lane::{Unary, Wide};

/// ln 2 beyond the nearest number.
const LN2_REST: f64 = 2.319_046_813_846_299_6e-17;

/// e to the power `x`.
#[inline(always)]
pub fn exp<W: Wide>(x: W) -> W {
    let (k, power) = exp_pair(clamp(x, -746.0, 710.0));
    power.rounded().scaled(k)
}

/// e to the power `x`, minus one.
#[inline(always)]
pub fn expm1<W: Wide>(x: W) -> W {
    expm1_of_parts(x, exp_parts(clamp(x, -50.0, 710.0)), 1e-17)
}

/// The logistic function.
#[inline(always)]
pub fn expit<W: Wide>(x: W) -> W {
    expit_of_parts(x, exp_parts(x.at_most(W::splat(40.0)).neg()), -650.0, Exp)
}

/// [`exp`], as [`Unary`].
#[derive(Clone, Copy, Default)]
struct Exp;

impl<W: Wide> Unary<W> for Exp {
    #[inline(always)]
    fn call(self, a: W) -> W {
        exp(a)
    }
}

/// The whole number `k` that is nearest to `x / ln 2`, and `x - k ln 2`, where ln 2 is the nearest number. The difference is exact.
#[inline(always)]
fn reduced<W: Wide>(x: W) -> (W, W) {
    let k = x.mul_add(W::splat(std::f64::consts::LOG2_E), W::splat(ROUND)).sub(W::splat(ROUND));
    (k, k.mul_add(W::splat(-std::f64::consts::LN_2), x))
}

/// `x + c = k ln 2 + r + lost`, for a small `c`, with `r` at most half of ln 2 and `lost` its rounding error: `(k, r, lost)`.
#[inline(always)]
pub fn exp_argument<W: Wide>(x: W, c: W) -> (W, W, W) {
    let (k, high) = reduced(x);
    let low = k.mul_add(W::splat(-LN2_REST), c);
    let r = high.add(low);
    (k, r, high.sub(r).add(low))
}

/// `x = k ln 2 + r + lost` with `r` at most half of ln 2: `(k, r, exp(r + lost) - 1 - r)`.
#[inline(always)]
fn exp_parts<W: Wide>(x: W) -> (W, W, W) {
    let (k, r) = reduced(x);
    (k, r, exp_rest(r, k.mul(W::splat(-LN2_REST))))
}

/// `exp(r + lost) - 1 - r`, for `r` of at most half of ln 2 and a small `lost`.
#[inline(always)]
fn exp_rest<W: Wide>(r: W, lost: W) -> W {
    // The powers from the square on are those of the rounded sum.
    let sum = r.add(lost);
    sum.mul(sum).mul_add(exp_series(sum), lost)
}

/// `(exp(r) - 1 - r) / r^2`, minimax (Remez, in 200 bits) by the error of `exp(r)`: 2^-60 of it.
#[inline(always)]
pub fn exp_series<W: Wide>(r: W) -> W {
    let even = [
        0.5,
        0.041_666_666_666_666_845,
        0.001_388_888_888_875_677_3,
        2.480_158_763_057_213e-5,
        2.755_697_829_423_236e-7,
        2.101_441_569_138_430_5e-9,
    ];
    let odd = [
        0.166_666_666_666_666_88,
        0.008_333_333_333_312_916,
        0.000_198_412_699_063_512_53,
        2.755_722_515_187_951_7e-6,
        2.511_533_201_577_884e-8,
    ];
    polynomial_by_squares(r, even, odd)
}

/// `exp(x) = 2^k (high + low)`, the sum between the roots of one half and of two, `low` up to a tenth of it.
#[inline(always)]
fn exp_pair<W: Wide>(x: W) -> (W, Pair<W>) {
    let (k, r, rest) = exp_parts(x);
    (k, one_more(r, rest))
}

/// `exp(x + c)` for a small `c`.
#[inline(always)]
pub fn exp_of_sum<W: Wide>(x: W, c: W) -> W {
    let (k, r) = reduced(clamp(x, -746.0, 710.0));
    one_more(r, exp_rest(r, k.mul_add(W::splat(-LN2_REST), c))).rounded().scaled(k)
}

/// `1 + r + rest`: the sum of the first two and its rounding error, so that only the last sum rounds.
#[inline(always)]
fn one_more<W: Wide>(r: W, rest: W) -> Pair<W> {
    let sum = W::one().add(r);
    Pair { high: sum, low: W::one().sub(sum).add(r).add(rest) }
}
