//! The gamma function and related functions, one number at a time, within 4 units in the last place or, near the
//! negative roots of `digamma` and `gammaln`, within 2^-96. Formulas: DLMF chapter 5.

use super::double_double::{self, Double};

/// Bernoulli's numbers of even index from 2 on, over the factorial of the index.
const BERNOULLI: [f64; 10] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30_240.0,
    -1.0 / 1_209_600.0,
    1.0 / 47_900_160.0,
    -691.0 / 1_307_674_368_000.0,
    1.0 / 74_724_249_600.0,
    -3_617.0 / 10_670_622_842_880_000.0,
    43_867.0 / 5_109_094_217_170_944_000.0,
    -174_611.0 / 802_857_662_698_291_200_000.0,
];

/// Bernoulli's numbers of even index `k` from 2 on, over `k` or (where `twice`) over `k (k - 1)`.
const fn bernoulli_over(twice: bool) -> [Double; 11] {
    const NUMERATORS: [f64; 11] = [1.0, -1.0, 1.0, -1.0, 5.0, -691.0, 7.0, -3_617.0, 43_867.0, -174_611.0, 854_513.0];
    const DENOMINATORS: [f64; 11] = [6.0, 30.0, 42.0, 30.0, 66.0, 2_730.0, 6.0, 510.0, 798.0, 330.0, 138.0];
    let mut found = [double_double::LN_2; 11];
    let (mut at, mut k) = (0, 2.0);
    while at < found.len() {
        let divisor = if twice { k * (k - 1.0) } else { k };
        found[at] = Double::ratio(NUMERATORS[at], DENOMINATORS[at] * divisor);
        k += 2.0;
        at += 1;
    }
    found
}

/// Stirling's series of `gammaln`, and that of its derivative.
const STIRLING: [Double; 11] = bernoulli_over(true);
const STIRLING_DERIVED: [Double; 11] = bernoulli_over(false);

/// Coefficients of the power series of `1 / gamma(1 + x)` (Wrench 1968); enough for `x` of at most one half.
const RECIPROCAL: [f64; 24] = [
    1.0,
    0.577_215_664_901_532_9,
    -0.655_878_071_520_253_9,
    -0.042_002_635_034_095_24,
    0.166_538_611_382_291_48,
    -0.042_197_734_555_544_33,
    -0.009_621_971_527_876_973,
    0.007_218_943_246_663_1,
    -0.001_165_167_591_859_065_2,
    -0.000_215_241_674_114_950_98,
    0.000_128_050_282_388_116_2,
    -2.013_485_478_078_824e-05,
    -1.250_493_482_142_670_6e-06,
    1.133_027_231_981_696e-06,
    -2.056_338_416_977_607e-07,
    6.116_095_104_481_416e-09,
    5.002_007_644_469_223e-09,
    -1.181_274_570_487_02e-09,
    1.043_426_711_691_100_5e-10,
    7.782_263_439_905_071e-12,
    -3.696_805_618_642_206e-12,
    5.100_370_287_454_476e-13,
    -2.058_326_053_566_506_6e-14,
    -5.348_122_539_423_018e-15,
];

/// The positive root of `digamma`.
const ROOT: Double = Double { hi: 1.461_632_144_968_362_2, lo: 9.549_995_429_965_697e-17 };

/// `digamma(x) / (x - ROOT)` as a polynomial in `2 x - 3`, interpolated at Chebyshev's nodes between 1 and 2.
const NEAR_ROOT: [f64; 23] = [
    0.951_055_876_031_832_8,
    -0.211_813_710_640_730_3,
    0.060_135_621_060_196_744,
    -0.018_550_615_381_735_115,
    0.005_936_795_278_305_649,
    -0.001_935_066_664_859_009_7,
    0.000_636_888_030_325_720_1,
    -0.000_210_748_411_404_586_36,
    6.995_018_873_950_506e-05,
    -2.325_824_239_445_257e-05,
    7.741_232_223_504_057e-06,
    -2.578_094_363_053_08e-06,
    8.589_127_353_033_379e-07,
    -2.863_152_758_469_34e-07,
    9.542_050_972_688_906e-08,
    -3.163_020_268_955_334e-08,
    1.054_268_762_402_799_4e-08,
    -3.707_507_264_712_238_6e-09,
    1.235_807_243_398_483_1e-09,
    -2.761_963_533_031_771_5e-10,
    9.206_434_499_177_992e-11,
    -8.498_137_230_186_096e-11,
    2.832_706_668_021_759e-11,
];

const HALF_LN_2PI: Double = Double { hi: 0.918_938_533_204_672_8, lo: -3.878_294_158_067_241_4e-17 };
const LN_PI: Double = Double { hi: 1.144_729_885_849_400_2, lo: 1.026_595_116_270_782_6e-17 };

fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// A series of doubles, evaluated to the precision of an `f64`.
fn series(x: f64, coefficients: &[Double]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient.hi)
}

/// The remainder of Stirling's formula for the logarithm of the gamma function, for large `x`.
pub fn stirling(x: f64) -> f64 {
    series(1.0 / (x * x), &STIRLING) / x
}

/// The argument from which Stirling's series has the precision of a `Double`.
const LARGE: f64 = 40.0;

/// `log(gamma(x))` for positive `x`.
pub fn gammaln_double(mut x: Double) -> Double {
    let mut product = Double::from(1.0);
    while x.hi < LARGE {
        product = product * x;
        x = x + 1.0.into();
    }
    let shift = product.ln();
    let inverse = Double::from(1.0) / x;
    let tail = inverse.square().polynomial(&STIRLING, 0.0) * inverse;
    (x - 0.5.into()) * x.ln() - x + HALF_LN_2PI + tail - shift
}

/// `digamma(x)` for `x` of at least 1.
fn digamma_double(mut x: Double) -> Double {
    let mut shift = Double::from(0.0);
    while x.hi < LARGE {
        shift = shift + Double::from(1.0) / x;
        x = x + 1.0.into();
    }
    let inverse = Double::from(1.0) / x;
    let square = inverse.square();
    x.ln() - inverse.scaled(0.5) - square.polynomial(&STIRLING_DERIVED, 0.0) * square - shift
}

/// Derivative of the logarithm of the gamma function: NaN at negative poles.
pub fn digamma(x: f64) -> f64 {
    if x <= 0.0 {
        return digamma_reflected(x);
    }
    if x < 1.0 {
        return digamma_near_root(x + 1.0) - 1.0 / x;
    }
    if x <= 8.0 {
        // Recurrence down to the interval of the root; the differences are exact.
        let steps = (x.floor() - 1.0).max(0.0);
        let (mut sum, mut k) = (0.0, 1.0);
        while k <= steps {
            sum += 1.0 / (x - k);
            k += 1.0;
        }
        return sum + digamma_near_root(x - steps);
    }
    x.ln() - 0.5 / x - stirling_slope(x)
}

/// `log(x) - 1 / (2 x) - digamma(x)`, for large `x`.
pub fn stirling_slope(x: f64) -> f64 {
    let square = 1.0 / (x * x);
    square * series(square, &STIRLING_DERIVED)
}

/// `digamma(x)` for `x` from 1 to 2.
fn digamma_near_root(x: f64) -> f64 {
    ((x - ROOT.hi) - ROOT.lo) * polynomial(2.0 * x - 3.0, &NEAR_ROOT)
}

/// `digamma(1 - x) - pi / tan(pi x)`, for `x` of at most 0: there is a root between any two poles.
fn digamma_reflected(x: f64) -> f64 {
    let fraction = x - x.round();
    if fraction == 0.0 {
        return if x == 0.0 { f64::INFINITY.copysign(-x) } else { f64::NAN };
    }
    if x > -1e-20 {
        return -1.0 / x;
    }
    let [sine, cosine] = Double::sin_cos_pi(fraction);
    (digamma_double(Double::sum(1.0, -x)) - double_double::PI * cosine / sine).into()
}

