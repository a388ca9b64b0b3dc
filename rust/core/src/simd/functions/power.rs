//! Powers, roots and logarithms to other bases than e, by a natural logarithm of about 70 bits.

use super::exponential::exp_of_sum;
use super::pair::{Pair, THIRD, log};
use super::parts::{Parted, ROUND, clamp, is_unusual, log_limits, parted, polynomial, with_sign_of};
use crate::simd::lane::{Rare, Wide, power_of_two};

/// `a` to the power `b`.
#[inline(always)]
pub fn pow<W: Wide>(a: W, b: W) -> W {
    let (log, exponent) = (log(a.abs()), bounded(b));
    let product = exponent.mul(log.high);
    let lost = exponent.mul_add(log.low, exponent.mul_add(log.high, product.neg()));
    let lost = W::select(product.abs().lt(W::splat(750.0)), lost, W::zero());
    with_limits(a, b, exp_of_sum(product, lost))
}

/// `a` to the power `b`, to the 32 bits that a result of `f32` needs, for numbers of `f32`.
#[inline(always)]
pub fn pow_of_single<W: Wide>(a: W, b: W) -> W {
    let Parted { k, m, .. } = parted(a.abs());
    // log2(m) = 2 atanh(s) / ln 2 with s = (m - 1) / (m + 1), at most 0.1716: to 2^-45 of it.
    let s = m.sub(W::one()).div(m.add(W::one()));
    let series = polynomial(
        s.mul(s),
        [
            2.885_390_081_777_85,
            0.961_796_694_113_305_3,
            0.577_077_942_377_013_5,
            0.412_209_251_043_781_06,
            0.319_905_755_171_234_2,
            0.282_899_283_899_987_6,
        ],
    );
    let log = s.mul_add(series, k);
    let (whole, power) = two_to_the(clamp(bounded(b).mul(log), -200.0, 200.0));
    with_limits(a, b, power.mul(power_of_two(whole)))
}

/// 2 to the power `x`, to 2^-39 of it, as `(k, power)`: 2^k times a power from the root of one half to that of two.
#[inline(always)]
pub fn two_to_the<W: Wide>(x: W) -> (W, W) {
    let whole = x.add(W::splat(ROUND)).sub(W::splat(ROUND));
    let r = x.sub(whole);
    let series = polynomial(
        r,
        [
            0.693_147_180_541_205_9,
            0.240_226_506_947_439_24,
            0.055_504_109_593_327_404,
            0.009_618_129_558_483_351,
            0.001_333_343_406_380_086_1,
            0.000_154_030_986_106_619_06,
            1.531_423_269_597_788_6e-5,
            1.334_408_998_242_204_1e-6,
        ],
    );
    (whole, r.mul_add(series, W::one()))
}

/// The exponent; larger ones than this give 0, 1 or infinity as well. It keeps products finite.
#[inline(always)]
fn bounded<W: Wide>(b: W) -> W {
    clamp(b, -1e21, 1e21)
}

/// `power`, that of the size of `a`, with the sign and the limits of `a` to the power `b`.
#[inline(always)]
fn with_limits<W: Wide>(a: W, b: W, power: W) -> W {
    let [power] = W::replace_where(is_unusual(a), [power], Limits { a, b, power });
    let power = W::select(b.eq(W::splat(2.0)), a.mul(a), power);
    let power = W::select(b.eq(W::one()), a, power);
    W::select(a.eq(W::one()), W::one(), power)
}

/// A power of a number that is not positive or not finite.
struct Limits<W> {
    a: W,
    b: W,
    power: W,
}

impl<W: Wide> Rare<W, 1> for Limits<W> {
    #[inline(always)]
    fn compute(self) -> [W; 1] {
        let Self { a, b, power } = self;
        let (zero, infinity, size) = (W::zero(), W::splat(f64::INFINITY), a.abs());
        // Of zero and infinity: infinite or zero, by the signs of the logarithm and of the exponent.
        let of_infinity = W::select(zero.lt(b), infinity, W::select(b.lt(zero), zero, b));
        let of_zero = W::select(b.lt(zero), infinity, W::select(zero.lt(b), zero, b));
        let power = W::select(size.eq(infinity), of_infinity, W::select(size.eq(zero), of_zero, power));
        let power = W::select(size.ne(size), size, power);
        // Of a negative number: NaN unless the exponent is whole, negative where that is odd.
        let half = b.mul(W::splat(0.5));
        let of_whole = W::select(half.floor().eq(half), power, with_sign_of(power, a));
        let of_fraction = W::select(a.lt(zero), W::select(size.eq(infinity), power, W::splat(f64::NAN)), power);
        let power = W::select(b.floor().eq(b), of_whole, of_fraction);
        [W::select(b.eq(zero), W::one(), power)]
    }
}

/// Cubic root.
#[inline(always)]
pub fn cbrt<W: Wide>(a: W) -> W {
    let size = a.abs();
    // Within the range in which the cube below is normal.
    let (small, large) = (size.lt(W::splat(1e-200)), W::splat(1e200).lt(size));
    let (up, down) = (f64::from_bits((1023 + 600) << 52), f64::from_bits((1023 - 600) << 52));
    let x = size.mul(W::select(small, W::splat(up), W::select(large, W::splat(down), W::one())));
    let root = log(x).mul(Pair::splat(1.0 / 3.0, THIRD));
    let root = exp_of_sum(root.high, root.low);
    // A step of Newton's method, so that only its sum rounds.
    let square = Pair::product(root, root);
    let cube = square.mul(Pair { high: root, low: W::zero() });
    let rest = x.sub(cube.high).sub(cube.low);
    let root = root.add(rest.div(square.high.mul(W::splat(3.0))));
    let (up, down) = (f64::from_bits((1023 + 200) << 52), f64::from_bits((1023 - 200) << 52));
    let root = root.mul(W::select(small, W::splat(down), W::select(large, W::splat(up), W::one())));
    let root = W::select(size.lt(W::splat(f64::INFINITY)), root, size);
    W::select(size.eq(W::zero()), a, with_sign_of(root, a))
}

/// Logarithm to base 10.
#[inline(always)]
pub fn log10<W: Wide>(x: W) -> W {
    log_limits(x, log(x).mul(Pair::splat(std::f64::consts::LOG10_E, 1.098_319_650_216_765e-17)).rounded())
}
