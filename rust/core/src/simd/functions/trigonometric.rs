//! Sine, cosine and tangent: polynomials on a reduced argument, of sine and cosine those of fdlibm (Sun Microsystems, 1993). Large arguments
//! are reduced by the method of Payne and Hanek (1983).

#![allow(clippy::excessive_precision, reason = "coefficients as published")]
#![allow(clippy::many_single_char_names, reason = "the letters of the formulas")]

use super::pair::Pair;
use super::parts::{ROUND, has, polynomial, two_to};
use crate::simd::lane::{Lane, Rare, Wide};

/// The largest argument of the reduction by three parts of pi/2.
const FAR: f64 = 1e5;

/// pi/2, whose second part has 36 bits: its products by whole numbers of 17 bits are exact.
const HALF_PI: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_707_727e-17, 2.903_855_973_979_360_5e-28];

/// The bits of 2/pi after the point, 53 to a number.
const TWO_OVER_PI: [u64; 23] = [
    0x0014_5f30_6dc9_c882,
    0x0014_a7f0_9d5f_47d4,
    0x001a_6ee0_6db1_4acc,
    0x0013_c439_041f_e516,
    0x0007_57bd_778a_c36e,
    0x0009_1b8e_9093_74b8,
    0x0000_3249_7750_4e8c,
    0x0012_1cfe_1deb_1cb1,
    0x0005_34e7_dd10_46be,
    0x0014_baed_1213_a671,
    0x0018_135a_2fbf_209c,
    0x0019_1d63_9835_339f,
    0x0009_3908_bf17_7bf2,
    0x000a_0ec7_fe25_fff7,
    0x0010_2cc0_7f79_788c,
    0x000b_5a0a_6d1f_6d36,
    0x000f_d9e4_f961_36e9,
    0x001d_18fd_9a79_7fa8,
    0x0016_ba93_dd63_f5f2,
    0x001f_17b3_d073_9f78,
    0x0014_a525_d4d7_f6bf,
    0x000c_47e3_5742_1580,
    0x0019_8237_e3db_5d5f,
];

/// The number of them that determines a reduced argument to the last place: the first two of a product with a number below
/// 2^107 are its whole quarter turns and the bits behind the point, and up to 62 bits of these may be zeros.
const WINDOW: usize = 5;

/// `x = q pi/2 + y + z` with `y` at most pi/4 and `z` about its rounding error: `(q, y, z)`; `q` may lack a multiple of four.
#[inline(always)]
fn quarter_turns<W: Wide>(x: W) -> (W, W, W) {
    let q = x.mul_add(W::splat(std::f64::consts::FRAC_2_PI), W::splat(ROUND)).sub(W::splat(ROUND));
    let [first, second, third] = HALF_PI.map(|part| W::splat(-part));
    let a = q.mul_add(first, x);
    let y = q.mul_add(second, a);
    let z = q.mul_add(third, q.mul_add(second, a.sub(y)));
    let [q, y, z] = W::replace_where(W::splat(FAR).lt(x.abs()), [q, y, z], Far(x));
    (q, y, z)
}

/// As [`quarter_turns`], of numbers from 1e5 on.
#[inline(always)]
fn far_quarter_turns<W: Wide>(x: W) -> (W, W, W) {
    let [q, y, z] = Far(x).compute();
    (q, y, z)
}

/// The reduction of large arguments.
struct Far<W>(W);

impl<W: Wide> Rare<W, 3> for Far<W> {
    /// The product of `x` and 2/pi, but for parts that are multiples of four. NaN of infinity.
    #[inline(always)]
    fn compute(self) -> [W; 3] {
        let (x, digits) = window(self.0.abs());
        let (mut q, mut sum) = (W::zero(), Pair::splat(0.0, 0.0));
        for (number, digit) in (0..).zip(digits) {
            let product = Pair::product(x, digit.mul(W::splat(two_to(-53 * number))));
            for part in [product.high, product.low] {
                // The rest of the nearest multiple of four, and below that of the nearest whole number: both are exact.
                let fours = part.mul_add(W::splat(0.25), W::splat(0.5)).floor();
                let part = fours.mul_add(W::splat(-4.0), part);
                let next = Pair::sum_of_any(sum.high, part);
                let whole = next.high.add(W::splat(ROUND)).sub(W::splat(ROUND));
                q = q.add(whole);
                sum = Pair::sum_of_any(next.high.sub(whole), sum.low.add(next.low));
            }
        }
        let angle = sum.mul(Pair::splat(std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766_036e-17));
        let angle = Pair::sum(angle.high, angle.low);
        let is_negative = self.0.lt(W::zero());
        [q, angle.high, angle.low].map(|part| W::select(is_negative, part.neg(), part))
    }
}

/// The digits of 2/pi that matter to a product with `x`, which is large, as fractions, and `x` beside them, below 2^107:
/// the first digit counts as much as one that follows the point.
#[inline(always)]
fn window<W: Wide>(x: W) -> (W, [W; WINDOW]) {
    let mut x = x;
    #[allow(clippy::cast_precision_loss, reason = "of 53 bits each")]
    let mut digits = TWO_OVER_PI.map(|digit| W::splat(digit as f64 * two_to(-53)));
    let mut skipped: usize = 16;
    while skipped > 0 {
        // The products of the first digits are then multiples of four.
        let bits = 53 * i32::try_from(skipped).unwrap_or(0);
        let skip = W::splat(two_to(bits + 54)).le(x);
        x = x.mul(W::select(skip, W::splat(two_to(-bits)), W::one()));
        for k in 0..WINDOW + skipped - 1 {
            let later = digits.get(k + skipped).map_or(W::zero(), |digit| *digit);
            digits[k] = W::select(skip, later, digits[k]);
        }
        skipped /= 2;
    }
    let [a, b, c, d, e, ..] = digits;
    (x, [a, b, c, d, e])
}