/// Gamma function: NaN at negative poles.
pub fn gamma(x: f64) -> f64 {
    if x > 172.0 || x.is_nan() {
        return x * f64::INFINITY;
    }
    let nearest = x.round();
    if x <= 0.0 && x.fract() == 0.0 {
        return if x == 0.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    let rest = x - nearest;
    if x.abs() < 24.0 {
        // Products of numbers that differ by one, which are exact.
        let (mut product, mut k) = (Double::from(1.0), 1.0);
        if nearest >= 1.0 {
            while k < nearest {
                product = product * (x - k).into();
                k += 1.0;
            }
            return (product / polynomial(rest, &RECIPROCAL).into()).into();
        }
        while k <= -nearest {
            product = product * (x + (k - 1.0)).into();
            k += 1.0;
        }
        // Divided one by one, since near a pole the product may underflow or its reciprocal overflow.
        return f64::from(Double::from(1.0) / product) / polynomial(rest, &RECIPROCAL) / rest;
    }
    let size = gammaln_double(if x > 0.0 { x.into() } else { Double::sum(1.0, -x) });
    if x > 0.0 {
        return size.exp_of(1.0);
    }
    let [sine, _] = Double::sin_cos_pi(rest);
    let sign = if nearest % 2.0 == 0.0 { 1.0 } else { -1.0 };
    (-size).exp_of(sign * f64::from(double_double::PI / sine))
}

impl Double {
    /// `factor * exp(self)`, which may underflow or overflow.
    fn exp_of(self, factor: f64) -> f64 {
        if self.hi.abs() > 1400.0 {
            return if self.hi > 0.0 { factor * f64::INFINITY } else { factor * 0.0 };
        }
        let half = self.scaled(0.5).exp();
        let scaled = half * factor.into();
        let rounded = scaled.hi * half.hi;
        if rounded.is_normal() { (scaled * half).into() } else { rounded }
    }
}

/// Logarithm of the absolute value of the gamma function.
pub fn gammaln(x: f64) -> f64 {
    let plain = libm::lgamma(x);
    // Near a root, the terms of the reflection formula cancel.
    let is_near_root = x < -2.0 && x.fract() < 0.0 && plain.abs() < 0.5 * libm::lgamma(1.0 - x);
    if !is_near_root {
        return plain;
    }
    let [sine, _] = Double::sin_cos_pi(x - x.round());
    let sine = if sine.hi < 0.0 { -sine } else { sine };
    (LN_PI - sine.ln() - gammaln_double(Double::sum(1.0, -x))).into()
}

/// `betaln` of positive, finite numbers, of which the smaller one is moderate.
fn betaln_double(a: f64, b: f64) -> Double {
    let (small, large) = (a.min(b), a.max(b));
    if large > 1e17 && small < 1e-8 * large {
        // gamma(large) / gamma(large + small) by the first terms of its expansion (DLMF 5.11.13).
        let ratio = small * (large.ln() + 0.5 * (small - 1.0) / large);
        return gammaln_double(small.into()) - ratio.into();
    }
    (gammaln_double(large.into()) - gammaln_double(Double::sum(large, small))) + gammaln_double(small.into())
}

/// Whether `betaln_double` holds.
fn is_moderate(a: f64, b: f64) -> bool {
    (1e-290..1e290).contains(&a.min(b)) && a + b < f64::INFINITY
}

fn is_whole(x: f64) -> bool {
    x.fract() == 0.0
}

/// Positive arguments of the same value of the beta function but for its sign, if any, where `a` or `b` is a pole of the gamma function.
fn beside_pole(a: f64, b: f64) -> Option<(f64, f64)> {
    let (low, high) = (a.min(b), a.max(b));
    let rest = 1.0 - low - high;
    (high > 0.0 && is_whole(high) && rest > 0.0).then_some((rest, high))
}

fn is_pole(x: f64) -> bool {
    x <= 0.0 && is_whole(x)
}

/// Logarithm of the absolute value of the beta function; at a pole of the gamma function, where the other argument is a whole number that
/// cancels it, finite.
pub fn betaln(a: f64, b: f64) -> f64 {
    let (small, large) = (a.min(b), a.max(b));
    match () {
        () if is_moderate(a, b) => betaln_double(a, b).into(),
        () if a.is_nan() || b.is_nan() => f64::NAN,
        () if is_pole(a) || is_pole(b) => beside_pole(a, b).map_or(f64::INFINITY, |(a, b)| betaln(a, b)),
        () if small > 0.0 && large == f64::INFINITY => f64::NEG_INFINITY,
        // Stirling's formula, and the limits of both gamma functions at their pole.
        () if small > 1.0 => -(small * (large / small).ln_1p() + large * (small / large).ln_1p()),
        () if small > 0.0 => (small / large).ln_1p() - small.ln(),
        () if large > 1e17 && -small < 1e-8 * large => gammaln(small) - small * large.ln(),
        () => gammaln(a) + gammaln(b) - gammaln(a + b),
    }
}

/// Beta function: infinite at its poles, as `betaln`.
pub fn beta(a: f64, b: f64) -> f64 {
    let is_negative = |x: f64| x < 0.0 && x.floor() % 2.0 != 0.0;
    match () {
        () if is_moderate(a, b) => betaln_double(a, b).exp_of(1.0),
        () if a.is_nan() || b.is_nan() => f64::NAN,
        () if a > 0.0 && b > 0.0 => {
            let (small, large) = (a.min(b), a.max(b));
            if small > 1.0 || large == f64::INFINITY { 0.0 } else { (1.0 + small / large) / small }
        }
        () if is_pole(a) || is_pole(b) => beside_pole(a, b).map_or(f64::INFINITY, |(rest, whole)| {
            let size = beta(rest, whole);
            if whole % 2.0 == 0.0 { size } else { -size }
        }),
        () if is_pole(a + b) => 0.0,
        () if a.abs().max(b.abs()).max((a + b).abs()) < 150.0 => gamma(a) * (gamma(b) / gamma(a + b)),
        () => {
            let size = betaln(a, b).exp();
            if is_negative(a) ^ is_negative(b) ^ is_negative(a + b) { -size } else { size }
        }
    }
}

/// Below this, the recurrence of `polygamma` past its poles would be too long.
const LOWEST: f64 = -1e4;

/// The `n`-th derivative of `digamma`, for integer `n`: Hurwitz's zeta function by Euler's and Maclaurin's formula.
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
