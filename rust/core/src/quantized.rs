//! Numbers as codes of eight bits, with one scale for each block of [`BLOCK`]: an optimizer's moments in a quarter of the
//! memory.
//!
//! A block's scale `s` is its largest magnitude. A number `x` has the code `sign(x) * round(L * r(|x| / s))`, and a code `c`
//! stands for `sign(c) * s * r^-1(|c| / L)`, where `L` is 127 for signed codes (int8) and 255 for unsigned ones (uint8, for
//! numbers that are not negative), and `r` is the fourth root, interpolated linearly between the powers of two:
//! `bits(r(y)) = (bits(y) + 3 * bits(1)) / 4`. So neither way takes a root, a table or a branch, and a power of two has `L / 4`
//! codes for each of the top four, half as many for each of the next four, and so on.
//!
//! What holds, where `s` is finite:
//!
//! * The largest of a block is exact, up to the rounding of `f32`, and so is zero.
//! * The error of `x` is at most `|x| * 4 / L` down to `s / 16`, twice that (relatively) down to `s / 256`, and so on; where the
//!   code is 0 (below about `s * 2^-30` signed) at most that. `r` is within 6.3 % above the fourth root.
//! * A positive number of an unsigned block never becomes zero: the smallest code stands for `s * 2^-32`, and is never zero.
//! * Coding what was decoded gives the same codes and scale.
//!
//! A block that holds NaN or an infinity is NaN as a whole: its scale says so.

/// Numbers that share a scale.
pub const BLOCK: usize = 256;

/// One block of numbers.
pub type Numbers = [f32; BLOCK];

const ONE: u32 = 0x3f80_0000;
const INFINITY: u32 = 0x7f80_0000;
/// The least magnitude whose reciprocal is finite.
const LEAST: f32 = f32::MIN_POSITIVE;
/// Adding it to a small number rounds that to a whole one, which the lowest bits then are.
const WHOLE: f32 = 8_388_608.0;

/// How codes are signed: what differs between the two kinds.
trait Sign {
    /// The greatest code.
    const LEVELS: f32;
    fn magnitude(code: u8) -> u32;
    /// The sign of a code, in the place of that of `f32`.
    fn sign(code: u8) -> u32;
    fn code(magnitude: u32, value: f32) -> u8;
}

/// Codes from -127 to 127.
struct Signed;

/// Codes from 0 to 255.
struct Unsigned;

impl Sign for Signed {
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

impl Sign for Unsigned {
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
        let least = if value > 0.0 { 1 } else { 0 };
        let positive = if magnitude > least { magnitude } else { least };
        (if value < 0.0 { 0 } else { positive }) as u8
    }
}

/// The numbers that codes stand for; signed codes are two's complement.
#[inline(always)]
pub fn decode(codes: &[u8; BLOCK], scale: f32, signed: bool, to: &mut Numbers) {
    if signed { decode_as::<Signed>(codes, scale, to) } else { decode_as::<Unsigned>(codes, scale, to) }
}

/// The codes of numbers, and their scale. Unsigned codes of negative numbers are zero.
#[inline(always)]
pub fn encode(from: &Numbers, signed: bool, codes: &mut [u8; BLOCK]) -> f32 {
    if signed { encode_as::<Signed>(from, codes) } else { encode_as::<Unsigned>(from, codes) }
}

#[inline(always)]
#[allow(clippy::cast_precision_loss, reason = "codes are small")]
fn decode_as<S: Sign>(codes: &[u8; BLOCK], scale: f32, to: &mut Numbers) {
    for (number, code) in to.iter_mut().zip(codes) {
        let magnitude = S::magnitude(*code);
        let root = magnitude as f32 * (1.0 / S::LEVELS);
        let share = root.to_bits().wrapping_sub(ONE / 4 * 3) << 2;
        let value = f32::from_bits(if magnitude == 0 { 0 } else { share }) * scale;
        // What is not zero becomes the least positive number rather than zero.
        let bits = value.to_bits().max(magnitude.min(1));
        *number = f32::from_bits(bits | S::sign(*code));
    }
}

#[inline(always)]
fn encode_as<S: Sign>(from: &Numbers, codes: &mut [u8; BLOCK]) -> f32 {
    let largest = from.iter().map(|number| number.abs().to_bits()).fold(0, u32::max);
    let scale = f32::from_bits(if largest < INFINITY { largest } else { f32::NAN.to_bits() });
    let up = if largest < INFINITY { 1.0 / if scale < LEAST { LEAST } else { scale } } else { 0.0 };
    for (code, number) in codes.iter_mut().zip(from) {
        let share = number.abs() * up;
        let root = f32::from_bits((share.to_bits() >> 2).wrapping_add(ONE / 4 * 3)) * S::LEVELS;
        let whole = (if root < S::LEVELS { root } else { S::LEVELS }) + WHOLE;
        *code = S::code(whole.to_bits() & 0xff, *number);
    }
    scale
}
