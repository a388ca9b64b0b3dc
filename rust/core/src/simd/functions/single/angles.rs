//! Sine, cosine, tangent and inverse tangent.

use super::parts::{Single, nearest_of};
use crate::simd::functions::parts::{has, polynomial, with_sign_of};
use crate::simd::functions::trigonometric::{self, tan_of_parts};
use crate::simd::lane::{Body, Rare, Simd, Unary, Wide, rounder};

/// pi/2, and the rests of it.
const HALF_PI: [f64; 3] = [1.570_796_370_506_286_6, -4.371_138_828_673_793e-8, -1.715_124_510_005_881_9e-15];
/// Up to this angle, three parts of pi/2 are enough.
const FAR: f64 = 1e5;

/// `x = q pi/2 + y + z` with `y` at most pi/4 and `z` about its rounding error: `(q, y, z)`, for `x` up to [`FAR`].
#[inline(always)]
fn quarter_turns<L: Single>(x: L) -> (L, L, L) {
    let q = nearest_of(x, std::f64::consts::FRAC_2_PI);
    let [first, second, third] = HALF_PI.map(|part| L::splat(-part));
    let a = q.mul_add(first, x);
    let product = q.mul(second);
    let y = a.add(product);
    let lost = q.mul_add(third, q.mul_add(second, product.neg()));
    (q, y, a.sub(y).add(product).add(lost))
}

/// The sine of `y + z`, as `y` and what is added to it.
#[inline(always)]
fn sin_near_zero<L: Single>(y: L, square: L, z: L) -> L {
    // `(sin(y) / y - 1) / y^2`, by the error of the sine: 2^-27.9 of it.
    let series = polynomial(square, [-1.666_665_524e-1, 8.332_189_173e-3, -1.951_828_453e-4]);
    square.mul(y).mul_add(series, z)
}

/// The cosine of `y + z`, as a number and what is added to it.
#[inline(always)]
fn cos_near_zero<L: Single>(y: L, square: L, z: L) -> (L, L) {
    // `(cos(y) - 1 + y^2 / 2) / y^4`, by the error of the cosine: 2^-33.1.
    let series = polynomial(square, [4.166_664_556e-2, -1.388_730_132e-3, 2.443_067_024e-5]);
    let half = square.mul(L::splat(0.5));
    let near = L::one().sub(half);
    let lost = L::one().sub(near).sub(half);
    (near, y.neg().mul_add(z, square.mul(square).mul_add(series, lost)))
}

/// Sine of `x` plus a number of quarter turns: of larger angles in `f64`.
#[inline(always)]
fn turned_sin<L: Single, F: Unary<L::Wide>>(x: L, turns: f64, far: F) -> L {
    let (q, y, z) = quarter_turns(x);
    // The low two bits of the whole number: the first swaps sine and cosine, the second flips the sign.
    let turn = q.add(L::splat(rounder::<f32>() + turns)).to_bits();
    let square = y.mul(y);
    let (near, rest) = cos_near_zero(y, square, z);
    let value = L::select(has::<L>(turn, 1), near.add(rest), y.add(sin_near_zero(y, square, z)));
    let value = L::select(has::<L>(turn, 2), value.neg(), value);
    near_or_far(x, value, far)
}

/// `near`, or for large angles the function in `f64`.
#[inline(always)]
fn near_or_far<L: Single, F: Unary<L::Wide>>(x: L, near: L, far: F) -> L {
    let [value] = L::replace_where(L::splat(FAR).lt(x.abs()), [near], InDouble { x, function: far });
    value
}

/// The function in `f64`.
struct InDouble<L, F> {
    x: L,
    function: F,
}

impl<L: Single, F: Unary<L::Wide>> Rare<L, 1> for InDouble<L, F> {
    #[inline(always)]
    fn compute(self) -> [L; 1] {
        let mut value = self.x;
        // SAFETY: this is compiled for the instruction set of `L`, as what it calls; `value` outlives the call.
        unsafe { L::Set::address::<ByAddress, _>()((self, &raw mut value)) };
        [value]
    }
}

