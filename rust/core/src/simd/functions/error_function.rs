//! The error function, by polynomials, and its complement, by quotients of those of fdlibm (Sun Microsystems, 1993).

#![allow(clippy::excessive_precision, reason = "coefficients as published")]

use super::exponential::{exp, exp_of_sum};
use super::pair::Pair;
use super::parts::{clamp, polynomial, with_sign_of};
use crate::simd::lane::Wide;

/// The error function at one, in 24 bits.
const AT_ONE: f64 = 8.450_629_115_104_675_292_97e-1;

/// The ranges of `|x|`, below 0.84375, from there to 1.25, and above, each with its term.
struct Ranges<W: Wide> {
    near: W::Mask,
    middle: W::Mask,
    /// `erf(x) / x - 1`, or `erf(|x|) - AT_ONE`.
    quotient: W,
    /// `erfc(|x|)`, above.
    rest: W,
}

#[allow(clippy::too_many_lines, reason = "most are coefficients")]
#[inline(always)]
fn ranges<W: Wide>(x: W) -> Ranges<W> {
    let size = x.abs();
    let (near, middle, above) = (size.lt(W::splat(0.84375)), size.lt(W::splat(1.25)), size.lt(W::splat(1.0 / 0.35)));
    let square = size.mul(size);
    let inner = W::select(near, square, size.sub(W::one()));
    let z = W::select(middle, inner, W::one().div(square));
    let fractions = [
        (
            polynomial(
                z,
                [
                    1.283_791_670_955_125_585_61e-1,
                    -3.250_421_072_470_014_993_70e-1,
                    -2.848_174_957_559_851_047_66e-2,
                    -5.770_270_296_489_441_591_57e-3,
                    -2.376_301_665_665_016_260_84e-5,
                ],
            ),
            polynomial(
                z,
                [
                    1.0,
                    3.979_172_239_591_553_528_19e-1,
                    6.502_224_998_876_729_444_85e-2,
                    5.081_306_281_875_765_627_76e-3,
                    1.324_947_380_043_216_445_26e-4,
                    -3.960_228_278_775_368_123_20e-6,
                ],
            ),
        ),
        (
            polynomial(
                z,
                [
                    -2.362_118_560_752_659_440_77e-3,
                    4.148_561_186_837_483_316_66e-1,
                    -3.722_078_760_357_013_238_47e-1,
                    3.183_466_199_011_617_536_74e-1,
                    -1.108_946_942_823_966_774_76e-1,
                    3.547_830_432_561_823_593_71e-2,
                    -2.166_375_594_868_790_843_00e-3,
                ],
            ),
            polynomial(
                z,
                [
                    1.0,
                    1.064_208_804_008_442_282_86e-1,
                    5.403_979_177_021_710_489_37e-1,
                    7.182_865_441_419_626_628_68e-2,
                    1.261_712_198_087_616_421_12e-1,
                    1.363_708_391_202_905_073_62e-2,
                    1.198_449_984_679_910_741_70e-2,
                ],
            ),
        ),
        (
            polynomial(
                z,
                [
                    -9.864_944_034_847_148_227_05e-3,
                    -6.938_585_727_071_817_643_72e-1,
                    -1.055_862_622_532_329_098_14e1,
                    -6.237_533_245_032_600_603_96e1,
                    -1.623_966_694_625_734_703_55e2,
                    -1.846_050_929_067_110_359_94e2,
                    -8.128_743_550_630_659_342_46e1,
                    -9.814_329_344_169_145_485_92e0,
                ],
            ),
            polynomial(
                z,
                [
                    1.0,
                    1.965_127_166_743_925_712_92e1,
                    1.376_577_541_435_190_426_00e2,
                    4.345_658_774_752_292_288_21e2,
                    6.453_872_717_332_678_803_36e2,
                    4.290_081_400_275_678_333_86e2,
                    1.086_350_055_417_794_351_34e2,
                    6.570_249_770_319_281_701_35e0,
                    -6.042_441_521_485_809_874_38e-2,
                ],
            ),
        ),
        (
            polynomial(
                z,
                [
                    -9.864_942_924_700_099_285_97e-3,
                    -7.992_832_376_805_230_065_74e-1,
                    -1.775_795_491_775_475_198_89e1,
                    -1.606_363_848_558_219_160_62e2,
                    -6.375_664_433_683_896_277_22e2,
                    -1.025_095_131_611_077_249_54e3,
                    -4.835_191_916_086_513_970_19e2,
                ],
            ),
            polynomial(
                z,
                [
                    1.0,
                    3.033_806_074_348_245_829_24e1,
                    3.257_925_129_965_739_188_26e2,
                    1.536_729_586_084_436_959_94e3,
                    3.199_858_219_508_595_539_08e3,
                    2.553_050_406_433_164_425_83e3,
                    4.745_285_412_069_553_672_15e2,
                    -2.244_095_244_658_581_833_62e1,
                ],
            ),
        ),
    ];
    // One division for all of them.
    let [first, second, third, last] = fractions;
    let chosen = |a: W, b: W, c: W, d: W| W::select(near, a, W::select(middle, b, W::select(above, c, d)));
    let quotient = chosen(first.0, second.0, third.0, last.0).div(chosen(first.1, second.1, third.1, last.1));
    // exp(-x^2 - 0.5625 + quotient) / x, with the rounding error of the square.
    let bounded = clamp(size, 0.0, 28.0);
    let square = Pair::product(bounded, bounded);
    let exponent = Pair::sum_of_any(square.high.neg(), quotient.sub(W::splat(0.5625)));
    let rest = exp_of_sum(exponent.high, exponent.low.sub(square.low)).div(bounded);
    Ranges { near, middle, quotient, rest }
}

