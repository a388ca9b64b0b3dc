//! Functions over lanes that no single instruction computes.

use super::Lane;

/// The larger; NaN where either is NaN.
#[inline(always)]
pub fn maximum<L: Lane>(a: L, b: L) -> L {
    L::select(a.ne(a), a, L::select(b.lt(a), a, b))
}

/// The smaller; NaN where either is NaN.
#[inline(always)]
pub fn minimum<L: Lane>(a: L, b: L) -> L {
    L::select(a.ne(a), a, L::select(a.lt(b), a, b))
}

/// Minus one, zero or one; NaN of NaN.
#[inline(always)]
pub fn sign<L: Lane>(a: L) -> L {
    let signed = L::select(a.lt(L::zero()), L::one().neg(), a);
    L::select(L::zero().lt(a), L::one(), signed)
}

/// Remainder of the floored quotient: it has the sign of `b`.
#[inline(always)]
pub fn remainder<L: Lane>(a: L, b: L) -> L {
    a.zip(b, |a, b| {
        let r = a % b;
        if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
    })
}

/// `a` to the power `b`; to the power 1 and 2 exactly `a` and `a * a`, so that kernels may write them so.
#[inline(always)]
pub fn pow<L: Lane>(a: L, b: L) -> L {
    a.zip(b, |a, b| match b {
        1.0 => a,
        2.0 => a * a,
        _ => a.powf(b),
    })
}

/// Angle of the point (b, a).
#[inline(always)]
pub fn atan2<L: Lane>(a: L, b: L) -> L {
    a.zip(b, f64::atan2)
}

macro_rules! mapped {
    ($($name:ident $f:path;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of each element.")]
        #[inline(always)]
        pub fn $name<L: Lane>(a: L) -> L {
            a.map($f)
        }
    )*};
}

mapped! {
    exp f64::exp;
    expm1 f64::exp_m1;
    log f64::ln;
    log1p f64::ln_1p;
    sin f64::sin;
    cos f64::cos;
    tan f64::tan;
    tanh f64::tanh;
}
