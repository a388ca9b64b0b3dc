//! Exponentials, hyperbolic functions, and the error function by an exponential.

use super::parts::{LN2, Single, nearest_of};
use crate::simd::functions::parts::{clamp, expit_of_parts, expm1_of_parts, polynomial, with_sign_of};
use crate::simd::lane::{Unary, power_of_two};

/// `exp(x) = 2^k (1 + r + rest)`, with `r` at most half of ln 2: `(k, r, rest)`.
#[inline(always)]
fn power<L: Single>(x: L) -> (L, L, L) {
    let k = nearest_of(x, std::f64::consts::LOG2_E);
    // The difference is exact; the powers from the square on are those of the rounded sum.
    let r = k.mul_add(L::splat(-LN2[0]), x);
    let lost = k.mul(L::splat(-LN2[1]));
    let sum = r.add(lost);
    (k, r, sum.mul(sum).mul_add(exp_series(sum), lost))
}

/// `(exp(r) - 1 - r) / r^2`, by the error of `exp(r) - 1`: 2^-28.7 of it. All coefficients are rounded at once.
#[inline(always)]
fn exp_series<L: Single>(r: L) -> L {
    polynomial(r, [0.5, 1.666_666_567e-1, 4.166_635_871e-2, 8.333_389_647e-3, 1.394_072_082e-3, 1.984_590_926e-4])
}

/// e to the power `x`.
#[inline(always)]
pub fn exp<L: Single>(x: L) -> L {
    let (k, r, rest) = power(clamp(x, -104.0, 89.0));
    L::one().add(r.add(rest)).scaled(k)
}

/// e to the power `x`, minus one.
#[inline(always)]
pub fn expm1<L: Single>(x: L) -> L {
    expm1_of_parts(x, power(clamp(x, -20.0, 89.0)), 1e-9)
}

/// The logistic function.
#[inline(always)]
pub fn expit<L: Single>(x: L) -> L {
    expit_of_parts(x, power(x.at_most(L::splat(20.0)).neg()), -70.0, Exp)
}

/// [`exp`], as [`Unary`].
#[derive(Clone, Copy, Default)]
struct Exp;

impl<L: Single> Unary<L> for Exp {
    #[inline(always)]
    fn call(self, a: L) -> L {
        exp(a)
    }
}

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh<L: Single>(x: L) -> L {
    let (one, size) = (L::one(), x.abs());
    let square = x.mul(x);
    // `(tanh(x) / x - 1) / x^2`, by the error of the hyperbolic tangent: 2^-27.7 of it.
    let series = polynomial(
        square,
        [
            -3.333_329_558e-1,
            1.333_234_757e-1,
            -5.387_998_745e-2,
            2.148_717_642e-2,
            -7.946_845_144e-3,
            2.301_884_349e-3,
            -3.585_956_292e-4,
        ],
    );
    let near = square.mul(size).mul_add(series, size);
    // 1 - 2 / (exp(2 |x|) + 1): from one on, the quotient and its error are small.
    let bounded = size.at_most(L::splat(10.0));
    let k = nearest_of(bounded, 2.0 * std::f64::consts::LOG2_E);
    let r = k.mul_add(L::splat(-LN2[0]), bounded.add(bounded));
    let less = r.mul(r).mul_add(exp_series(r), r);
    let scale = power_of_two(k);
    let far = one.sub(L::splat(2.0).div(scale.mul_add(less, scale.add(one))));
    with_sign_of(L::select(size.lt(one), near, far), x)
}

/// Half of `exp(x) + sign * exp(-x)`, for `x` that is not negative.
#[inline(always)]
fn half_sum<L: Single>(x: L, sign: f64) -> L {
    let (one, x) = (L::one(), x.at_most(L::splat(90.0)));
    let k = nearest_of(x, std::f64::consts::LOG2_E);
    let high = k.mul_add(L::splat(-LN2[0]), x);
    let low = L::splat(-LN2[1]);
    let r = k.mul_add(low, high);
    let lost = k.mul_add(low, high.sub(r));
    // Taylor's series of `(cosh(r) - 1) / r^2` and `(sinh(r) / r - 1) / r^2`: their remainders are less than 2^-30.
    let square = r.mul(r);
    let even = polynomial(square, [1.0 / 2.0, 1.0 / 24.0, 1.0 / 720.0, 1.0 / 40_320.0]);
    let odd = polynomial(square, [1.0 / 6.0, 1.0 / 120.0, 1.0 / 5_040.0]);
    // Twice the value over 2^k, which may be too large, is `of_cosh cosh(r) + of_sinh sinh(r)`.
    let other = power_of_two(k.mul(L::splat(-2.0)).at_least(L::splat(-126.0))).mul(L::splat(sign));
    let (of_cosh, of_sinh) = (one.add(other), one.sub(other));
    let near = of_sinh.mul_add(r, of_cosh);
    let rest = of_sinh.mul_add(r, of_cosh.sub(near)).add(one.sub(of_cosh).add(other));
    let rest = of_sinh.mul_add(r.mul(square).mul_add(odd, lost), rest);
    let rest = of_cosh.mul(square).mul_add(even, rest);
    near.add(rest).mul(L::splat(0.5)).scaled(k)
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh<L: Single>(x: L) -> L {
    half_sum(x.abs(), 1.0)
}

/// Hyperbolic sine.
#[inline(always)]
pub fn sinh<L: Single>(x: L) -> L {
    with_sign_of(half_sum(x.abs(), -1.0), x)
}

/// The error function.
#[inline(always)]
pub fn erf<L: Single>(x: L) -> L {
    let (one, size, square) = (L::one(), x.abs(), x.mul(x));
    // `erf(x) / x - 1`, by the error of the error function: 2^-29.4 of it.
    let series = polynomial(
        square,
        [
            1.283_791_661e-1,
            -3.761_262_596e-1,
            1.128_357_872e-1,
            -2.685_334_720e-2,
            5.187_162_198e-3,
            -7.997_853_099e-4,
            7.806_903_886e-5,
        ],
    );
    let near = x.mul_add(series, x);
    // `log(1 - erf(|x|))` from 0.96 to 3.95, by the error of the error function: 2^-34 of it.
    let bounded = size.at_most(L::splat(3.95));
    let slope = polynomial(
        bounded,
        [
            -1.129_580_259,
            -6.332_165_599e-1,
            -1.084_218_994e-1,
            2.521_021_664e-2,
            -4.205_240_868e-3,
            4.414_616_560e-4,
            -2.169_592_517e-5,
        ],
    );
    // Its rest beyond `k ln 2`, of which the product is rounded once: `k` times the first part of ln 2 is exact.
    let first = L::splat(1.884_670_055e-4);
    let k = nearest_of(slope.mul_add(bounded, first), std::f64::consts::LOG2_E);
    let high = slope.mul_add(bounded, k.mul(L::splat(-0.693_359_375)));
    let r = high.add(k.mul_add(L::splat(2.121_944_400_546_905e-4), first));
    let scale = power_of_two(k);
    let far = one.sub(scale.mul_add(r.mul(r).mul_add(exp_series(r), r), scale));
    L::select(size.lt(L::splat(0.96)), near, with_sign_of(far, x))
}
