//! Bessel functions, one number at a time.

use super::gamma::gamma;

/// The largest order for which recurrences over the order are used. Above it, and for arguments up to the next constant,
/// Bessel functions are computed only where they underflow or overflow.
const HIGHEST: f64 = 1e5;
/// The argument from which the asymptotic limits hold for all orders that an `i32` represents.
const FAR: f64 = 1e91;

/// Bessel function of the first kind; NaN where the order is not an integer, or too high to compute.
pub fn jn(order: f64, x: f64) -> f64 {
    if is_below_all_zeros(order, x) {
        let is_odd = order % 2.0 != 0.0;
        return if is_odd && (order < 0.0) != (x < 0.0) { -0.0 } else { 0.0 };
    }
    followed(order, x).map_or(f64::NAN, |order| libm::jn(order, x))
}

/// Bessel function of the second kind; NaN where the order is not an integer, or too high to compute.
pub fn yn(order: f64, x: f64) -> f64 {
    if x >= 0.0 && is_below_all_zeros(order, x) {
        return if order < 0.0 && order % 2.0 != 0.0 { f64::INFINITY } else { f64::NEG_INFINITY };
    }
    followed(order, x).map_or(f64::NAN, |order| libm::yn(order, x))
}

/// Whether the order is a high integer, and the argument so much less that the function of the first kind underflows,
/// and that of the second kind overflows: by the inequality of Kapteyn and Siegel (DLMF
/// 10.14.5).
fn is_below_all_zeros(order: f64, x: f64) -> bool {
    let (n, z) = (order.abs(), (x / order).abs());
    if order.fract() != 0.0 || n <= HIGHEST || z.is_nan() || z >= 1.0 {
        return false;
    }
    let root = ((1.0 - z) * (1.0 + z)).sqrt();
    // The logarithm of the bound is `n` times this, which rounding does not decrease.
    let log = (z.ln() + root - root.ln_1p()) * (1.0 - 1e-15) + 1e-15;
    n * log < -760.0 - n.ln()
}

/// The order, if it is an integer in the range of the recurrences.
#[allow(clippy::cast_possible_truncation, reason = "the range makes the cast exact")]
fn followed(order: f64, x: f64) -> Option<i32> {
    let highest = if x.abs() > FAR { f64::from(i32::MAX) } else { HIGHEST };
    (order.fract() == 0.0 && order.abs() <= highest).then_some(order as i32)
}

/// Modified Bessel function of the first kind: its power series, whose terms all have the same sign.
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
