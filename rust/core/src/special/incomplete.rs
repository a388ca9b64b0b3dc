//! Incomplete gamma and beta functions, one number at a time: power series where they converge fast, else continued fractions,
//! with derivatives by Lentz's method as modified by Thompson and Barnett (1986). Formulas: DLMF 8.7, 8.9, 8.11 and 8.17.

use std::f64::consts::PI;

use super::gamma::{digamma, gamma, gammaln, stirling};

/// The relative size below which a term does not change a sum.
const SMALL: f64 = 1e-17;
/// Replaces zero as a divisor.
pub(super) const TINY: f64 = 1e-300;
/// The distance from one below which a factor is one up to rounding.
pub(super) const ROUNDED: f64 = 4e-16;
/// The maximum number of terms of a series or a fraction, which is of the order of the square root of the arguments.
/// The result is NaN if more are needed (arguments of 1e8 that are near each other).
pub(super) const STEPS: u32 = 100_000;
/// The result, with its derivative, where more terms are needed.
const UNKNOWN: (f64, f64) = (f64::NAN, f64::NAN);
/// The argument from which Stirling's series is accurate to an `f64`.
pub(super) const LARGE: f64 = 12.0;

/// `log1p(x) - x`, accurate where `x` is small.
fn log1p_less_x(x: f64) -> f64 {
    if !(-0.5..1.0).contains(&x) {
        return x.ln_1p() - x;
    }
    // log1p(x) = 2 atanh(t)
    let t = x / (2.0 + x);
    let (mut sum, mut power, mut k) = (0.0, 2.0 * t * t * t, 3.0);
    while power.abs() / k > SMALL * f64::abs(sum) {
        sum += power / k;
        power *= t * t;
        k += 2.0;
    }
    sum - x * t
}

/// `log(x / m) - (x - m) / m`, accurate where `x` is near `m` and where it is small.
fn log_ratio_less(x: f64, m: f64) -> f64 {
    let apart = (x - m) / m;
    if apart < -0.5 { (x / m).ln() - apart } else { log1p_less_x(apart) }
}

/// `log(gamma(1 + a))`, accurate where `a` is small.
fn gammaln1p(a: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    // Riemann's zeta function at 2, 3, ...
    const ZETA: [f64; 6] = [
        1.644_934_066_848_226_4,
        1.202_056_903_159_594_3,
        1.082_323_233_711_138_2,
        1.036_927_755_143_37,
        1.017_343_061_984_449,
        1.008_349_277_381_922_8,
    ];
    if a.abs() > 1e-3 {
        return gammaln(1.0 + a);
    }
    let series = (2u32..8).zip(ZETA).rev().fold(0.0, |sum, (k, zeta)| zeta / f64::from(k) - a * sum);
    a * (a * series - EULER)
}

/// `x^a exp(-x) / gamma(a + 1)`.
fn poisson(a: f64, x: f64) -> f64 {
    if a < LARGE {
        return (a * x.ln() - x).exp() / gamma(a + 1.0);
    }
    (a * log_ratio_less(x, a) - stirling(a)).exp() / (2.0 * PI * a).sqrt()
}

/// The sum of `x^n / ((a + 1) ... (a + n))`.
fn series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..STEPS {
        term *= x / (a + f64::from(n));
        sum += term;
        if term <= SMALL * sum {
            return sum;
        }
    }
    UNKNOWN.0
}

/// `series` with its derivative with respect to `a`.
fn series_slope(a: f64, x: f64) -> (f64, f64) {
    let (mut term, mut sum, mut harmonic, mut slope) = (1.0, 1.0, 0.0, 0.0);
    for n in 1..STEPS {
        let inverse = 1.0 / (a + f64::from(n));
        term *= x * inverse;
        harmonic += inverse;
        sum += term;
        slope -= term * harmonic;
        if term * harmonic.max(1.0) <= SMALL * sum.min(f64::abs(slope)) {
            return (sum, slope);
        }
    }
    UNKNOWN
}

/// The continued fraction of `gammaincc` divided by its first factor: quotients of recurrences, without a division in their path.
fn fraction(a: f64, x: f64) -> f64 {
    const LIMIT: f64 = 1e200;
    let mut b = x + 1.0 - a;
    let (mut before, mut last) = ([0.0, 1.0], [1.0, b]);
    let mut h = 1.0 / b;
    for i in 1..STEPS {
        let i = f64::from(i);
        let above = i * (a - i);
        b += 2.0;
        (before, last) = (last, [b * last[0] + above * before[0], b * last[1] + above * before[1]]);
        let next = last[0] / last[1];
        if (next - h).abs() <= ROUNDED * next.abs() {
            return next;
        }
        h = next;
        if last[1].abs() > LIMIT {
            (before, last) = (before.map(|each| each / LIMIT), last.map(|each| each / LIMIT));
        }
    }
    UNKNOWN.0
}

/// `fraction` with its derivative with respect to `a`, by Lentz's method.
fn fraction_slope(a: f64, x: f64) -> (f64, f64) {
    // Each number with its derivative.
    let mut b = x + 1.0 - a;
    let (mut c, mut dc) = (1.0 / TINY, 0.0);
    let mut d = 1.0 / b;
    let mut dd = d * d;
    let (mut h, mut dh) = (d, dd);
    for i in 1..STEPS {
        let i = f64::from(i);
        let above = i * (a - i);
        b += 2.0;
        let dbelow = i * d + above * dd - 1.0;
        let inverse = 1.0 / c;
        (c, dc) = (b + above * inverse, (i - above * dc * inverse) * inverse - 1.0);
        d = 1.0 / (above * d + b);
        dd = -dbelow * d * d;
        let (factor, dfactor) = (c * d, dc * d + c * dd);
        (h, dh) = (h * factor, dh * factor + h * dfactor);
        if (factor - 1.0).abs() <= ROUNDED && (h * dfactor).abs() <= ROUNDED * dh.abs() {
            return (h, dh);
        }
    }
    UNKNOWN
}

