//! Functions over lanes that no single instruction computes.
//!
//! The functions that models spend their time in have a formula for each type. The others are computed in `f64` (a lane
//! of `f32` is widened and the result rounded). All use explicit fused multiply-adds and no tables: all instruction sets
//! give the same bits. Reductions and coefficients of `f64` are those of fdlibm (Sun Microsystems, 1993), unless a
//! comment says otherwise.

#![allow(clippy::excessive_precision, reason = "coefficients as published")]
#![allow(clippy::many_single_char_names, reason = "the letters of the formulas")]

use super::functions::exponential::exp_series;
use super::functions::parts::{ROUND, polynomial, with_sign_of};
pub use super::functions::whole::{round, trunc};
use super::functions::{
    angle, error_function, exponential, hyperbolic, logarithm, power, single, trigonometric, whole,
};
use super::lane::{Binary, Function, Lane, Unary, Wide, power_of_two};
use crate::special::{bessel, error_function as inverse_error, gamma as of_gamma, incomplete, incomplete_slopes};

/// The larger; NaN where either is NaN.
#[inline(always)]
pub fn maximum<L: Lane>(a: L, b: L) -> L {
    L::select(a.ne(a), a, b.at_least(a))
}

/// The smaller; NaN where either is NaN.
#[inline(always)]
pub fn minimum<L: Lane>(a: L, b: L) -> L {
    L::select(a.ne(a), a, b.at_most(a))
}

/// Minus one, zero or one; NaN of NaN.
#[inline(always)]
pub fn sign<L: Lane>(a: L) -> L {
    let signed = L::select(a.lt(L::zero()), L::one().neg(), a);
    L::select(L::zero().lt(a), L::one(), signed)
}

macro_rules! by_element {
    ($($(#[$doc:meta])* $name:ident ($($a:ident)+) = $scalar:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name<L: Lane>($($a: L),+) -> L {
            by_element!(@call $($a)+, $scalar)
        }
    )*};
    (@call $a:ident, $scalar:expr) => { $a.map($scalar) };
    (@call $a:ident $b:ident, $scalar:expr) => { $a.zip($b, $scalar) };
    (@call $a:ident $b:ident $c:ident, $scalar:expr) => { $a.zip3($b, $c, $scalar) };
}

// Functions without a vector form: the scalar function, element by element.
by_element! {
    /// The inverse of the error function.
    erfinv(a) = inverse_error::erfinv;
    /// The inverse of `erfc`.
    erfcinv(a) = inverse_error::erfcinv;
    /// Beta function.
    beta(a b) = of_gamma::beta;
    /// Logarithm of the absolute value of the beta function.
    betaln(a b) = of_gamma::betaln;
    /// Gamma function.
    gamma(a) = of_gamma::gamma;
    /// Logarithm of the absolute value of the gamma function.
    gammaln(a) = of_gamma::gammaln;
    /// Derivative of `gammaln`.
    digamma(a) = of_gamma::digamma;
    /// The `a`-th derivative of `digamma` at `b`.
    polygamma(a b) = of_gamma::polygamma;
    /// Bessel function of the first kind, of whole order `a`, at `b`. Of orders above 1e5, only where it vanishes.
    jn(a b) = bessel::jn;
    /// Bessel function of the second kind, of whole order `a`, at `b`. Of orders above 1e5, only where it is infinite.
    yn(a b) = bessel::yn;
    /// Modified Bessel function of the first kind, of order `a`, at `b`.
    iv(a b) = bessel::iv;
    /// Regularized incomplete gamma function: the integral from zero to `b`.
    gammainc(a b) = incomplete::gammainc;
    /// One minus `gammainc`, accurate where that is small.
    gammaincc(a b) = incomplete::gammaincc;
    /// Derivative of `gammainc` with respect to `a`.
    gammainc_a(a b) = incomplete::gammainc_a;
    /// Regularized incomplete beta function: the integral from zero to `c`.
    betainc(a b c) = incomplete::betainc;
    /// First derivative of `betainc` by `a`.
    betainc_a(a b c) = incomplete_slopes::betainc_a;
    /// First derivative of `betainc` by `b`.
    betainc_b(a b c) = incomplete_slopes::betainc_b;
    /// Second derivative of `betainc` by `a`.
    betainc_aa(a b c) = incomplete_slopes::betainc_aa;
    /// Second derivative of `betainc` by `a` and `b`.
    betainc_ab(a b c) = incomplete_slopes::betainc_ab;
    /// Second derivative of `betainc` by `b`.
    betainc_bb(a b c) = incomplete_slopes::betainc_bb;
}

macro_rules! computed_wide {
    ($($(#[$doc:meta])* $name:ident = $wide:path;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name<L: Lane>(a: L) -> L {
            #[derive(Clone, Copy, Default)]
            struct Function;
            impl<W: Wide> Unary<W> for Function {
                #[inline(always)]
                fn call(self, a: W) -> W {
                    $wide(a)
                }
            }
            a.wide(Function)
        }
    )*};
}