/// Called by its address, so that the loops, which are many, do not have the code of `f64`.
struct ByAddress;

impl<L: Single, F: Unary<L::Wide>> Body<(InDouble<L, F>, *mut L)> for ByAddress {
    #[inline(always)]
    fn call<S: Simd>((InDouble { x, function }, to): (InDouble<L, F>, *mut L)) {
        // SAFETY: `compute` passes the address of a variable.
        unsafe { *to = x.wide(function) };
    }
}

macro_rules! in_double {
    ($($name:ident $function:path;)*) => {$(
        #[derive(Clone, Copy, Default)]
        struct $name;

        impl<W: Wide> Unary<W> for $name {
            #[inline(always)]
            fn call(self, a: W) -> W {
                $function(a)
            }
        }
    )*};
}

in_double! {
    Sine trigonometric::far_sin;
    Cosine trigonometric::far_cos;
    Tangent trigonometric::far_tan;
}

/// Sine.
#[inline(always)]
pub fn sin<L: Single>(x: L) -> L {
    L::select(x.eq(L::zero()), x, turned_sin(x, 0.0, Sine))
}

/// Cosine.
#[inline(always)]
pub fn cos<L: Single>(x: L) -> L {
    turned_sin(x, 1.0, Cosine)
}

/// The quotient of two sums, by a step of Newton's method.
#[inline(always)]
fn quotient<L: Single>(above: [L; 2], below: [L; 2]) -> [L; 2] {
    let inverse = L::one().div(below[0]);
    let value = above[0].mul(inverse);
    let lost = value.neg().mul_add(below[0], above[0]).add(value.neg().mul_add(below[1], above[1]));
    [value, lost.mul(inverse)]
}

/// Tangent.
#[inline(always)]
pub fn tan<L: Single>(x: L) -> L {
    let (q, y, z) = quarter_turns(x);
    // `(tan(y) / y - 1) / y^2`, by the error of the tangent: 2^-29.4 of it.
    let square = y.mul(y);
    let series = polynomial(
        square,
        [
            3.333_334_327e-1,
            1.333_282_292e-1,
            5.404_571_071e-2,
            2.134_303_749e-2,
            1.070_029_568e-2,
            2.407_769_935e-4,
            4.309_417_214e-3,
        ],
    );
    let is_odd = has::<L>(q.add(L::splat(rounder::<f32>())).to_bits(), 1);
    let value = tan_of_parts(y, series, square, z, is_odd);
    near_or_far(x, L::select(x.eq(L::zero()), x, value), Tangent)
}

/// Inverse tangent.
#[inline(always)]
pub fn atan<L: Single>(x: L) -> L {
    let (zero, one, size) = (L::zero(), L::one(), x.abs());
    // atan(x) = base + atan(u), with `u` at most 1/2: (x - 1) / (x + 1) or -1 / x.
    let is_middle = L::splat(0.5).lt(size);
    let is_large = L::splat(2.0).lt(size);
    let of = |large: L, middle: L, small: L| L::select(is_large, large, L::select(is_middle, middle, small));
    let sum = size.add(one);
    let lost = size.sub(sum.sub(one));
    let above = of(one.neg(), size.sub(one), size);
    let [u, rest] = quotient([above, zero], [of(size, sum, one), of(zero, lost, zero)]);
    let base = of(L::splat(HALF_PI[0]), L::splat(HALF_PI[0] / 2.0), zero);
    let rest = of(L::splat(HALF_PI[1]), L::splat(HALF_PI[1] / 2.0), zero).add(rest);
    // `(atan(u) / u - 1) / u^2`, by the error of the inverse tangent: 2^-27.5 of it.
    let square = u.mul(u);
    let series = polynomial(
        square,
        [-3.333_323_300e-1, 1.999_416_798e-1, -1.417_421_252e-1, 1.015_582_904e-1, -5.125_169_829e-2],
    );
    let rest = square.mul(u).mul_add(series, rest);
    let value = base.add(u);
    let value = value.add(base.sub(value).add(u).add(rest));
    let value = L::select(size.eq(L::splat(f64::INFINITY)), base, value);
    with_sign_of(value, x)
}