/// The product of a factor and a value that is computed only if the factor is not zero.
fn times(factor: f64, other: impl FnOnce() -> f64) -> f64 {
    if factor == 0.0 { 0.0 } else { factor * other() }
}

fn is_outside(a: f64, x: f64) -> bool {
    a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 || (a == 0.0 && x == 0.0) || (a.is_infinite() && x.is_infinite())
}

/// The regularized lower incomplete gamma function; NaN of negative numbers.
pub fn gammainc(a: f64, x: f64) -> f64 {
    match (a, x) {
        _ if is_outside(a, x) => f64::NAN,
        (_, 0.0) => 0.0,
        _ if a.is_infinite() => 0.0,
        (0.0, _) | (_, f64::INFINITY) => 1.0,
        _ if x < a + 1.0 => times(poisson(a, x), || series(a, x)),
        _ => 1.0 - times(poisson(a, x) * a, || fraction(a, x)),
    }
}

/// The regularized upper incomplete gamma function; NaN of negative numbers.
pub fn gammaincc(a: f64, x: f64) -> f64 {
    match (a, x) {
        _ if is_outside(a, x) => f64::NAN,
        (_, 0.0) => 1.0,
        _ if a.is_infinite() => 1.0,
        (0.0, _) | (_, f64::INFINITY) => 0.0,
        _ if a < 1.0 && x < 1.5 => near_zero(a, x),
        _ if x < a + 1.0 => 1.0 - times(poisson(a, x), || series(a, x)),
        _ => times(poisson(a, x) * a, || fraction(a, x)),
    }
}

/// `gammaincc` of small numbers, where `gammainc` may be near one (DLMF 8.7.1).
fn near_zero(a: f64, x: f64) -> f64 {
    let log = a * x.ln() - gammaln1p(a);
    let (mut term, mut sum, mut n) = (-1.0, 0.0, 1.0);
    while f64::abs(term) > SMALL * sum {
        term *= -x / n;
        sum += term / (a + n);
        n += 1.0;
    }
    a * sum * log.exp() - log.exp_m1()
}

/// The derivative of `gammainc` with respect to `a`: that of the series, or of the fraction.
pub fn gammainc_a(a: f64, x: f64) -> f64 {
    match (a, x) {
        _ if is_outside(a, x) || a == 0.0 => f64::NAN,
        (_, 0.0 | f64::INFINITY) => 0.0,
        _ if a.is_infinite() => 0.0,
        _ if x < a + 1.0 => {
            let of_sum = |(sum, slope): (f64, f64)| (x.ln() - digamma(a + 1.0)) * sum + slope;
            times(poisson(a, x), || of_sum(series_slope(a, x)))
        }
        _ => {
            let of_fraction = |(h, slope): (f64, f64)| (x.ln() - digamma(a)) * h + slope;
            times(-poisson(a, x) * a, || of_fraction(fraction_slope(a, x)))
        }
    }
}

/// `x^a (1 - x)^b / B(a, b)`.
pub(super) fn binomial(a: f64, b: f64, x: f64) -> f64 {
    let (n, y) = (a + b, 1.0 - x);
    if a.min(b) >= LARGE {
        let log = a * log_ratio_less(x, a / n) + b * log_ratio_less(y, b / n);
        return (log + stirling(n) - stirling(a) - stirling(b)).exp() * (a * b / (2.0 * PI * n)).sqrt();
    }
    let (small, large) = (a.min(b), a.max(b));
    let ratio = if large < LARGE {
        gammaln(n) - gammaln(large)
    } else {
        (large - 0.5) * (small / large).ln_1p() + small * n.ln() - small + stirling(n) - stirling(large)
    };
    let of_y = if x < 0.5 { b * (-x).ln_1p() } else { b * y.ln() };
    (a * x.ln() + of_y + ratio - gammaln(small)).exp()
}

pub(super) fn is_outside_beta(a: f64, b: f64, x: f64) -> bool {
    let is_inside = a >= 0.0 && b >= 0.0 && (0.0..=1.0).contains(&x);
    let (is_zero, is_one) = (a == 0.0 || b == f64::INFINITY, b == 0.0 || a == f64::INFINITY);
    !is_inside || is_zero && is_one
}

/// The regularized incomplete beta function; NaN outside of `0 <= x <= 1`, where `a` or `b` is negative, and where both are zero or infinite.
#[inline(never)] // seven loops for each instruction set and dtype call it
pub fn betainc(a: f64, b: f64, x: f64) -> f64 {
    match x {
        _ if is_outside_beta(a, b, x) => f64::NAN,
        0.0 | 1.0 => x,
        // At these limits the distribution is one number, zero or one.
        _ if a == 0.0 || b == f64::INFINITY => 1.0,
        _ if b == 0.0 || a == f64::INFINITY => 0.0,
        _ if x < (a + 1.0) / (a + b + 2.0) => times(binomial(a, b, x) / a, || beta_fraction(a, b, x)),
        _ => 1.0 - times(binomial(a, b, x) / b, || beta_fraction(b, a, 1.0 - x)),
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let kept = |x: f64| if x.abs() < TINY { TINY } else { x };
    let mut c = 1.0;
    let mut d = 1.0 / kept(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..STEPS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for above in [even, odd] {
            d = 1.0 / kept(1.0 + above * d);
            c = kept(1.0 + above / c);
            factor = c * d;
            h *= factor;
        }
        if (factor - 1.0).abs() <= ROUNDED {
            return h;
        }
    }
    UNKNOWN.0
}
