//! Angles and distances of points in the plane: inverse trigonometric functions, by a polynomial on a reduced ratio, that of fdlibm
//! (Sun Microsystems, 1993), with sums of more bits than `f64` has.

#![allow(clippy::excessive_precision, reason = "coefficients as published")]
#![allow(clippy::many_single_char_names, reason = "the letters of the formulas")]

use super::pair::Pair;
use super::parts::{polynomial, two_to, with_sign_of};
use crate::simd::lane::Wide;

const HALF_PI_LOW: f64 = 6.123_233_995_736_766_036e-17;

/// `(1 - atan(t) / t) / t^2` of the square of `t`, at most 7/16: even and odd terms apart, which depend on each other less.
#[inline(always)]
fn arctangent_series<W: Wide>(z: W) -> W {
    let square = z.mul(z);
    let even = polynomial(
        square,
        [
            3.333_333_333_333_293_180_27e-1,
            1.428_571_427_250_346_637_11e-1,
            9.090_887_133_436_506_561_96e-2,
            6.661_073_137_387_531_206_69e-2,
            4.976_877_994_615_932_360_17e-2,
            1.628_582_011_536_578_236_23e-2,
        ],
    );
    let odd = polynomial(
        square,
        [
            -1.999_999_999_987_648_324_76e-1,
            -1.111_111_040_546_235_578_80e-1,
            -7.691_876_205_044_829_994_95e-2,
            -5.833_570_133_790_573_486_45e-2,
            -3.653_157_274_421_691_552_70e-2,
        ],
    );
    odd.mul_add(z, even)
}

/// The angle of the point (x, y) of numbers that are not negative.
#[inline(always)]
fn first_quadrant<W: Wide>(y: W, x: W) -> Pair<W> {
    let (zero, one) = (W::zero(), W::one());
    let steep = x.lt(y);
    let (a, b) = (W::select(steep, x, y), W::select(steep, y, x));
    let infinite = b.eq(W::splat(f64::INFINITY));
    let a = W::select(infinite, W::truth(a.eq(b)), a);
    let b = W::select(infinite, one, W::select(b.eq(zero), one, b));
    // Away from the limits, so that half of `b` is exact and no sum overflows.
    let (large, small) = (W::splat(two_to(1021)).lt(b), b.lt(W::splat(two_to(-960))));
    let scale = W::select(large, W::splat(0.25), W::select(small, W::splat(two_to(60)), one));
    let (a, b) = (a.mul(scale), b.mul(scale));

    // atan(a/b) = atan(c) + atan(t) with t = (a - c b) / (b + c a).
    let (above, near_one) = (b.mul(W::splat(7.0 / 16.0)).le(a), b.mul(W::splat(11.0 / 16.0)).le(a));
    let c = W::select(near_one, one, W::select(above, W::splat(0.5), zero));
    let numerator = c.neg().mul_add(b, a);
    let denominator = Pair::sum(b, c.mul(a));
    let t = numerator.div(denominator.high);
    let rest = t.neg().mul_add(denominator.high, numerator).sub(t.mul(denominator.low)).div(denominator.high);
    let z = t.mul(t);
    let series = arctangent_series(z);
    let of_half = Pair::splat(4.636_476_090_008_060_935_15e-1, 2.269_877_745_296_168_709_24e-17);
    let of_one = Pair::splat(std::f64::consts::FRAC_PI_4, HALF_PI_LOW / 2.0);
    let base = Pair::select(near_one, of_one, Pair::select(above, of_half, Pair::splat(0.0, 0.0)));
    let sum = Pair::sum(base.high, t);
    let angle = Pair { high: sum.high, low: sum.low.add(base.low.add(rest.sub(t.mul(z).mul(series)))) };
    Pair::select(steep, less(std::f64::consts::FRAC_PI_2, HALF_PI_LOW, angle), angle)
}

/// `high + low` minus an angle, which is no larger.
#[inline(always)]
fn less<W: Wide>(high: f64, low: f64, angle: Pair<W>) -> Pair<W> {
    let sum = Pair::sum(W::splat(high), angle.high.neg());
    Pair { high: sum.high, low: sum.low.add(W::splat(low).sub(angle.low)) }
}

