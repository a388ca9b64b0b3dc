//! Natural logarithms, and logarithms of sums of powers. The polynomial is that of fdlibm (Sun Microsystems, 1993).

#![allow(clippy::excessive_precision, reason = "coefficients as published")]

use super::exponential::exp_argument;
use super::pair::Pair;
use super::parts::{LN2_HIGH, LN2_LOW, Parted, ROUND, log_limits, log_parts, parted, polynomial_by_squares, two_to};
use super::power::two_to_the;
use crate::simd::lane::{Body, Rare, Simd, Wide, power_of_two, power_of_two_less};
use crate::special::double_double::{self, Double};

/// 1 / ln 2 beyond the nearest number.
const LOG2_E_LOW: f64 = 2.035_527_374_093_103_3e-17;

/// `(2 atanh(s) / s - 2) / z`, where `z` is the square of `s`, at most 0.1716.
#[inline(always)]
fn log_series<W: Wide>(z: W) -> W {
    let even = [
        6.666_666_666_666_735_130e-1,
        2.857_142_874_366_239_149e-1,
        1.818_357_216_161_805_012e-1,
        1.479_819_860_511_658_591e-1,
    ];
    let odd = [3.999_999_999_940_941_908e-1, 2.222_219_843_214_978_396e-1, 1.531_383_769_920_937_332e-1];
    polynomial_by_squares(z, even, odd)
}

/// `log(1 + f) = f - half_square + rest`: `(half_square, rest)`.
#[inline(always)]
fn log_rest<W: Wide>(f: W) -> (W, W) {
    let s = f.div(f.add(W::splat(2.0)));
    let z = s.mul(s);
    let r = log_series(z);
    let half_square = f.mul(f).mul(W::splat(0.5));
    (half_square, s.mul(z.mul_add(r, half_square)))
}

/// k ln 2 + log(1 + f) + c, where `c` is small.
#[inline(always)]
fn log_sum<W: Wide>(k: W, f: W, c: W) -> W {
    let (half_square, rest) = log_rest(f);
    let tail = rest.add(k.mul_add(W::splat(LN2_LOW), c));
    k.mul_add(W::splat(LN2_HIGH), f.sub(half_square.sub(tail)))
}

/// Natural logarithm.
#[inline(always)]
pub fn log<W: Wide>(x: W) -> W {
    let (k, f) = log_parts(x);
    log_limits(x, log_sum(k, f, W::zero()))
}

/// Natural logarithm of one plus `x`.
#[inline(always)]
pub fn log1p<W: Wide>(x: W) -> W {
    let u = x.add(W::one());
    let Parted { k, m, .. } = parted(u);
    // The rounding error of the sum.
    let lost = W::select(x.lt(W::one()), x.sub(u.sub(W::one())), W::one().sub(u.sub(x)));
    let near = k.eq(W::zero());
    let f = W::select(near, x, m.sub(W::one()));
    let log = log_sum(k, f, W::select(near, W::zero(), lost.div(u)));
    W::select(x.abs().lt(W::splat(1e-17)), x, log_limits(u, log))
}

/// Logarithm to base 2.
#[inline(always)]
pub fn log2<W: Wide>(x: W) -> W {
    let (k, f) = log_parts(x);
    let (half_square, rest) = log_rest(f);
    // The product of `f` and 1 / ln 2, what that and the square lost, and the sum of these and `k`.
    let factor = W::splat(std::f64::consts::LOG2_E);
    let product = f.mul(factor);
    let lost = f.mul_add(W::splat(LOG2_E_LOW), f.mul_add(factor, product.neg()));
    let less = f.mul(W::splat(0.5)).mul_add(f, half_square.neg()).add(half_square.sub(rest));
    let more = less.neg().mul_add(factor, lost);
    let sum = k.add(product);
    log_limits(x, sum.add(k.sub(sum).add(product).add(more)))
}

/// log(exp(a) + exp(b)).
#[inline(always)]
pub fn logaddexp<W: Wide>(a: W, b: W) -> W {
    log_of_sum(a, b, false, CANCELLED)
}

/// log(exp(a) + exp(b)), to the 32 bits that a result of `f32` needs, for numbers of `f32`.
#[inline(always)]
pub fn logaddexp_of_single<W: Wide>(a: W, b: W) -> W {
    let large = a.at_least(b);
    let less = a.sub(b).abs().mul(W::splat(-std::f64::consts::LOG2_E)).at_least(W::splat(-200.0));
    let (whole, power) = two_to_the(less);
    // log(1 + 2^whole power) = 2 atanh(s) with s = power / (power + 2^(1 - whole)), at most 1/3: to 2^-38 of it.
    let s = power.div(power.add(power_of_two_less(1.0, whole)));
    let even = [2.000_000_000_005_028, 0.400_000_625_362_622_54, 0.223_058_753_375_331_26, 0.218_785_949_475_811_73];
    let odd = [0.666_666_662_273_523_9, 0.285_681_027_872_009_4, 0.171_165_393_151_383_38];
    let series = polynomial_by_squares(s.mul(s), even, odd);
    let more = s.mul(series);
    let sum = large.add(more);
    let cancels = is_less_or_nan(sum.abs(), more.mul(W::splat(1.0 / 256.0)));
    let [value] = W::replace_where(cancels, [sum], ToAllBits { a, b });
    value
}

