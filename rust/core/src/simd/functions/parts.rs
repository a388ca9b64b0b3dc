//! Parts of the functions of [`crate::simd::math`]: polynomials, exponents, signs.

#![allow(clippy::many_single_char_names, reason = "the letters of the formulas")]

use crate::simd::lane::{Element, Lane, Rare, Unary, power_of_two, power_of_two_less};

/// 1.5 * 2^52: added to a smaller number, it leaves the nearest integer in the low bits.
pub const ROUND: f64 = 6_755_399_441_055_744.0;
pub const LN2_HIGH: f64 = 6.931_471_803_691_238_164_90e-1;
pub const LN2_LOW: f64 = 1.908_214_929_270_587_700_02e-10;

/// `c[0] + x * (c[1] + x * (...))`, by Horner's rule.
#[inline(always)]
pub fn polynomial<L: Lane, const N: usize>(x: L, c: [f64; N]) -> L {
    let mut sum = L::splat(c[N - 1]);
    let mut k = N - 1;
    while k > 0 {
        k -= 1;
        sum = sum.mul_add(x, L::splat(c[k]));
    }
    sum
}

/// The same in half the time: the even and the odd powers are summed apart.
#[inline(always)]
pub fn polynomial_by_squares<L: Lane, const E: usize, const O: usize>(x: L, even: [f64; E], odd: [f64; O]) -> L {
    let square = x.mul(x);
    polynomial(square, odd).mul_add(x, polynomial(square, even))
}

/// 2 to the power `k`, of a normal number.
pub const fn two_to(k: i32) -> f64 {
    f64::from_bits((1023 + k as i64).cast_unsigned() << 52)
}

#[inline(always)]
pub fn clamp<L: Lane>(x: L, low: f64, high: f64) -> L {
    x.at_least(L::splat(low)).at_most(L::splat(high))
}

/// `size`, whose sign bit is not set, with the sign of `x`.
#[inline(always)]
pub fn with_sign_of<L: Lane>(size: L, x: L) -> L {
    let sign = L::bits_and(x.to_bits(), L::bits(L::Element::EXPONENTS << L::Element::FRACTION));
    L::from_bits(L::bits_or(size.to_bits(), sign))
}

/// Whether a bit (one of the low ones) is set.
#[inline(always)]
pub fn has<L: Lane>(bits: L::Bits, bit: u64) -> L::Mask {
    L::from_bits(L::bits_up(L::bits_and(bits, L::bits(bit)))).ne(L::zero())
}

/// `x = 2^k m` with `m` between the square roots of one half and of two, for positive normal `x`.
pub struct Parted<L: Lane> {
    pub k: L,
    pub m: L,
    /// `k` at the position of the exponent: taken from the bits of a number, it divides that by 2^k.
    pub exponent: L::Bits,
}

/// Parts a positive normal number.
#[inline(always)]
#[allow(clippy::cast_precision_loss, reason = "powers of two")]
pub fn parted<L: Lane>(x: L) -> Parted<L> {
    let (digits, exponents) = (L::Element::FRACTION, L::Element::EXPONENTS);
    let above = L::bits_sub(x.to_bits(), L::splat(std::f64::consts::FRAC_1_SQRT_2).to_bits());
    // The exponent is signed: the number of exponents is added to it, and taken away again as a number.
    let biased = L::bits_down(L::bits_add(above, L::bits(exponents << digits)));
    let whole = (1u64 << digits) as f64;
    let k = L::from_bits(L::bits_or(biased, L::splat(whole).to_bits())).sub(L::splat(whole + exponents as f64));
    let exponent = L::bits_and(above, L::bits((2 * exponents - 1) << digits));
    Parted { k, m: L::from_bits(L::bits_sub(x.to_bits(), exponent)), exponent }
}

/// Whether `x` is not a positive normal number.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "2048 at most")]
pub fn is_unusual<L: Lane>(x: L) -> L::Mask {
    let smallest = L::splat(two_to(2 - L::Element::EXPONENTS.cast_signed() as i32 / 2));
    L::select(x.lt(L::splat(f64::INFINITY)), x, L::zero()).lt(smallest)
}

