//! Powers, and roots and logarithms to other bases than e by a natural logarithm of about 70 bits. Polynomials of powers are minimax (Remez,
//! in 300 bits).

use super::exponential::exp_of_sum;
use super::pair::{Pair, THIRD, log};
use super::parts::{
    Parted, ROUND, is_unusual, log_limits, parted, polynomial, polynomial_by_squares, two_to, with_sign_of,
};
use crate::simd::lane::{Body, Element, Lane, Rare, Simd, Wide, rounder};

/// `a` to the power `b`: 2 to the power `b log2(a)`, of which the logarithm is a sum of two numbers, and their product by `b` too.
#[inline(always)]
pub fn pow<L: Lane>(a: L, b: L) -> L {
    let (power, product) = power_of_size(a.abs(), L::zero(), b);
    // Of a base that does not move, the first of these is computed once.
    let size = L::select(is_unusual(a), L::splat(f64::NAN), product.abs());
    let unusual = size.at_most(limit()).ne(size);
    let [power] = L::replace_where(unusual, [power], Limits { a, b, power, product });
    let power = L::select(b.eq(L::splat(2.0)), a.mul(a), power);
    L::select(b.eq(L::one()), a, power)
}

/// Powers of two from this on are zero or infinite, and by half as large ones numbers are scaled.
#[inline(always)]
#[allow(clippy::cast_precision_loss, reason = "2048 at most")]
fn limit<L: Lane>() -> L {
    L::splat((L::Element::EXPONENTS / 2 + 100) as f64)
}

/// The size, a positive normal number, times 2 to the power `-less`, to the power `b`; and the product of `b` and its logarithm to base 2,
/// which must be below [`limit`].
#[inline(always)]
fn power_of_size<L: Lane>(size: L, less: L, b: L) -> (L, L) {
    let is_single = size_of::<L::Element>() < size_of::<f64>();
    let constant = |single: f64, double: f64| L::splat(if is_single { single } else { double });
    let Parted { k, m, .. } = parted(size);
    let (one, f) = (L::one(), m.sub(L::one()));
    // s = f / (f + 2), at most 0.1716, and the square of its upper part, with their rests.
    let divisor = f.add(L::splat(2.0));
    let inverse = one.div(divisor);
    let s = f.mul(inverse);
    let rest = f.sub(divisor.sub(L::splat(2.0)));
    let s_low = s.neg().mul_add(rest, s.neg().mul_add(divisor, f)).mul(inverse);
    let z = s.mul(s);
    let z_low = s.mul_add(s, z.neg());
    // log2(m) = s (2 / ln 2 + z (2 / (3 ln 2) + z series)), by the error of the logarithm: 2^-36 and 2^-65 of it. Each sum has its rest.
    let series = if is_single {
        polynomial(z, [5.770_793_557e-1, 4.119_217_396e-1, 3.363_246_322e-1])
    } else {
        let even = [0.577_078_016_355_591, 0.320_598_900_512_416_8, 0.221_978_128_830_488_3, 0.189_291_333_993_962_7];
        let odd = [0.412_198_583_103_074_94, 0.262_307_840_289_969_3, 0.191_381_574_583_203_76];
        polynomial_by_squares(z, even, odd)
    };
    let first = constant(0.961_796_700_954_437_3, 0.961_796_693_925_975_6);
    let inner = z.mul_add(series, first);
    let inner_low = z.mul_add(series, first.sub(inner));
    let inner_low = if is_single { inner_low } else { inner_low.add(L::splat(5.057_761_664_812_591e-17)) };
    let first = constant(2.885_390_043_258_667, 2.885_390_081_777_926_8);
    let outer = z.mul_add(inner, first);
    let rest =
        z_low.mul_add(inner, z.mul_add(inner_low, constant(3.851_926_067_000_022e-8, 4.071_054_748_186_206_6e-17)));
    let outer_low = z.mul_add(inner, first.sub(outer)).add(rest);
    let k = k.sub(less);
    let log = s.mul_add(outer, k);
    // The slope by which the lower part of `s` counts is 2 / ln 2 / (1 - z): to 2^-12 of it, by a line.
    let slope = z.mul_add(L::splat(1.98), outer);
    let log_low = s.mul_add(outer, k.sub(log)).add(s.mul_add(outer_low, s_low.mul(slope)));

    let product = b.mul(log);
    let lost = b.mul_add(log_low, b.mul_add(log, product.neg()));
    let round = L::splat(rounder::<L::Element>());
    let whole = product.add(round).sub(round);
    let r = product.sub(whole).add(lost);
    // 2^r = 1 + r (ln 2 + r series), by the error of the power: 2^-32 and 2^-57 of it.
    let series = if is_single {
        polynomial(
            r,
            [
                2.402_265_072e-1,
                5.550_405_011e-2,
                9.618_085_809e-3,
                1.333_792_927e-3,
                1.545_282_284e-4,
                1.433_922_716e-5,
            ],
        )
    } else {
        let even = [
            0.240_226_506_959_101_22,
            0.009_618_129_107_596_804,
            0.000_154_035_304_541_273_4,
            1.321_543_662_223_609_2e-6,
            7.073_572_939_832_171e-9,
        ];
        let odd = [
            0.055_504_108_664_820_265,
            0.001_333_355_814_675_047_3,
            1.525_273_350_541_167_7e-5,
            1.017_819_738_924_550_2e-7,
            4.434_796_105_198_264e-10,
        ];
        polynomial_by_squares(r, even, odd)
    };
    let power = if is_single {
        r.mul_add(r.mul_add(series, L::splat(6.931_471_825e-1)), one)
    } else {
        // Only the last sum rounds.
        let ln2 = L::splat(std::f64::consts::LN_2);
        let near = r.mul_add(ln2, one);
        let rest = r.mul_add(series, L::splat(2.319_046_813_846_299_6e-17));
        near.add(r.mul_add(rest, r.mul_add(ln2, one.sub(near))))
    };
    (power.scaled(whole), product)
}