computed_wide! {
    /// Inverse hyperbolic sine.
    asinh = hyperbolic::asinh;
    /// Inverse hyperbolic cosine.
    acosh = hyperbolic::acosh;
    /// Inverse hyperbolic tangent.
    atanh = hyperbolic::atanh;
    /// Inverse sine.
    asin = angle::asin;
    /// Inverse cosine.
    acos = angle::acos;
    /// One minus the error function, accurate where that is small.
    erfc = error_function::erfc;
    /// Logarithm to base 10.
    log10 = power::log10;
    /// Cubic root, of negative numbers too.
    cbrt = power::cbrt;
}

macro_rules! computed_by_type {
    ($($(#[$doc:meta])* $name:ident = $single:path, $double:path;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name<L: Lane>(a: L) -> L {
            #[derive(Clone, Copy, Default)]
            struct Formulas;
            impl Function for Formulas {
                #[inline(always)]
                fn single<S: Lane<Element = f32>>(a: S) -> S {
                    $single(a)
                }
                #[inline(always)]
                fn double<W: Wide>(a: W) -> W {
                    $double(a)
                }
            }
            a.function::<Formulas>()
        }
    )*};
}

computed_by_type! {
    /// e to the power `a`.
    exp = single::exp, exponential::exp;
    /// e to the power `a`, minus one: accurate near zero.
    expm1 = single::expm1, exponential::expm1;
    /// Natural logarithm.
    log = single::log, logarithm::log;
    /// Natural logarithm of one plus `a`: accurate near zero.
    log1p = single::log1p, logarithm::log1p;
    /// Sine of an angle in radians.
    sin = single::sin, trigonometric::sin;
    /// Cosine of an angle in radians.
    cos = single::cos, trigonometric::cos;
    /// Hyperbolic tangent.
    tanh = single::tanh, wide_tanh;
    /// Error function.
    erf = single::erf, error_function::erf;
    /// Tangent of an angle in radians.
    tan = single::tan, trigonometric::tan;
    /// Hyperbolic sine.
    sinh = single::sinh, hyperbolic::sinh;
    /// Hyperbolic cosine.
    cosh = single::cosh, hyperbolic::cosh;
    /// Inverse tangent.
    atan = single::atan, angle::atan;
    /// Logarithm to base 2.
    log2 = single::log2, logarithm::log2;
    /// The logistic function, 1 / (1 + exp(-a)).
    expit = single::expit, exponential::expit;
}

macro_rules! computed_wide_pair {
    ($($(#[$doc:meta])* $name:ident = $wide:path;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name<L: Lane>(a: L, b: L) -> L {
            #[derive(Clone, Copy, Default)]
            struct Function;
            impl<W: Wide> Binary<W> for Function {
                #[inline(always)]
                fn call(self, a: W, b: W) -> W {
                    $wide(a, b)
                }
            }
            a.wide_pair(b, Function)
        }
    )*};
}

computed_wide_pair! {
    /// Angle of the point (b, a).
    atan2 = angle::atan2;
    /// Distance of the point (a, b) from the origin.
    hypot = angle::hypot;
    /// As [`logaddexp`].
    logaddexp_of_double = logarithm::logaddexp;
    /// As [`logaddexp`].
    logaddexp_of_single = logarithm::logaddexp_of_single;
    /// log2(2^a + 2^b), which does not overflow.
    logaddexp2 = logarithm::logaddexp2;
    /// Remainder of the floored quotient: it has the sign of `b`.
    remainder = whole::remainder;
    /// The floored quotient.
    floor_divide = whole::floor_divide;
}

/// `a` to the power `b`; to the power 1 and 2 exactly `a` and `a * a`, which kernels rely on.
#[inline(always)]
pub fn pow<L: Lane>(a: L, b: L) -> L {
    power::pow(a, b)
}

/// log(exp(a) + exp(b)), which does not overflow.
#[inline(always)]
pub fn logaddexp<L: Lane>(a: L, b: L) -> L {
    if size_of::<L::Element>() < size_of::<f64>() { logaddexp_of_single(a, b) } else { logaddexp_of_double(a, b) }
}

#[inline(always)]
fn wide_tanh<W: Wide>(x: W) -> W {
    let (one, size) = (W::one(), x.abs());
    let small = size.lt(W::splat(0.625));
    // Near zero a quotient of polynomials (Cephes, Moshier), elsewhere by the exponential: one division for either.
    let z = size.mul(size);
    let above = polynomial(
        z,
        [-1.614_687_684_417_084_479_52e3, -9.928_772_310_019_185_865_64e1, -9.643_991_794_250_522_386_28e-1],
    );
    let below = polynomial(
        z,
        [4.844_063_053_251_254_860_48e3, 2.235_488_390_601_004_485_83e3, 1.128_116_784_916_329_314_02e2, 1.0],
    );
    // Twice the size as `k ln 2 + r`; the rest of ln 2 is small beside the error of the quotient.
    let bounded = size.at_most(W::splat(22.0));
    let k = bounded.mul_add(W::splat(2.0 * std::f64::consts::LOG2_E), W::splat(ROUND)).sub(W::splat(ROUND));
    let r = k.mul_add(W::splat(-std::f64::consts::LN_2), bounded.add(bounded));
    let scale = power_of_two(k);
    let grown = scale.mul_add(r.mul(r).mul_add(exp_series(r), r), scale.add(one));
    let quotient = W::select(small, size.mul(z).mul(above), W::splat(-2.0)).div(W::select(small, below, grown));
    let value = W::select(small, size, one).add(quotient);
    with_sign_of(value, x)
}