/// The angle of a point in the first quadrant, as that of the point beside it where `x` is negative, minus zero included.
#[inline(always)]
fn reflected<W: Wide>(angle: Pair<W>, x: W) -> W {
    let is_negative = with_sign_of(W::one(), x).lt(W::zero());
    Pair::select(is_negative, less(std::f64::consts::PI, 2.0 * HALF_PI_LOW, angle), angle).rounded()
}

/// Angle of the point (x, y).
#[inline(always)]
pub fn atan2<W: Wide>(y: W, x: W) -> W {
    with_sign_of(reflected(first_quadrant(y.abs(), x.abs()), x), y)
}

/// Inverse tangent.
#[inline(always)]
pub fn atan<W: Wide>(x: W) -> W {
    let (zero, one, limit) = (W::zero(), W::one(), W::splat(1e300));
    let size = x.abs();
    let size = size.at_most(limit);
    // atan(x) = base + atan(u), with `u` at most 7/16: (x - 1) / (x + 1) or -1 / x.
    let is_middle = W::splat(7.0 / 16.0).lt(size);
    let is_large = W::splat(39.0 / 16.0).lt(size);
    let of = |large: W, middle: W, small: W| W::select(is_large, large, W::select(is_middle, middle, small));
    let (less, sum) = (size.sub(one), size.add(one));
    let (above, below) = (of(one.neg(), less, size), of(size, sum, one));
    let inverse = one.div(below);
    let u = above.mul(inverse);
    // What the sums lost, within the range in which they count.
    let lost = u.neg().mul_add(size.sub(sum.sub(one)), size.sub(less.add(one)));
    let rest = u.neg().mul_add(below, above).add(of(zero, lost, zero)).mul(inverse);
    let z = u.mul(u);
    let base = of(W::splat(std::f64::consts::FRAC_PI_2), W::splat(std::f64::consts::FRAC_PI_4), zero);
    let rest = of(W::splat(HALF_PI_LOW), W::splat(HALF_PI_LOW / 2.0), zero).add(rest);
    let rest = u.mul(z).neg().mul_add(arctangent_series(z), rest);
    let sum = Pair::sum(base, u);
    with_sign_of(sum.high.add(sum.low.add(rest)), x)
}

/// The root of `1 - x^2`; NaN where that is negative.
#[inline(always)]
fn cofunction<W: Wide>(x: W) -> Pair<W> {
    let square = Pair::product(x, x);
    let sum = Pair::sum(W::one(), square.high.neg());
    let root = Pair::sum(sum.high, sum.low.sub(square.low)).sqrt();
    Pair::select(x.eq(W::one()), Pair::splat(0.0, 0.0), root)
}

/// Inverse sine.
#[inline(always)]
pub fn asin<W: Wide>(x: W) -> W {
    let size = x.abs();
    let root = cofunction(size);
    let angle = first_quadrant(size, root.high);
    // The derivative with respect to the root.
    let low = size.neg().mul_add(root.low, angle.low);
    with_sign_of(Pair { high: angle.high, low }.rounded(), x)
}

/// Inverse cosine.
#[inline(always)]
pub fn acos<W: Wide>(x: W) -> W {
    let size = x.abs();
    let root = cofunction(size);
    let angle = first_quadrant(root.high, size);
    reflected(Pair { high: angle.high, low: size.mul_add(root.low, angle.low) }, x)
}

/// Distance of the point (a, b) from the origin.
#[inline(always)]
pub fn hypot<W: Wide>(a: W, b: W) -> W {
    let (x, y, infinity) = (a.abs(), b.abs(), W::splat(f64::INFINITY));
    let (large, small) = (x.at_least(y), y.at_most(x));
    // Within the range in which squares neither overflow nor underflow.
    let (high, low) = (W::splat(two_to(500)).lt(large), large.lt(W::splat(two_to(-500))));
    let scale = |up: i32| W::select(high, W::splat(two_to(-up)), W::select(low, W::splat(two_to(up)), W::one()));
    let (p, q) = (large.mul(scale(600)), small.mul(scale(600)));
    let root = Pair::product(p, p).add(Pair::product(q, q)).sqrt().rounded().mul(scale(-600));
    let root = W::select(large.eq(W::zero()), large, root);
    W::select(x.eq(infinity), x, W::select(y.eq(infinity), y, root))
}