/// 2 to the power `x`, to 2^-39 of it, as `(k, power)`: 2^k times a power from the root of one half to that of two.
#[inline(always)]
pub fn two_to_the<W: Wide>(x: W) -> (W, W) {
    let whole = x.add(W::splat(ROUND)).sub(W::splat(ROUND));
    let r = x.sub(whole);
    let even =
        [0.693_147_180_541_205_9, 0.055_504_109_593_327_404, 0.001_333_343_406_380_086_1, 1.531_423_269_597_788_6e-5];
    let odd =
        [0.240_226_506_947_439_24, 0.009_618_129_558_483_351, 0.000_154_030_986_106_619_06, 1.334_408_998_242_204_1e-6];
    let series = polynomial_by_squares(r, even, odd);
    (whole, r.mul_add(series, W::one()))
}

/// A power of a number that is not positive, not normal or not finite, or one that is too small or too large.
struct Limits<L> {
    a: L,
    b: L,
    /// The power of the size of `a`, if that is normal, and the logarithm to base 2 of it.
    power: L,
    product: L,
}

impl<L: Lane> Rare<L, 1> for Limits<L> {
    #[inline(always)]
    fn compute(self) -> [L; 1] {
        let Self { a, b, power, product } = self;
        let (zero, infinity, size) = (L::zero(), L::splat(f64::INFINITY), a.abs());
        let is_subnormal = is_unusual(L::select(size.eq(zero), infinity, L::select(size.lt(infinity), size, L::one())));
        let [power, product] = L::replace_where(is_subnormal, [power, product], OfSubnormal { size, b });
        let too_large = L::select(zero.lt(product), infinity, zero);
        let power = L::select(product.abs().lt(limit()), power, too_large);
        // Of zero and infinity: infinite or zero, by the signs of the logarithm and of the exponent.
        let of_infinity = L::select(zero.lt(b), infinity, L::select(b.lt(zero), zero, b));
        let of_zero = L::select(b.lt(zero), infinity, L::select(zero.lt(b), zero, b));
        let power = L::select(size.eq(infinity), of_infinity, L::select(size.eq(zero), of_zero, power));
        let power = L::select(b.ne(b), b, L::select(size.ne(size), size, power));
        let power = L::select(size.eq(L::one()), L::select(b.ne(b), b, L::one()), power);
        // Of a negative number: NaN unless the exponent is whole, negative where that is odd.
        let half = b.mul(L::splat(0.5));
        let of_whole = L::select(half.floor().eq(half), power, with_sign_of(power, a));
        let of_fraction = L::select(a.lt(zero), L::select(size.eq(infinity), power, L::splat(f64::NAN)), power);
        let power = L::select(b.floor().eq(b), of_whole, of_fraction);
        [L::select(b.eq(zero), L::one(), L::select(a.eq(L::one()), L::one(), power))]
    }
}

/// The power of a subnormal number.
struct OfSubnormal<L> {
    size: L,
    b: L,
}

impl<L: Lane> Rare<L, 2> for OfSubnormal<L> {
    #[inline(always)]
    fn compute(self) -> [L; 2] {
        let mut values = [self.size, self.b];
        // SAFETY: this is compiled for the instruction set of `L`, as what it calls; `values` outlives the call.
        unsafe { L::Set::address::<ByAddress, _>()((self, &raw mut values)) };
        values
    }
}

/// Called by its address, so that the loops have the code of a power once.
struct ByAddress;

impl<L: Lane> Body<(OfSubnormal<L>, *mut [L; 2])> for ByAddress {
    #[inline(always)]
    fn call<S: Simd>((OfSubnormal { size, b }, to): (OfSubnormal<L>, *mut [L; 2])) {
        let digits = L::Element::FRACTION.cast_signed() + 2;
        let (power, product) = power_of_size(size.mul(L::splat(two_to(digits))), L::splat(f64::from(digits)), b);
        // SAFETY: `compute` passes the address of a variable.
        unsafe { *to = [power, product] };
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
