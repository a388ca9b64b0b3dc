//! Inverses of the error function and of its complement, one number at a time.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

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

/// The inverse error function of a positive `value`; `complement` is `1 - value`.
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