/// The same to the 59 bits that a result of `f32` needs where terms cancel.
struct ToAllBits<W> {
    a: W,
    b: W,
}

impl<W: Wide> Rare<W, 1> for ToAllBits<W> {
    #[inline(always)]
    fn compute(self) -> [W; 1] {
        let mut value = self.a;
        // SAFETY: this is compiled for the instruction set of `W`, as what it calls; `value` outlives the call.
        unsafe { W::Set::address::<ByAddress, _>()((self, &raw mut value)) };
        [value]
    }
}

impl<W: Wide> Body<(ToAllBits<W>, *mut W)> for ByAddress {
    #[inline(always)]
    fn call<S: Simd>((ToAllBits { a, b }, to): (ToAllBits<W>, *mut W)) {
        // SAFETY: `compute` passes the address of a variable.
        unsafe { *to = log_of_sum(a, b, false, two_to(-26)) };
    }
}

/// log2(2^a + 2^b).
#[inline(always)]
pub fn logaddexp2<W: Wide>(a: W, b: W) -> W {
    log_of_sum(a, b, true, CANCELLED)
}

/// Sums of two terms that are smaller than this part of a term lack bits of an `f64`.
const CANCELLED: f64 = 1.0 / 128.0;

/// Whether a number that is not negative is less than a limit, or NaN.
#[inline(always)]
fn is_less_or_nan<W: Wide>(size: W, limit: W) -> W::Mask {
    size.at_least(limit).ne(size)
}

/// The larger number plus a function of the difference, to 59 bits; where they cancel, to more.
#[inline(always)]
fn log_of_sum<W: Wide>(a: W, b: W, is_binary: bool, cancelled: f64) -> W {
    let (large, small) = (a.at_least(b), b.at_most(a));
    // Of what is smaller, the power is zero.
    let least = large.sub(W::splat(if is_binary { 1076.0 } else { 746.0 }));
    let less = Pair::sum_of_any(small.at_least(least), large.neg());
    let less = if is_binary { less.mul(pair(double_double::LN_2)) } else { less };
    let more = log1p_of_power(short_exp(less));
    let more = if is_binary { more.mul(Pair::splat(std::f64::consts::LOG2_E, LOG2_E_LOW)) } else { more };
    let sum = Pair::sum_of_any(large, more.high);
    let value = sum.high.add(sum.low.add(more.low));
    // Near the root the two terms cancel, unless they are subnormal. Of an infinite number the difference may be NaN.
    let limit = more.high.mul_add(W::splat(cancelled), W::splat(-f64::MIN_POSITIVE * cancelled));
    let [value] = W::replace_where(is_less_or_nan(value.abs(), limit), [value], NearRoot { large, small, is_binary });
    value
}

/// The exponential function of a number from -746 to 0, to 60 bits.
#[inline(always)]
fn short_exp<W: Wide>(x: Pair<W>) -> Pair<W> {
    let (k, r, c) = exp_argument(x.high, x.low);
    let square = r.mul(r);
    // The series from the cube on, minimax (Remez, in 300 bits) by the error of the power: 2^-63 of it.
    let even = [
        0.166_666_666_666_666_77,
        0.008_333_333_333_320_253,
        0.000_198_412_698_897_486,
        2.755_724_055_764_731e-6,
        2.511_029_281_129_036e-8,
    ];
    let odd = [
        0.041_666_666_666_666_42,
        0.001_388_888_888_903_227_7,
        2.480_158_702_128_940_5e-5,
        2.755_753_364_309_693e-7,
        2.083_533_064_746_552e-9,
    ];
    let tail = r.mul(square).mul_add(polynomial_by_squares(r, even, odd), r.mul_add(c, c));
    let half = W::splat(0.5);
    let tail = r.mul_add(r, square.neg()).mul_add(half, tail);
    let first = Pair::sum(W::one(), r);
    let second = Pair::sum(first.high, square.mul(half));
    let power = Pair::sum(second.high, second.low.add(first.low).add(tail));
    Pair { high: power.high.scaled(k), low: power.low.scaled(k) }
}

