//! Whole numbers: roundings, the floored quotient, and its remainder, which is exact.

use super::lane::{Lane, Wide};
use super::parts::with_sign_of;

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

/// `r - y floor(r / y)`, for a quotient below 2^53; `r` where the quotient is zero.
#[inline(always)]
fn reduced<W: Wide>(r: W, y: W) -> W {
    let q = r.div(y).floor();
    // Exact, since neither is the difference larger nor its last bit smaller than those of both. The quotient may have been
    // rounded up to a whole number.
    let rest = q.neg().mul_add(y, r);
    let rest = W::select(rest.lt(W::zero()), rest.add(y), rest);
    W::select(q.eq(W::zero()), r, rest)
}

/// Remainder of the floored quotient: it has the sign of `b`.
#[inline(always)]
pub fn remainder<W: Wide>(a: W, b: W) -> W {
    let (x, y) = (a.abs(), b.abs());
    let near = x.div(y).lt(W::splat(9_007_199_254_740_992.0));
    let is_far = W::select(near, W::zero(), W::one()).ne(W::zero());
    let mut size = x;
    if W::any(is_far) {
        // 51 bits of the quotient a step, of the 2098 that it may have.
        for step in (1..42).rev() {
            let factor = W::splat(f64::from_bits((1023 + 17 * step) << 52));
            size = reduced(size, y.mul(factor).mul(factor).mul(factor));
        }
    }
    let rest = with_sign_of(reduced(size, y), a);
    let sum = rest.add(b);
    let of_positive = W::select(b.lt(W::zero()), sum, rest);
    let of_negative = W::select(W::zero().lt(b), sum, rest);
    W::select(rest.lt(W::zero()), of_negative, W::select(W::zero().lt(rest), of_positive, rest))
}

/// The floored quotient: the integer `q` with `a = q b + remainder(a, b)`, up to rounding.
#[inline(always)]
pub fn floor_divide<W: Wide>(a: W, b: W) -> W {
    let quotient = a.div(b);
    // An integer up to rounding; the sign of a zero is that of the quotient.
    let whole = round(a.sub(remainder(a, b)).div(b)).abs();
    W::select(b.eq(W::zero()), quotient, with_sign_of(whole, quotient))
}
