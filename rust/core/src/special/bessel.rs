//! Bessel functions of numbers.

use super::gamma::gamma;

/// Up to this order, recurrences over the order are not too long. Beyond, and for no larger an argument than the next,
/// Bessel functions are known only where they are too small for a number, or too large.
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

/// Whether the order is whole and high, and the argument so much less that the function of the first kind is nearer to
/// zero than any number, and that of the second kind beyond all: by the inequality of Kapteyn and Siegel (DLMF
/// 10.14.5).
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
