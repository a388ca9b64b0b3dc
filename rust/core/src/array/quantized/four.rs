//! Codes of four bits, with a scale for each block of [`BLOCK`] numbers: the codes of Li, Chen and Zhu 2023
//! (arXiv:2309.01507), as the optimizers of torchao have them.
//!
//! The magnitude `s` of a block's scale is its largest magnitude, and no less than 2^-116. Where all numbers are positive,
//! the scale is `-s`, and the code of `x` is that of the number of [`UNSIGNED`] nearest to `x / s`: sixteenths, without
//! zero, by whose root a step would divide. Elsewhere the scale is `s`, and the code is that of the nearest number of
//! [`SIGNED`]: a dynamic exponent, with zero and one, and without minus one. Between two numbers, the greater is the
//! nearest. Where no number is negative, but some are zero, a positive number has the code of a positive one.
//!
//! Two codes have a byte, the first in its upper half. A half without a number is zero.
//!
//! Properties, where the numbers are finite:
//!
//! * Zero is exact, and so is a positive number of magnitude `s`; the number `-s` becomes `-0.8875 s`.
//! * The error is at most `s / 16` in a block of positive numbers (`s / 32` from `s / 32` on), and at most `0.1125 s` in
//!   others.
//! * In a block without negative numbers a positive one never becomes zero.
//!
//! torchao fixes the map of a slot: a second moment is unsigned where some of its numbers are zero, which become `s / 16`,
//! and a first moment signed where all of its numbers are positive. Its least scale is 1e-12, which is more than many second
//! moments are.

use super::codec::{Codec, Coding, INFINITY, LEAST, SIGN};

/// Numbers that share a scale.
pub const BLOCK: usize = Codec::Four.block();

/// Bytes of a block of codes.
pub const BYTES: usize = BLOCK / 2;

/// One block of numbers.
pub type Numbers = [f32; BLOCK];

/// One block of codes.
pub type Codes = [u8; BYTES];

/// The shares of a scale that the codes from 0 to 15 have in a block with numbers that are negative or zero: 0.2125 and
/// 0.0325 as torchao rounds them.
pub const SIGNED: [f32; 16] = [
    -0.8875,
    -0.6625,
    -0.4375,
    -0.212_499_99,
    -0.0775,
    -0.032_500_003,
    -0.0055,
    0.0,
    0.0055,
    0.032_500_003,
    0.0775,
    0.212_499_99,
    0.4375,
    0.6625,
    0.8875,
    1.0,
];

/// The shares of a scale that the codes from 0 to 15 have in a block of positive numbers.
pub const UNSIGNED: [f32; 16] =
    [0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375, 0.5, 0.5625, 0.625, 0.6875, 0.75, 0.8125, 0.875, 0.9375, 1.0];

/// The code of zero, and of the least positive number, among `SIGNED`.
const ZERO: u8 = 7;

const OF_SIGNED: Map = Map::of(&SIGNED);
const OF_UNSIGNED: Map = Map::of(&UNSIGNED);

/// A map in the forms by which it is read.
struct Map {
    /// The two shares of each byte.
    pairs: [[f32; 2]; 256],
    /// The least shares that have the codes from 1 to 15.
    least: [f32; 15],
}

impl Map {
    const fn of(shares: &[f32; 16]) -> Self {
        let mut pairs = [[0.0; 2]; 256];
        let mut byte = 0;
        while byte < 256 {
            pairs[byte] = [shares[byte >> 4], shares[byte & 15]];
            byte += 1;
        }
        let mut least = [0.0; 15];
        let mut code = 0;
        while code < 15 {
            least[code] = middle(shares[code], shares[code + 1]);
            code += 1;
        }
        Self { pairs, least }
    }
}

/// The least number that is nearer to `above` than to `below`, or as near: by differences of `f32`, as torchao has them.
const fn middle(below: f32, above: f32) -> f32 {
    let half = (above - below) * 0.5;
    let mut found = below + half;
    while found - below >= half {
        found = found.next_down();
    }
    while found - below < half {
        found = found.next_up();
    }
    found
}

/// Codes of four bits, two a byte.
#[derive(Clone, Copy, Debug)]
pub struct Four;

impl Coding<BLOCK, BYTES> for Four {
    const CODEC: Codec = Codec::Four;

    #[inline(always)]
    fn decode(codes: &Codes, scale: f32, to: &mut Numbers) {
        let map = if scale.is_sign_negative() { &OF_UNSIGNED } else { &OF_SIGNED };
        for (pair, byte) in to.as_chunks_mut::<2>().0.iter_mut().zip(codes) {
            *pair = map.pairs[usize::from(*byte)];
        }
        for number in to {
            *number *= scale.abs();
        }
    }

    #[inline(always)]
    fn encode(from: &Numbers, codes: &mut Codes) -> f32 {
        let (mut largest, mut any, mut smallest) = (0, 0, SIGN);
        for bits in from.iter().map(|number| number.to_bits()) {
            largest = largest.max(bits & !SIGN);
            smallest = smallest.min(bits & !SIGN);
            any = any.max(bits);
        }
        if largest >= INFINITY {
            codes.fill(u8::MAX);
            return f32::NAN;
        }
        let scale = f32::from_bits(largest.max(LEAST));
        // The bits of negative numbers are beyond those of minus zero.
        if any > SIGN {
            encode_by(from, scale, &OF_SIGNED, 0, codes);
            scale
        } else if smallest == 0 {
            encode_by(from, scale, &OF_SIGNED, ZERO + 1, codes);
            scale
        } else {
            encode_by(from, scale, &OF_UNSIGNED, 0, codes);
            -scale
        }
    }
}

/// Encodes numbers, of which positive ones have at least the code `least`.
#[inline(always)]
fn encode_by(from: &Numbers, scale: f32, map: &Map, least: u8, codes: &mut Codes) {
    let mut single = [0u32; BLOCK];
    for (code, number) in single.iter_mut().zip(from) {
        let share = *number / scale;
        *code = map.least.iter().map(|least| u32::from(share >= *least)).sum();
        *code = (*code).max(u32::from(*number > 0.0) * u32::from(least));
    }
    #[allow(clippy::cast_possible_truncation, reason = "a code has four bits")]
    for (byte, [upper, lower]) in codes.iter_mut().zip(single.as_chunks::<2>().0) {
        *byte = (upper << 4 | lower) as u8;
    }
}

/// The codes of numbers that are zero.
pub const ZEROS: u8 = ZERO * 0x11;
