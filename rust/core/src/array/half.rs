//! float16 and bfloat16: kernels convert them to `f32` on reading, and round on writing. The code has no branches, so
//! that compilers vectorize it for any instruction set. Rounding is to nearest, ties to even, with overflow to infinity
//! as in IEEE 754; or stochastic: up with the probability that makes the expected result exact (NaN, infinities and
//! representable numbers are unchanged).

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
/// The bit that is set in a quiet NaN.
const QUIET: u32 = 0x0040_0000;

/// A type of two bytes.
pub trait Half: Copy {
    /// The bits.
    fn to_bits(self) -> u16;
    /// The number of these bits.
    fn from_bits(bits: u16) -> Self;
    /// The number as `f32`, exactly.
    fn to_f32(self) -> f32;
    /// The nearest number of this type.
    fn nearest(value: f32) -> Self;
    /// One of the two neighbours, by sixteen random bits: the upper with the probability of the distance to the lower,
    /// in units of the distance between them; exact, but for subnormal numbers of float16, where it is cut to 2^-16.
    fn stochastic(value: f32, random: u16) -> Self;
}

/// A number of float16 (IEEE 754's binary16): 11 significant bits, from 2^-24 to 65504.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Float16(u16);

/// A number of bfloat16: 8 significant bits, the exponents of `f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bfloat16(u16);

#[inline(always)]
const fn select(condition: bool, yes: u32, no: u32) -> u32 {
    if condition { yes } else { no }
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "takes the halves apart")]
const fn upper(bits: u32) -> u16 {
    (bits >> 16) as u16
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "takes the halves apart")]
const fn lower(bits: u32) -> u16 {
    bits as u16
}

impl Half for Bfloat16 {
    #[inline(always)]
    fn to_bits(self) -> u16 {
        self.0
    }

    #[inline(always)]
    fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    #[inline(always)]
    fn nearest(value: f32) -> Self {
        let bits = value.to_bits();
        let rounded = bits.wrapping_add(0x7fff).wrapping_add((bits >> 16) & 1);
        Self(upper(select(bits & !SIGN > INFINITY, bits | QUIET, rounded)))
    }

    #[inline(always)]
    fn stochastic(value: f32, random: u16) -> Self {
        let bits = value.to_bits();
        let rounded = bits.wrapping_add(u32::from(random));
        Self(upper(select(bits & !SIGN > INFINITY, bits | QUIET, rounded)))
    }
}

/// The least normal number of float16, and its infinity, in the bits of `f32`.
const LEAST_NORMAL: u32 = 113 << 23;
/// Bits of the significand of `f32` beyond those of float16.
const CUT: u32 = 13;
/// From the exponent of `f32` to that of float16.
const REBIAS: u32 = 112 << 23;
const FLOAT16_INFINITY: u32 = 0x7c00;
const FLOAT16_NAN: u32 = 0x7e00;

impl Float16 {
    /// The bits without the sign that `magnitude` (more than the greatest number is infinity) and `value` make.
    #[inline(always)]
    fn signed(value: f32, magnitude: u32) -> Self {
        let bits = value.to_bits();
        let magnitude = select(magnitude > FLOAT16_INFINITY, FLOAT16_INFINITY, magnitude);
        let magnitude = select(bits & !SIGN > INFINITY, FLOAT16_NAN, magnitude);
        Self(upper(bits & SIGN) | lower(magnitude))
    }
}

impl Half for Float16 {
    #[inline(always)]
    fn to_bits(self) -> u16 {
        self.0
    }

    #[inline(always)]
    fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        let magnitude = u32::from(self.0 & 0x7fff) << CUT;
        // As the number of `f32` that it is, it is too small by the difference of the biases, subnormal or not.
        let number = (f32::from_bits(magnitude) * f32::from_bits(239 << 23)).to_bits();
        let number = select(magnitude >= FLOAT16_INFINITY << CUT, magnitude | INFINITY, number);
        f32::from_bits((u32::from(self.0 >> 15) << 31) | number)
    }

    #[inline(always)]
    fn nearest(value: f32) -> Self {
        let bits = value.to_bits() & !SIGN;
        let odd = (bits >> CUT) & 1;
        let normal = bits.wrapping_sub(REBIAS).wrapping_add(0xfff).wrapping_add(odd) >> CUT;
        // One half has the spacing of float16's subnormal numbers: adding it rounds to them.
        let subnormal = (f32::from_bits(bits) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        Self::signed(value, select(bits < LEAST_NORMAL, subnormal, normal))
    }

    #[inline(always)]
    fn stochastic(value: f32, random: u16) -> Self {
        let bits = value.to_bits() & !SIGN;
        let normal = bits.wrapping_sub(REBIAS).wrapping_add(u32::from(random >> 3)) >> CUT;
        // In units of 2^-40, sixteen bits below the last of a subnormal number.
        let (exponent, significand) = (bits >> 23, (bits & 0x007f_ffff) | 0x0080_0000);
        let down = 112u32.wrapping_sub(exponent);
        let units = (significand << 2) >> select(down > 31, 31, down);
        let subnormal = units.wrapping_add(u32::from(random)) >> 16;
        Self::signed(value, select(bits < LEAST_NORMAL, subnormal, normal))
    }
}

/// The number of `f32` from which rounding to a half gives what rounding `value` would: next to it, of odd bits if it
/// is not the same, so that no tie comes about.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "rounding is the point")]
pub fn narrowed(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    if back.abs() > value.abs() {
        f32::from_bits(near.to_bits().wrapping_sub(1) | 1)
    } else if back.abs() < value.abs() {
        f32::from_bits(near.to_bits() | 1)
    } else {
        near
    }
}