/// The logarithm of `1 + x`, for `x` from 0 to 1, to 59 bits.
#[inline(always)]
fn log1p_of_power<W: Wide>(x: Pair<W>) -> Pair<W> {
    // That of `(1 + x) / 2`, beyond the root of two: 2 atanh(s) with s = (x - 1) / (x + 3), elsewhere x / (x + 2).
    let halved = W::splat(std::f64::consts::SQRT_2 - 1.0).lt(x.high);
    let of_halved = |yes: f64, no: f64| W::select(halved, W::splat(yes), W::splat(no));
    let above = Pair::sum(of_halved(-1.0, 0.0), x.high);
    let below = Pair::sum(of_halved(3.0, 2.0), x.high);
    let above = Pair { high: above.high, low: above.low.add(x.low) }.twice();
    let twice = above.div(Pair { high: below.high, low: below.low.add(x.low) });
    let s = twice.high.mul(W::splat(0.5));
    let z = s.mul(s);
    let rest = s.mul(z.mul(log_series(z)));
    let sum = Pair::sum(of_halved(double_double::LN_2.hi, 0.0), twice.high);
    let low = of_halved(double_double::LN_2.lo, 0.0).add(twice.low).add(rest);
    Pair { high: sum.high, low: sum.low.add(low) }
}

/// The same to twice as many bits.
struct NearRoot<W> {
    large: W,
    small: W,
    is_binary: bool,
}

impl<W: Wide> Rare<W, 1> for NearRoot<W> {
    #[inline(always)]
    fn compute(self) -> [W; 1] {
        let mut value = self.large;
        // SAFETY: this is compiled for the instruction set of `W`, as what it calls; `value` outlives the call.
        unsafe { W::Set::address::<ByAddress, _>()((self, &raw mut value)) };
        [value]
    }
}

/// Called by its address: in the loops, which are many, this would be most of the machine code.
struct ByAddress;

impl<W: Wide> Body<(NearRoot<W>, *mut W)> for ByAddress {
    #[inline(always)]
    fn call<S: Simd>((NearRoot { large, small, is_binary }, to): (NearRoot<W>, *mut W)) {
        let less = Pair::sum_of_any(small, large.neg());
        let ln2 = pair(double_double::LN_2);
        let less = if is_binary { less.times(ln2) } else { less };
        let log = log1p_pair(exp_pair(less));
        let log = if is_binary { log.over(ln2) } else { log };
        let of_equal = if is_binary { Pair::splat(1.0, 0.0) } else { ln2 };
        let log = Pair::select(large.eq(small), of_equal, log);
        let value = log.plus(Pair { high: large, low: W::zero() }).rounded();
        let value = W::select(large.abs().lt(W::splat(f64::INFINITY)), value, large);
        // SAFETY: `compute` passes the address of a variable.
        unsafe { *to = W::select(small.ne(small), small, value) };
    }
}

#[inline(always)]
fn pair<W: Wide>(x: Double) -> Pair<W> {
    Pair::splat(x.hi, x.lo)
}

/// The polynomial of these coefficients, of which the later ones need no lower half, and only the first one needs all bits: `x` is small.
#[inline(always)]
fn series<W: Wide>(x: Pair<W>, first: Double, head: &[Double], tail: &[Double]) -> Pair<W> {
    let last = tail.iter().rev().fold(W::zero(), |sum, c| sum.mul_add(x.high, W::splat(c.hi)));
    let last = Pair { high: last, low: W::zero() };
    let sum = head.iter().rev().fold(last, |sum, c| pair(*c).add(sum.mul(x)));
    sum.times(x).plus(pair(first))
}

/// The exponential function of a number from -708 to 0.
#[inline(always)]
fn exp_pair<W: Wide>(x: Pair<W>) -> Pair<W> {
    let round = W::splat(ROUND);
    let k = x.high.mul_add(W::splat(std::f64::consts::LOG2_E), round).sub(round);
    let whole = pair::<W>(double_double::LN_2).times(Pair { high: k.neg(), low: W::zero() });
    let rest = x.plus(whole);
    let sixteenth = W::splat(1.0 / 16.0);
    let rest = Pair { high: rest.high.mul(sixteenth), low: rest.low.mul(sixteenth) };
    let (head, tail) = double_double::FACTORIALS.split_at(8);
    let mut less_one = rest.times(series(rest, head[0], &head[1..], tail));
    for _ in 0..4 {
        less_one = less_one.times(less_one.plus(Pair::splat(2.0, 0.0)));
    }
    let power = less_one.plus(Pair::splat(1.0, 0.0));
    let scale = power_of_two(k);
    Pair { high: power.high.mul(scale), low: power.low.mul(scale) }
}

/// The logarithm of `1 + x`, for `x` from 0 to 1.
#[inline(always)]
fn log1p_pair<W: Wide>(x: Pair<W>) -> Pair<W> {
    // That of `(1 + x) / 2`, beyond the root of two.
    let halved = W::splat(0.414).lt(x.high);
    let (zero, ln2) = (Pair::splat(0.0, 0.0), pair(double_double::LN_2));
    let above = Pair::select(halved, x.plus(Pair::splat(-1.0, 0.0)), x);
    let below = x.plus(Pair::select(halved, Pair::splat(3.0, 0.0), Pair::splat(2.0, 0.0)));
    let s = above.over(below);
    let (head, tail) = double_double::ODD.split_at(11);
    let log = s.twice().times(series(s.times(s), head[0], &head[1..], tail));
    log.plus(Pair::select(halved, ln2, zero))
}
