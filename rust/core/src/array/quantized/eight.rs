//! Codes of eight bits, with a scale for each block of [`BLOCK`] numbers.
//!
//! The magnitude `s` of a block's scale is its largest magnitude, and no less than 2^-116. Where no number is negative,
//! the scale is `-s` and a number `x` has the code `round(255 r(x / s))`, but 1 at least if `x` is positive; elsewhere
//! the scale is `s`, and the code (as `i8`) `sign(x) round(127 r(|x| / s))`. Here `r` is the fourth root, interpolated
//! linearly between the powers of two: `bits(r(y)) = (bits(y) + 3 bits(1)) / 4`. So neither way takes a root or a
//! table. A power of two has an eighth of the levels `L` (255 or 127) for each of the top four, half as many for each
//! of the next four, and so on: most digits where most of the information is, but a range wide enough for what a few
//! large numbers would hide otherwise.
//!
//! Properties, where the numbers are finite:
//!
//! * Zero is exact, and so is a number of magnitude `s`.
//! * The error of `x` is at most `4 |x| / L` down to `s / 16`, at most twice that down to `s / 256`, and so on down to
//!   `2^-20 s`; below, it is at most `2^-20 s`. `r` is at most 6.3 % above the fourth root.
//! * In a block without negative numbers a positive one never becomes zero. In another, one below `2^-32 s` does.
//! * Coding what was decoded gives the same codes and the same scale.

use super::codec::{Codec, Coding, INFINITY, LEAST, SIGN};

/// Numbers that share a scale.
pub const BLOCK: usize = Codec::Eight.block();

/// One block of numbers.
pub type Numbers = [f32; BLOCK];

/// One block of codes.
pub type Codes = [u8; BLOCK];

const ONE: u32 = 0x3f80_0000;
/// Added to a small number, it rounds that to an integer in the lowest bits.
const WHOLE: f32 = 8_388_608.0;

/// The parameters of a code: with a sign, or without.
trait Signedness {
    /// The greatest code.
    const LEVELS: f32;
    fn magnitude(code: u8) -> u32;
    /// The sign of a code, in the place of that of `f32`.
    fn sign(code: u8) -> u32;
    fn code(magnitude: u32, value: f32) -> u8;
}

struct Signed;

struct Unsigned;

impl Signedness for Signed {
    const LEVELS: f32 = 127.0;

    #[inline(always)]
    fn magnitude(code: u8) -> u32 {
        u32::from(code.cast_signed().unsigned_abs())
    }

    #[inline(always)]
    fn sign(code: u8) -> u32 {
        u32::from(code & 0x80) << 24
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "a code has eight bits")]
    fn code(magnitude: u32, value: f32) -> u8 {
        let minus = (value.to_bits().cast_signed() >> 31).cast_unsigned();
        (magnitude ^ minus).wrapping_sub(minus) as u8
    }
}

impl Signedness for Unsigned {
    const LEVELS: f32 = 255.0;

    #[inline(always)]
    fn magnitude(code: u8) -> u32 {
        u32::from(code)
    }

    #[inline(always)]
    fn sign(_: u8) -> u32 {
        0
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "a code has eight bits")]
    fn code(magnitude: u32, value: f32) -> u8 {
        // Of the numbers that are not negative, only the zeros have no bit set beside the sign.
        magnitude.max((value.to_bits() << 1).min(1)) as u8
    }
}

/// Codes of eight bits, one a byte.
#[derive(Clone, Copy, Debug)]
pub struct Eight;

impl Coding<BLOCK, BLOCK> for Eight {
    const CODEC: Codec = Codec::Eight;

    #[inline(always)]
    fn decode(codes: &Codes, scale: f32, to: &mut Numbers) {
        if scale.is_sign_negative() {
            decode_as::<Unsigned>(codes, -scale, to);
        } else {
            decode_as::<Signed>(codes, scale, to);
        }
    }

    #[inline(always)]
    fn encode(from: &Numbers, codes: &mut Codes) -> f32 {
        let (mut largest, mut any) = (0, 0);
        for bits in from.iter().map(|number| number.to_bits()) {
            largest = largest.max(bits & !SIGN);
            any = any.max(bits);
        }
        if largest >= INFINITY {
            codes.fill(u8::MAX);
            return f32::NAN;
        }
        let scale = f32::from_bits(largest.max(LEAST));
        // The bits of negative numbers are beyond those of minus zero.
        if any > SIGN {
            encode_as::<Signed>(from, scale, codes);
            scale
        } else {
            encode_as::<Unsigned>(from, scale, codes);
            -scale
        }
    }
}

#[inline(always)]
#[allow(clippy::cast_precision_loss, reason = "codes are small")]
fn decode_as<S: Signedness>(codes: &Codes, scale: f32, to: &mut Numbers) {
    for (number, code) in to.iter_mut().zip(codes) {
        let magnitude = S::magnitude(*code);
        let root = magnitude as f32 * (1.0 / S::LEVELS);
        // Of zero, less than any other code's, come the bits of zero.
        let share = root.to_bits().max(ONE / 4 * 3).wrapping_sub(ONE / 4 * 3) << 2;
        let value = f32::from_bits(share) * scale;
        *number = f32::from_bits(value.to_bits() | S::sign(*code));
    }
}

#[inline(always)]
fn encode_as<S: Signedness>(from: &Numbers, scale: f32, codes: &mut Codes) {
    let up = 1.0 / scale;
    for (code, number) in codes.iter_mut().zip(from) {
        let share = number.abs() * up;
        let root = f32::from_bits((share.to_bits() >> 2).wrapping_add(ONE / 4 * 3)) * S::LEVELS;
        let whole = (if root < S::LEVELS { root } else { S::LEVELS }) + WHOLE;
        *code = S::code(whole.to_bits() & 0xff, *number);
    }
}