/// Sine of `q` quarter turns and of `turns` more, `y` and `z`.
#[inline(always)]
fn turned_sin<W: Wide>((q, y, z): (W, W, W), turns: f64) -> W {
    let square = y.mul(y);
    let half = square.mul(W::splat(0.5));
    let near = W::one().sub(half);
    let lost = W::one().sub(near).sub(half);
    let series = polynomial(
        square,
        [
            4.166_666_666_666_660_190_37e-2,
            -1.388_888_888_887_410_957_49e-3,
            2.480_158_728_947_672_941_78e-5,
            -2.755_731_435_139_066_330_35e-7,
            2.087_572_321_298_174_827_90e-9,
            -1.135_964_755_778_819_482_65e-11,
        ],
    );
    let cos = near.add(y.neg().mul_add(z, square.mul(square).mul_add(series, lost)));
    let series = polynomial(
        square,
        [
            -1.666_666_666_666_663_243_48e-1,
            8.333_333_333_322_489_461_24e-3,
            -1.984_126_982_985_794_931_34e-4,
            2.755_731_370_707_006_767_89e-6,
            -2.505_076_025_340_686_341_95e-8,
            1.589_690_995_211_550_102_21e-10,
        ],
    );
    let sin = y.add(square.mul(y).mul_add(series, z.mul(near)));
    // The low two bits of the whole number: the first swaps sine and cosine, the second flips the sign.
    let turn = q.add(W::splat(ROUND + turns)).to_bits();
    let value = W::select(has::<W>(turn, 1), cos, sin);
    W::select(has::<W>(turn, 2), value.neg(), value)
}

/// Tangent of `q` quarter turns, `y` and `z`.
#[inline(always)]
fn turned_tan<W: Wide>((q, y, z): (W, W, W)) -> W {
    tan_near_zero(y, z, has::<W>(q.add(W::splat(ROUND)).to_bits(), 1))
}

/// Sine.
#[inline(always)]
pub fn sin<W: Wide>(x: W) -> W {
    W::select(x.eq(W::zero()), x, turned_sin(quarter_turns(x), 0.0))
}

/// Cosine.
#[inline(always)]
pub fn cos<W: Wide>(x: W) -> W {
    turned_sin(quarter_turns(x), 1.0)
}

/// Tangent.
#[inline(always)]
pub fn tan<W: Wide>(x: W) -> W {
    W::select(x.eq(W::zero()), x, turned_tan(quarter_turns(x)))
}

/// Sine of numbers from 1e5 on.
#[inline(always)]
pub fn far_sin<W: Wide>(x: W) -> W {
    turned_sin(far_quarter_turns(x), 0.0)
}

/// Cosine of numbers from 1e5 on.
#[inline(always)]
pub fn far_cos<W: Wide>(x: W) -> W {
    turned_sin(far_quarter_turns(x), 1.0)
}

/// Tangent of numbers from 1e5 on.
#[inline(always)]
pub fn far_tan<W: Wide>(x: W) -> W {
    turned_tan(far_quarter_turns(x))
}

/// Tangent of `y + z`, or minus its reciprocal where `inverted`.
#[inline(always)]
fn tan_near_zero<W: Wide>(y: W, z: W, inverted: W::Mask) -> W {
    // `(tan(y) / y - 1) / y^2`, minimax (Remez, in 160 bits) by the error of the tangent: 2^-56.1 of it. Its even and odd terms apart,
    // which depend on each other less.
    let square = y.mul(y);
    let fourth = square.mul(square);
    let even = polynomial(
        fourth,
        [
            0.333_333_333_333_331_26,
            0.053_968_253_939_108_24,
            0.008_863_222_059_076_848,
            0.001_454_879_391_080_705_2,
            0.000_223_604_662_848_663_21,
            -2.337_472_962_391_626_4e-5,
            -4.357_572_662_455_102e-5,
        ],
    );
    let odd = polynomial(
        fourth,
        [
            0.133_333_333_333_809_26,
            0.021_869_489_365_822_205,
            0.003_592_266_445_731_818_4,
            0.000_594_606_849_485_721_6,
            0.000_134_213_382_567_315_58,
            8.687_734_147_978_197e-5,
            2.056_904_040_855_778_2e-5,
        ],
    );
    tan_of_parts(y, odd.mul_add(square, even), square, z, inverted)
}

/// Tangent of `y + z`, or minus its reciprocal where `inverted`, by the square of `y` and `series`, which is `(tan(y) / y - 1) / y^2`.
#[inline(always)]
pub fn tan_of_parts<L: Lane>(y: L, series: L, square: L, z: L, inverted: L::Mask) -> L {
    // The tangent is `factor y + rest`, of which the rest is small for any `y`. It has what the square lost, and what `z` adds, both by
    // a slope that is about right.
    let factor = L::splat(1.125);
    let lost = y.mul_add(y, square.neg());
    let slope = square.mul_add(series, lost.mul_add(L::splat(0.5), L::splat(-0.125)));
    let rest = y.mul_add(slope, square.mul_add(z.mul(L::splat(1.25)), z));
    let near = y.mul_add(factor, rest);
    let lost = y.mul_add(factor, near.neg()).add(rest);
    // A step of Newton's method.
    let inverse = L::splat(-1.0).div(near);
    let error = inverse.mul_add(lost, inverse.mul_add(near, L::one()));
    L::select(inverted, inverse.mul_add(error, inverse), near)
}
