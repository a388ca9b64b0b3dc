//! Whole numbers: roundings, the floored quotient, and its remainder, which is exact.

use super::parts::with_sign_of;
use crate::simd::lane::{Lane, Wide};

/// The nearest integer towards zero.
#[inline(always)]
pub fn trunc<L: Lane>(a: L) -> L {
    with_sign(a.abs().floor(), a)
}

/// The nearest integer, ties to even.
#[inline(always)]
pub fn round<L: Lane>(a: L) -> L {
    let half = L::splat(0.5);
    let below = a.abs().floor();
    let rest = a.abs().sub(below);
    let above = below.add(L::one());
    let even = L::select(below.mul(half).floor().eq(below.mul(half)), below, above);
    let nearest = L::select(rest.lt(half), below, L::select(half.lt(rest), above, even));
    with_sign(nearest, a)
}

/// `size`, which is no less than zero, with the sign of `a`, whose fraction it lacks.
#[inline(always)]
fn with_sign<L: Lane>(size: L, a: L) -> L {
    let zero = L::zero();
    L::select(size.eq(zero), a.mul(zero), L::select(a.lt(zero), size.neg(), size))
}

/// Remainder of the floored quotient: it has the sign of `b`.
#[inline(always)]
pub fn remainder<W: Wide>(a: W, b: W) -> W {
    let r = a.rem(b);
    let differ = W::truth(r.lt(W::zero())).ne(W::truth(b.lt(W::zero())));
    W::select(r.eq(W::zero()), r, W::select(differ, r.add(b), r))
}

/// The floored quotient: the integer `q` with `a = q b + remainder(a, b)`, up to rounding.
#[inline(always)]
pub fn floor_divide<W: Wide>(a: W, b: W) -> W {
    let quotient = a.div(b);
    // An integer up to rounding; the sign of a zero is that of the quotient.
    let whole = round(a.sub(remainder(a, b)).div(b)).abs();
    W::select(b.eq(W::zero()), quotient, with_sign_of(whole, quotient))
}
