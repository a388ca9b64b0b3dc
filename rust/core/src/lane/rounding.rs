//! Numbers rounded to those that a smaller type has, without leaving their own.

use super::{Lane, Wide};
use crate::op::Unary;

/// What a type of floating-point numbers can hold.
#[derive(Clone, Copy)]
struct Format {
    /// 2^(1 - significant bits): the spacing of the numbers from 1 on.
    spacing: f64,
    /// The spacing of the subnormal numbers.
    least: f64,
    largest: f64,
}

const BFLOAT16: Format = Format { spacing: 1.0 / 128.0, least: power_of_two(-133), largest: 255.0 * power_of_two(120) };
const FLOAT16: Format = Format { spacing: 1.0 / 1024.0, least: power_of_two(-24), largest: 65504.0 };

const fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits((1023 + exponent).cast_unsigned() << 52)
}

/// The nearest number of bfloat16; of two, the even one.
#[inline(always)]
pub fn to_bfloat16<L: Lane>(a: L) -> L {
    a.wide(BFLOAT16)
}

/// The nearest number of float16; of two, the even one.
#[inline(always)]
pub fn to_float16<L: Lane>(a: L) -> L {
    a.wide(FLOAT16)
}

const SIGN: u64 = 1 << 63;
const EXPONENT: u64 = 0x7ff << 52;
/// 1.5 * 2^52: added to a smaller number, it leaves the nearest whole number, of two the even one.
const WHOLE: f64 = 6_755_399_441_055_744.0;

impl<W: Wide> Unary<W> for Format {
    #[inline(always)]
    fn call(self, a: W) -> W {
        let (bits, magnitude, infinity) = (a.to_bits(), a.abs(), W::splat(f64::INFINITY));
        // What is far too large would overflow here.
        let beyond = W::splat(2.0 * self.largest);
        let size = W::select(beyond.lt(magnitude), beyond, magnitude);
        let power = W::from_bits(W::bits_and(size.to_bits(), W::bits(EXPONENT)));
        let (spacing, least) = (power.mul(W::splat(self.spacing)), W::splat(self.least));
        let whole = W::select(spacing.lt(least), least, spacing).mul(W::splat(WHOLE));
        let near = size.add(whole).sub(whole);
        let near = W::select(W::splat(self.largest).lt(near), infinity, near);
        let near = W::select(magnitude.lt(infinity), near, magnitude);
        W::from_bits(W::bits_or(near.to_bits(), W::bits_and(bits, W::bits(SIGN))))
    }
}
