//! Derivatives of the incomplete beta function by its parameters, to second order: its continued fraction and the factor before it
//! are computed in truncated Taylor series of both parameters.

use std::ops::{Add, Mul};

use super::gamma::{digamma, polygamma, stirling_slope};
use super::incomplete::{LARGE, ROUNDED, STEPS, TINY, binomial, is_outside_beta};

/// A function of `a` and `b`: its value, its derivatives by `a` and `b`, and by `aa`, `ab` and `bb`.
#[derive(Clone, Copy)]
struct Series([f64; 6]);

const UNKNOWN: Series = Series([f64::NAN; 6]);

impl Series {
    fn a(value: f64) -> Self {
        Self([value, 1.0, 0.0, 0.0, 0.0, 0.0])
    }

    fn b(value: f64) -> Self {
        Self([value, 0.0, 1.0, 0.0, 0.0, 0.0])
    }

    fn scaled(self, factor: f64) -> Self {
        Self(self.0.map(|part| part * factor))
    }

    /// `f(self)`, by the value of `f` and its first two derivatives.
    fn mapped(self, [f, slope, curvature]: [f64; 3]) -> Self {
        let Self([_, a, b, aa, ab, bb]) = self;
        let second = |part: f64, product: f64| slope * part + curvature * product;
        Self([f, slope * a, slope * b, second(aa, a * a), second(ab, a * b), second(bb, b * b)])
    }

    fn inverse(self) -> Self {
        let inverse = 1.0 / if self.0[0].abs() < TINY { TINY } else { self.0[0] };
        self.mapped([inverse, -inverse * inverse, 2.0 * inverse * inverse * inverse])
    }

    /// The same function with `a` and `b` exchanged.
    fn exchanged(self) -> Self {
        let Self([value, a, b, aa, ab, bb]) = self;
        Self([value, b, a, bb, ab, aa])
    }
}

impl Add for Series {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        for (part, more) in self.0.iter_mut().zip(other.0) {
            *part += more;
        }
        self
    }
}

impl Add<f64> for Series {
    type Output = Self;

    fn add(mut self, other: f64) -> Self {
        self.0[0] += other;
        self
    }
}

impl Mul for Series {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let (Self([x, xa, xb, xaa, xab, xbb]), Self([y, ya, yb, yaa, yab, ybb])) = (self, other);
        Self([
            x * y,
            xa * y + x * ya,
            xb * y + x * yb,
            xaa * y + 2.0 * xa * ya + x * yaa,
            xab * y + xa * yb + xb * ya + x * yab,
            xbb * y + 2.0 * xb * yb + x * ybb,
        ])
    }
}

/// `digamma(x + by) - digamma(x)`, which does not cancel for large numbers.
fn digamma_rise(x: f64, by: f64) -> f64 {
    if x.min(x + by) < LARGE {
        return digamma(x + by) - digamma(x);
    }
    (by / x).ln_1p() + 0.5 * by / x / (x + by) - (stirling_slope(x + by) - stirling_slope(x))
}

/// `x^a (1 - x)^b / (a B(a, b))`.
fn factor(a: f64, b: f64, x: f64) -> Series {
    let value = binomial(a, b, x) / a;
    let both = polygamma(1.0, a + b);
    let logarithm = Series([
        0.0,
        x.ln() + digamma_rise(a + 1.0, b - 1.0),
        (-x).ln_1p() + digamma_rise(b, a),
        both - polygamma(1.0, a + 1.0),
        both,
        both - polygamma(1.0, b),
    ]);
    logarithm.mapped([value; 3])
}

/// The continued fraction of `beta_fraction`.
fn fraction(a: f64, b: f64, x: f64) -> Series {
    let (a, b) = (Series::a(a), Series::b(b));
    let mut c = Series([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let mut d = (((a + b) * (a + 1.0).inverse()).scaled(-x) + 1.0).inverse();
    let mut h = d;
    for m in 1..STEPS {
        let m = f64::from(m);
        let middle = a + 2.0 * m;
        let even = (b + -m).scaled(m * x) * ((middle + -1.0) * middle).inverse();
        let odd = ((a + m) * (a + b + m)).scaled(-x) * (middle * (middle + 1.0)).inverse();
        let mut is_last = false;
        for above in [even, odd] {
            d = (above * d + 1.0).inverse();
            c = above * c.inverse() + 1.0;
            let step = c * d;
            let next = h * step;
            // A derivative of the step is a difference, which is rounded, too.
            is_last = (0..6).all(|k| {
                let rounding = (h.0[0] * c.0[k] * d.0[0]).abs();
                (next.0[k] - h.0[k]).abs() <= ROUNDED * (next.0[k].abs() + rounding)
            });
            h = next;
        }
        if is_last {
            return h;
        }
    }
    UNKNOWN
}

#[inline(never)] // the loops of five ops call it
fn slopes(a: f64, b: f64, x: f64) -> Series {
    let below = |a: f64, b: f64, x: f64| {
        let factor = factor(a, b, x);
        if factor.0[0] == 0.0 { Series([0.0; 6]) } else { factor * fraction(a, b, x) }
    };
    match x {
        _ if is_outside_beta(a, b, x) || a == 0.0 || b == 0.0 => UNKNOWN,
        0.0 | 1.0 => Series([0.0; 6]),
        _ if a.is_infinite() || b.is_infinite() => Series([0.0; 6]),
        _ if x < (a + 1.0) / (a + b + 2.0) => below(a, b, x),
        _ => below(b, a, 1.0 - x).exchanged().scaled(-1.0),
    }
}

macro_rules! slopes {
    ($($name:ident $at:literal)*) => {$(
        /// Derivative of `betainc` by the parameters that the name ends with.
        pub fn $name(a: f64, b: f64, x: f64) -> f64 {
            slopes(a, b, x).0[$at]
        }
    )*};
}

slopes! { betainc_a 1 betainc_b 2 betainc_aa 3 betainc_ab 4 betainc_bb 5 }
