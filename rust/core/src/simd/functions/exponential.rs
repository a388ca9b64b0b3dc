//! The exponential function: its reduction is that of fdlibm (Sun Microsystems, 1993).

#![allow(clippy::many_single_char_names, reason = "the letters of the formulas")]

use super::pair::Pair;
use super::parts::{LN2_HIGH, LN2_LOW, ROUND, clamp, polynomial};
use crate::simd::lane::Wide;

/// e to the power `x`.
#[inline(always)]
pub fn exp<W: Wide>(x: W) -> W {
    let (k, power) = exp_pair(clamp(x, -746.0, 710.0));
    power.rounded().scaled(k)
}

/// `x = k ln 2 + r + c` with `r` at most half of ln 2 and `c` its rounding error: `(k, r, exp(r + c) - 1 - r)`.
#[inline(always)]
pub fn exp_parts<W: Wide>(x: W) -> (W, W, W) {
    let (k, high, low) = whole_ln2(x);
    let (r, rest) = exp_rest(high, low);
    (k, r, rest)
}

/// `x = k ln 2 + high - low` with a whole number `k`: `(k, high, low)`.
#[inline(always)]
pub fn whole_ln2<W: Wide>(x: W) -> (W, W, W) {
    let k = x.mul_add(W::splat(std::f64::consts::LOG2_E), W::splat(ROUND)).sub(W::splat(ROUND));
    (k, k.mul_add(W::splat(-LN2_HIGH), x), k.mul(W::splat(LN2_LOW)))
}

/// `r + c = high - low` with `r` at most half of ln 2 and `c` its rounding error: `(r, exp(r + c) - 1 - r)`.
#[inline(always)]
pub fn exp_rest<W: Wide>(high: W, low: W) -> (W, W) {
    let r = high.sub(low);
    let c = high.sub(r).sub(low);
    // Taylor's series: its remainder is less than 0.04 units in the last place.
    let q = polynomial(
        r,
        [
            1.0 / 2.0,
            1.0 / 6.0,
            1.0 / 24.0,
            1.0 / 120.0,
            1.0 / 720.0,
            1.0 / 5_040.0,
            1.0 / 40_320.0,
            1.0 / 362_880.0,
            1.0 / 3_628_800.0,
            1.0 / 39_916_800.0,
            1.0 / 479_001_600.0,
            1.0 / 6_227_020_800.0,
        ],
    );
    // exp(r + c) is approximately exp(r) + c exp(r).
    (r, r.mul(r).mul_add(q, r.mul_add(c, c)))
}

/// `exp(x) = 2^k (high + low)`, the sum between the roots of one half and of two, `low` up to a tenth of it.
#[inline(always)]
pub fn exp_pair<W: Wide>(x: W) -> (W, Pair<W>) {
    let (k, r, rest) = exp_parts(x);
    (k, one_more(r, rest))
}

/// `exp(x + c)` for a small `c`.
#[inline(always)]
pub fn exp_of_sum<W: Wide>(x: W, c: W) -> W {
    let (k, high, low) = whole_ln2(clamp(x, -746.0, 710.0));
    let (r, rest) = exp_rest(high, low.sub(c));
    one_more(r, rest).rounded().scaled(k)
}

/// `1 + r + rest`: the sum of the first two and its rounding error, so that only the last sum rounds.
#[inline(always)]
pub fn one_more<W: Wide>(r: W, rest: W) -> Pair<W> {
    let sum = W::one().add(r);
    Pair { high: sum, low: W::one().sub(sum).add(r).add(rest) }
}