/// The error function. Its polynomials are minimax (Remez, in 240 bits), rounded to `f64`.
#[inline(always)]
pub fn erf<W: Wide>(x: W) -> W {
    let (one, size) = (W::one(), x.abs());
    // `erf(x) / x - 1`, by the error of the error function: 2^-55.2 of it.
    let series = polynomial(
        x.mul(x),
        [
            1.283_791_670_955_125_6e-1,
            -3.761_263_890_318_352e-1,
            1.128_379_167_094_418_5e-1,
            -2.686_617_064_311_144e-2,
            5.223_977_606_118_296e-3,
            -8.548_325_929_306_829e-4,
            1.205_529_357_668_691_8e-4,
            -1.492_471_229_809_411_2e-5,
            1.644_713_152_450_353_8e-6,
            -1.620_631_340_805_757_5e-7,
            1.371_097_890_458_582_4e-8,
            -7.779_465_729_549_518e-10,
        ],
    );
    // `log(1 - erf(|x|))` from 1 to 5.95, by the error of the error function: 2^-56.3 of it. Its even and odd terms apart, which
    // depend on each other less.
    let bounded = clamp(size, 0.0, 5.95);
    let square = bounded.mul(bounded);
    let even = polynomial(
        square,
        [
            -2.781_356_677_000_826_5e-8,
            -6.366_207_346_899_361e-1,
            1.912_804_196_319_640_6e-2,
            -1.674_969_368_481_678e-3,
            2.200_708_981_905_282_8e-5,
            6.476_145_669_625_462e-5,
            6.784_218_287_571_812e-6,
            2.481_419_110_210_726e-7,
            3.108_199_032_753_937e-9,
            8.928_769_471_759_043e-12,
        ],
    );
    let odd = polynomial(
        square,
        [
            -1.128_378_915_609_710_8e0,
            -1.027_708_143_003_576_7e-1,
            2.023_086_912_088_950_3e-4,
            5.523_635_521_687_663e-4,
            -1.107_837_983_981_532_4e-4,
            -2.428_045_485_296_369_6e-5,
            -1.469_722_626_427_205_3e-6,
            -3.219_502_863_600_556e-8,
            -2.105_264_994_548_275e-10,
            -1.783_855_614_487_535_3e-13,
        ],
    );
    let exponent = odd.mul_add(bounded, even);
    let far = with_sign_of(one.sub(exp(exponent)), x);
    W::select(size.lt(one), x.mul_add(series, x), far)
}

/// One minus the error function.
#[inline(always)]
pub fn erfc<W: Wide>(x: W) -> W {
    let Ranges { near, middle, quotient, rest } = ranges(x);
    let (one, half) = (W::one(), W::splat(0.5));
    let is_small = x.lt(W::splat(0.25));
    // The nearest sum of the error function and of what does not round.
    let inner = W::select(is_small, one.sub(quotient.mul_add(x, x)), half.sub(quotient.mul_add(x, x.sub(half))));
    let of_positive = W::select(middle, W::splat(1.0 - AT_ONE).sub(quotient), rest);
    let of_negative = W::select(middle, W::splat(1.0 + AT_ONE).add(quotient), W::splat(2.0).sub(rest));
    W::select(near, inner, W::select(x.lt(W::zero()), of_negative, of_positive))
}
