//! Functions of numbers that neither an instruction nor the standard library computes.

use std::f64::consts::{FRAC_2_SQRT_PI, LOG2_E, PI};

use super::double_double::{self, Double};
use super::gamma::{BERNOULLI, digamma, gamma};

/// Remainder of the floored quotient: it has the sign of `b`.
pub fn remainder(a: f64, b: f64) -> f64 {
    let r = a % b;
    if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
}

/// The floored quotient: the whole number `q` with `a = q b + remainder(a, b)`, nearly.
pub fn floor_divide(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return a / b;
    }
    // Whole but for rounding; the sign of a zero is that of the quotient.
    ((a - remainder(a, b)) / b).round().abs().copysign(a / b)
}

/// `a` to the power `b`; to the power 1 and 2 exactly `a` and `a * a`.
pub fn pow(a: f64, b: f64) -> f64 {
    match b {
        1.0 => a,
        2.0 => a * a,
        _ => a.powf(b),
    }
}

/// log(exp(a) + exp(b)).
pub fn logaddexp(a: f64, b: f64) -> f64 {
    log_of_sum(a, b, (double_double::LN_2, |d| d.exp().ln_1p()), |d| d.exp().ln_1p())
}

/// log2(2^a + 2^b).
pub fn logaddexp2(a: f64, b: f64) -> f64 {
    log_of_sum(a, b, (1.0.into(), |d| d.exp2().ln_1p() * LOG2_E), |d| d.exp2().ln_1p() / double_double::LN_2)
}

/// The larger number plus a function of the difference, and what that is of zero; `exact` is the same function.
#[allow(clippy::float_cmp, reason = "equal infinities have no difference")]
fn log_of_sum(a: f64, b: f64, (of_zero, rough): (Double, fn(f64) -> f64), exact: fn(Double) -> Double) -> f64 {
    if a == b {
        return if a.is_finite() { (of_zero + a.into()).into() } else { a };
    }
    let (large, small) = (a.max(b), a.min(b));
    let more = rough(-(a - b).abs());
    let sum = large + more;
    // Next to its root the two terms cancel.
    if sum.abs() < 0.4 * more && more > f64::MIN_POSITIVE {
        return (exact(Double::sum(small, -large)) + large.into()).into();
    }
    sum
}

/// The inverse of the error function: Winitzki's approximation (2008), improved by Halley's steps.
pub fn erfinv(y: f64) -> f64 {
    let target = y.abs();
    if target >= 1.0 || target == 0.0 {
        return if target > 1.0 { f64::NAN } else { y / (1.0 - target) };
    }
    inverse_error(target, 1.0 - target).copysign(y)
}

/// The inverse of `erfc`.
pub fn erfcinv(y: f64) -> f64 {
    if y >= 0.5 {
        return erfinv(1.0 - y);
    }
    match y {
        0.0 => f64::INFINITY,
        _ if y > 0.0 => inverse_error(1.0 - y, y),
        _ => f64::NAN,
    }
}

/// Where the error function has a positive value, and one less that `complement`.
fn inverse_error(value: f64, complement: f64) -> f64 {
    let log = if value < 0.5 { (-value * value).ln_1p() } else { (complement * (1.0 + value)).ln() };
    let a = 0.147;
    let half = 2.0 / (PI * a) + log / 2.0;
    let mut x = ((half * half - log / a).sqrt() - half).sqrt();
    if !x.is_normal() {
        x = value / FRAC_2_SQRT_PI;
    }
    for _ in 0..20 {
        let error = if value < 0.5 { libm::erf(x) - value } else { complement - libm::erfc(x) };
        let newton = error / (FRAC_2_SQRT_PI * (-x * x).exp());
        let step = newton / (1.0 + x * newton);
        x -= step;
        if step.abs() <= 1e-6 * x {
            break; // The error is about the third power of the step before.
        }
    }
    x
}

/// Below this, the poles of `polygamma` are too many to be passed one by one.
const LOWEST: f64 = -1e4;

