//! Parts of the functions of [`crate::simd::math`]: polynomials, exponents, signs.

#![allow(clippy::many_single_char_names, reason = "the letters of the formulas")]

use crate::simd::lane::Wide;

/// 1.5 * 2^52: added to a smaller number, it leaves the nearest integer in the low bits.
pub const ROUND: f64 = 6_755_399_441_055_744.0;
pub const LN2_HIGH: f64 = 6.931_471_803_691_238_164_90e-1;
pub const LN2_LOW: f64 = 1.908_214_929_270_587_700_02e-10;

/// `c[0] + x * (c[1] + x * (...))`, by Horner's rule.
#[inline(always)]
pub fn polynomial<W: Wide, const N: usize>(x: W, c: [f64; N]) -> W {
    let mut sum = W::splat(c[N - 1]);
    let mut k = N - 1;
    while k > 0 {
        k -= 1;
        sum = sum.mul_add(x, W::splat(c[k]));
    }
    sum
}

/// 2 to the power `k`, of a normal number.
pub const fn two_to(k: i32) -> f64 {
    f64::from_bits((1023 + k as i64).cast_unsigned() << 52)
}

/// 2 to the power `k`, a whole number from -1023 (which gives zero) to 1024 (which gives infinity).
#[inline(always)]
pub fn power_of_two<W: Wide>(k: W) -> W {
    W::from_bits(W::bits_up52(k.add(W::splat(ROUND + 1023.0)).to_bits()))
}

#[inline(always)]
pub fn clamp<W: Wide>(x: W, low: f64, high: f64) -> W {
    let (low, high) = (W::splat(low), W::splat(high));
    let x = W::select(x.lt(low), low, x);
    W::select(high.lt(x), high, x)
}

/// `2^k p`, in two steps, since `2^k` itself may be too small or too large.
#[inline(always)]
pub fn scaled<W: Wide>(k: W, p: W) -> W {
    let half = k.mul(W::splat(0.5)).floor();
    p.mul(power_of_two(half)).mul(power_of_two(k.sub(half)))
}

/// `size`, whose sign bit is not set, with the sign of `x`.
#[inline(always)]
pub fn with_sign_of<W: Wide>(size: W, x: W) -> W {
    let sign = W::bits_and(x.to_bits(), W::bits(1 << 63));
    W::from_bits(W::bits_or(size.to_bits(), sign))
}

/// `x = 2^k (1 + f)` with `1 + f` between the square roots of one half and of two, for positive normal `x`: `(k, f)`.
#[inline(always)]
pub fn log_parts<W: Wide>(x: W) -> (W, W) {
    let above = W::bits_sub(x.to_bits(), W::bits(std::f64::consts::FRAC_1_SQRT_2.to_bits()));
    // The exponent is signed: 2048 is added to it, and taken away again as a number.
    let biased = W::bits_down52(W::bits_add(above, W::bits(2048 << 52)));
    let whole = 4_503_599_627_370_496.0f64;
    let k = W::from_bits(W::bits_or(biased, W::bits(whole.to_bits()))).sub(W::splat(whole + 2048.0));
    let mantissa = W::bits_sub(x.to_bits(), W::bits_and(above, W::bits(0xfff << 52)));
    (k, W::from_bits(mantissa).sub(W::one()))
}

/// `log`, a logarithm of `x`, with its limits: minus infinity at zero, NaN below zero, infinity at infinity.
#[inline(always)]
pub fn log_limits<W: Wide>(x: W, log: W) -> W {
    let log = W::select(x.eq(W::splat(f64::INFINITY)), x, log);
    let log = W::select(x.eq(W::zero()), W::splat(f64::NEG_INFINITY), log);
    W::select(W::zero().le(x), log, W::splat(f64::NAN))
}