/// `x = 2^k (1 + f)` with `1 + f` between the square roots of one half and of two, for positive `x`: `(k, f)`.
#[inline(always)]
pub fn log_parts<L: Lane>(x: L) -> (L, L) {
    let Parted { k, m, .. } = parted(x);
    let [k, m] = L::replace_where(is_unusual(x), [k, m], Subnormal(x));
    (k, m.sub(L::one()))
}

/// The parts of a subnormal number.
struct Subnormal<L>(L);

impl<L: Lane> Rare<L, 2> for Subnormal<L> {
    #[inline(always)]
    fn compute(self) -> [L; 2] {
        let digits = L::Element::FRACTION.cast_signed() + 2;
        let Parted { k, m, .. } = parted(self.0.mul(L::splat(two_to(digits))));
        [k.sub(L::splat(f64::from(digits))), m]
    }
}

/// `log`, a logarithm of `x`, with its limits: minus infinity at zero, NaN below zero, infinity at infinity.
#[inline(always)]
pub fn log_limits<L: Lane>(x: L, log: L) -> L {
    let [log] = L::replace_where(is_unusual(x), [log], Limits { x, log });
    log
}

/// A logarithm with its limits.
struct Limits<L> {
    x: L,
    log: L,
}

impl<L: Lane> Rare<L, 1> for Limits<L> {
    #[inline(always)]
    fn compute(self) -> [L; 1] {
        let Self { x, log } = self;
        let log = L::select(x.eq(L::splat(f64::INFINITY)), x, log);
        let log = L::select(x.eq(L::zero()), L::splat(f64::NEG_INFINITY), log);
        [L::select(L::zero().le(x), log, L::splat(f64::NAN))]
    }
}

/// `exp(x) - 1`, for `exp(x) = 2^k (1 + r + rest)`; `x` itself where that is smaller than `tiny`.
#[inline(always)]
pub fn expm1_of_parts<L: Lane>(x: L, (k, r, rest): (L, L, L), tiny: f64) -> L {
    // Half of it, since the power of two may be too large: the sum of `near`, of what it lost, and of the rest.
    let half = L::splat(0.5);
    let scale = power_of_two(k.sub(L::one()));
    let less = scale.sub(half);
    let near = scale.mul_add(r, less);
    let lost = scale.mul_add(r, less.sub(near)).add(scale.sub(less).sub(half));
    let value = near.add(scale.mul_add(rest, lost));
    L::select(x.abs().lt(L::splat(tiny)), x, value.add(value))
}

/// The logistic function of `x`, for `exp(-x) = 2^k (1 + r + rest)`; for numbers below `limit`, of which the residual below is no
/// normal number, `exp`.
#[inline(always)]
pub fn expit_of_parts<L: Lane>(x: L, (k, r, rest): (L, L, L), limit: f64, exp: impl Unary<L>) -> L {
    // With c = 2^-k it is the quotient of `c`, which is exact, and of `1 + c + less`.
    let (one, c) = (L::one(), power_of_two_less(0.0, k));
    let sum = one.add(c);
    let less = r.add(rest.add(c.sub(sum.sub(one))));
    let divisor = sum.add(less);
    let rest = less.sub(divisor.sub(sum));
    let inverse = one.div(divisor);
    let near = c.mul(inverse);
    // A step of Newton's method by the residual.
    let lost = near.neg().mul_add(rest, near.neg().mul_add(divisor, c));
    let value = lost.mul_add(inverse, near);
    let [value] = L::replace_where(x.lt(L::splat(limit)), [value], Called { x, function: exp });
    value
}

/// A function of `x`.
struct Called<L, F> {
    x: L,
    function: F,
}

impl<L: Lane, F: Unary<L>> Rare<L, 1> for Called<L, F> {
    #[inline(always)]
    fn compute(self) -> [L; 1] {
        [self.function.call(self.x)]
    }
}