/// The `n`-th derivative of `digamma`, for whole `n`: Hurwitz's zeta function by Euler's and Maclaurin's formula.
pub fn polygamma(n: f64, mut x: f64) -> f64 {
    if n == 0.0 {
        return digamma(x);
    }
    if n < 0.0 || n.fract() != 0.0 || n > 170.0 || x.is_nan() || x < LOWEST {
        return f64::NAN;
    }
    let order = n + 1.0;
    let mut zeta = 0.0;
    while x < order + 12.0 {
        zeta += x.powf(-order);
        x += 1.0;
    }
    zeta += x.powf(-n) / n + 0.5 * x.powf(-order);
    let (mut rising, mut power) = (order, x.powf(-order - 1.0));
    for (k, bernoulli) in (1u32..).zip(BERNOULLI) {
        zeta += bernoulli * rising * power;
        rising *= (n + f64::from(2 * k)) * (order + f64::from(2 * k));
        power /= x * x;
    }
    let size = gamma(order) * zeta;
    if n % 2.0 == 0.0 { -size } else { size }
}

/// Up to this order, recurrences over the order are not too long. Beyond, and for no larger an argument than the next, Bessel
/// functions are known only where they are too small for a number, or too large.
const HIGHEST: f64 = 1e5;
/// From here on their limits for large arguments hold for all orders that an `i32` is.
const FAR: f64 = 1e91;

/// Bessel function of the first kind; NaN where the order is not whole, or too high to follow its zeros.
pub fn jn(order: f64, x: f64) -> f64 {
    if is_below_all_zeros(order, x) {
        let is_odd = order % 2.0 != 0.0;
        return if is_odd && (order < 0.0) != (x < 0.0) { -0.0 } else { 0.0 };
    }
    followed(order, x).map_or(f64::NAN, |order| libm::jn(order, x))
}

/// Bessel function of the second kind; NaN where the order is not whole, or too high to follow its zeros.
pub fn yn(order: f64, x: f64) -> f64 {
    if x >= 0.0 && is_below_all_zeros(order, x) {
        return if order < 0.0 && order % 2.0 != 0.0 { f64::INFINITY } else { f64::NEG_INFINITY };
    }
    followed(order, x).map_or(f64::NAN, |order| libm::yn(order, x))
}

/// Whether the order is whole and high, and the argument so much less that the function of the first kind is nearer to zero
/// than any number, and that of the second kind beyond all: by the inequality of Kapteyn and Siegel (DLMF 10.14.5).
fn is_below_all_zeros(order: f64, x: f64) -> bool {
    let (n, z) = (order.abs(), (x / order).abs());
    if order.fract() != 0.0 || n <= HIGHEST || z.is_nan() || z >= 1.0 {
        return false;
    }
    let root = ((1.0 - z) * (1.0 + z)).sqrt();
    // The logarithm of the bound is `n` times this, which rounding has not made less than it is.
    let log = (z.ln() + root - root.ln_1p()) * (1.0 - 1e-15) + 1e-15;
    n * log < -760.0 - n.ln()
}

/// The order, if it is whole and recurrences lead to it.
#[allow(clippy::cast_possible_truncation, reason = "the range says that nothing is lost")]
fn followed(order: f64, x: f64) -> Option<i32> {
    let highest = if x.abs() > FAR { f64::from(i32::MAX) } else { HIGHEST };
    (order.fract() == 0.0 && order.abs() <= highest).then_some(order as i32)
}

/// Modified Bessel function of the first kind: its power series, whose terms all have one sign.
pub fn iv(order: f64, x: f64) -> f64 {
    let order = if order.fract() == 0.0 { order.abs() } else { order };
    let half = x / 2.0;
    let mut term = half.powf(order) / gamma(order + 1.0);
    let (mut sum, mut k) = (term, 1.0);
    while sum.is_finite() && term.abs() > sum.abs() * 1e-17 {
        term *= half * half / (k * (k + order));
        sum += term;
        k += 1.0;
    }
    sum
}
