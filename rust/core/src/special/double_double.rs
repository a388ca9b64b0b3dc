//! Double-double arithmetic: numbers of about 106 bits as unevaluated sums of two `f64` (Dekker 1971; Knuth, TAOCP
//! 4.2.2).
//!
//! Special functions use it where terms cancel, so that the result is accurate to an `f64`.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// The sum `hi + lo`, where `lo` is at most half a unit in the last place of `hi`.
#[derive(Clone, Copy, Debug)]
pub struct Double {
    pub hi: f64,
    pub lo: f64,
}

pub const LN_2: Double = Double { hi: std::f64::consts::LN_2, lo: 2.319_046_813_846_299_6e-17 };
pub const PI: Double = Double { hi: std::f64::consts::PI, lo: 1.224_646_799_147_353_2e-16 };

/// The reciprocals of the odd numbers.
pub const ODD: [Double; 22] = {
    let mut found = [Double { hi: 1.0, lo: 0.0 }; 22];
    let (mut k, mut odd) = (0, 1.0);
    while k < found.len() {
        found[k] = Double::ratio(1.0, odd);
        odd += 2.0;
        k += 1;
    }
    found
};

/// The reciprocals of the factorials of 1, 2, ...; lower halves only where a polynomial reads them.
pub const FACTORIALS: [Double; 15] = {
    let mut found = [Double { hi: 1.0, lo: 0.0 }; 15];
    let (mut at, mut factorial, mut k) = (0, 1.0, 1.0);
    while at < found.len() {
        factorial *= k;
        found[at] = if at < 8 { Double::ratio(1.0, factorial) } else { Double { hi: 1.0 / factorial, lo: 0.0 } };
        k += 1.0;
        at += 1;
    }
    found
};

impl From<f64> for Double {
    fn from(hi: f64) -> Self {
        Self { hi, lo: 0.0 }
    }
}

impl From<Double> for f64 {
    fn from(x: Double) -> Self {
        x.hi + x.lo
    }
}

impl Double {
    /// `a + b` without rounding.
    pub fn sum(a: f64, b: f64) -> Self {
        let hi = a + b;
        let of_b = hi - a;
        Self { hi, lo: (a - (hi - of_b)) + (b - of_b) }
    }

    /// `a * b` without rounding, unless it underflows.
    pub fn product(a: f64, b: f64) -> Self {
        let hi = a * b;
        Self { hi, lo: a.mul_add(b, -hi) }
    }

    /// `a / b` of whole numbers, of which `b` is below 2^26.
    pub const fn ratio(a: f64, b: f64) -> Self {
        let hi = a / b;
        // Half of the bits, so that no product is rounded.
        let upper = f64::from_bits(hi.to_bits() & !0x7ff_ffff);
        Self { hi, lo: ((a - upper * b) - (hi - upper) * b) / b }
    }

    /// As [`Double::sum`], for `|a| >= |b|`.
    fn fast_sum(a: f64, b: f64) -> Self {
        let hi = a + b;
        Self { hi, lo: b - (hi - a) }
    }

    /// Times a power of two.
    pub fn scaled(self, power: f64) -> Self {
        Self { hi: self.hi * power, lo: self.lo * power }
    }

    pub fn square(self) -> Self {
        self * self
    }

    /// The polynomial with these coefficients, from the constant on, and `rest` after the last one, at `self`.
    pub fn polynomial(self, coefficients: &[Self], rest: f64) -> Self {
        coefficients.iter().rev().fold(rest.into(), |sum: Self, coefficient| sum * self + *coefficient)
    }

    /// The natural logarithm of a positive, finite, normal number.
    pub fn ln(self) -> Self {
        let (_, exponent) = libm::frexp(self.hi * std::f64::consts::SQRT_2);
        let exponent = exponent - 1;
        // In two steps, since the power itself may overflow.
        let halves = [exponent / 2, exponent - exponent / 2].map(|half| libm::ldexp(1.0, -half));
        let mantissa = self.scaled(halves[0]).scaled(halves[1]);
        LN_2 * f64::from(exponent).into() + ((mantissa - 1.0.into()) / (mantissa + 1.0.into())).twice_atanh()
    }

    /// `2 atanh(self)`, for at most 0.1716.
    fn twice_atanh(self) -> Self {
        let square = self.square();
        // Terms that contribute only to the lower half need no lower half.
        let (head, tail) = ODD.split_at(11);
        let rest = tail.iter().rev().fold(0.0, |sum, coefficient| sum * square.hi + coefficient.hi);
        self.scaled(2.0) * square.polynomial(head, rest)
    }

    /// The exponential function, where it is a normal number.
    #[allow(clippy::cast_possible_truncation, reason = "the exponent of a normal number")]
    pub fn exp(self) -> Self {
        let exponent = (self.hi * std::f64::consts::LOG2_E).round();
        let rest = (self - LN_2 * exponent.into()).scaled(1.0 / 16.0);
        let (head, tail) = FACTORIALS.split_at(8);
        let last = tail.iter().rev().fold(0.0, |sum, coefficient| sum * rest.hi + coefficient.hi);
        let mut less_one = rest * rest.polynomial(head, last);
        for _ in 0..4 {
            less_one = less_one * (less_one + 2.0.into());
        }
        (less_one + 1.0.into()).scaled(libm::ldexp(1.0, exponent as i32))
    }

    /// The sine and the cosine of pi times a number of at most one half.
    pub fn sin_cos_pi(x: f64) -> [Self; 2] {
        let swaps = x.abs() > 0.25;
        let angle = PI * if swaps { 0.5 - x.abs() } else { x.abs() }.into();
        let square = -angle.square();
        let series = |start: u32| {
            (0..14).rev().fold(Self::from(0.0), |sum, k| {
                let next = f64::from((2 * k + start + 1) * (2 * k + start + 2));
                Self::from(1.0) + sum * square / next.into()
            })
        };
        let (sine, cosine) = (angle * series(1), series(0));
        let (sine, cosine) = if swaps { (cosine, sine) } else { (sine, cosine) };
        [if x < 0.0 { -sine } else { sine }, cosine]
    }
}

impl Add for Double {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (high, low) = (Self::sum(self.hi, other.hi), Self::sum(self.lo, other.lo));
        let high = Self::fast_sum(high.hi, high.lo + low.hi);
        Self::fast_sum(high.hi, high.lo + low.lo)
    }
}

impl Neg for Double {
    type Output = Self;
    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }
}

impl Sub for Double {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Double {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let high = Self::product(self.hi, other.hi);
        Self::fast_sum(high.hi, high.lo + (self.hi * other.lo + self.lo * other.hi))
    }
}

impl Div for Double {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let first = self.hi / other.hi;
        let rest = self - other * first.into();
        let second = rest.hi / other.hi;
        let last = (rest - other * second.into()).hi / other.hi;
        let quotient = Self::fast_sum(first, second);
        Self::fast_sum(quotient.hi, quotient.lo + last)
    }
}
