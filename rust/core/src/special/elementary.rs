//! Elementary functions that neither an instruction nor the standard library computes, one number at a time: logarithms
//! of sums.

use std::f64::consts::LOG2_E;

use super::double_double::{self, Double};

/// log(exp(a) + exp(b)).
pub fn logaddexp(a: f64, b: f64) -> f64 {
    log_of_sum(a, b, (double_double::LN_2, |d| d.exp().ln_1p()), |d| d.exp().ln_1p())
}

/// log2(2^a + 2^b).
pub fn logaddexp2(a: f64, b: f64) -> f64 {
    log_of_sum(a, b, (1.0.into(), |d| d.exp2().ln_1p() * LOG2_E), |d| d.exp2().ln_1p() / double_double::LN_2)
}

/// The larger number plus a function of the difference, whose value at zero is given; `exact` is the same function.
#[allow(clippy::float_cmp, reason = "equal infinities have no difference")]
fn log_of_sum(a: f64, b: f64, (of_zero, rough): (Double, fn(f64) -> f64), exact: fn(Double) -> Double) -> f64 {
    if a == b {
        return if a.is_finite() { (of_zero + a.into()).into() } else { a };
    }
    let (large, small) = (a.max(b), a.min(b));
    let more = rough(-(a - b).abs());
    let sum = large + more;
    // Near the root the two terms cancel.
    if sum.abs() < 0.4 * more && more > f64::MIN_POSITIVE {
        return (exact(Double::sum(small, -large)) + large.into()).into();
    }
    sum
}
