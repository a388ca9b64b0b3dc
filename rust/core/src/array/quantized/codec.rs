//! The kinds of codes: how many numbers share a scale, in how many bytes, and how they are coded.

/// Numbers of whole blocks of each kind.
pub const BLOCK: usize = 256;

const _: () = assert!(BLOCK.is_multiple_of(Codec::Eight.block()) && BLOCK.is_multiple_of(Codec::Four.block()));

/// A kind of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Codec {
    /// [`super::Eight`].
    Eight,
    /// [`super::Four`].
    Four,
}

impl Codec {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Eight, Self::Four];

    /// Numbers that share a scale.
    #[must_use]
    pub const fn block(self) -> usize {
        match self {
            Self::Eight => 256,
            Self::Four => 128,
        }
    }

    /// The bytes of the codes of `length` numbers.
    #[must_use]
    pub const fn bytes(self, length: usize) -> usize {
        match self {
            Self::Eight => length,
            Self::Four => length.div_ceil(2),
        }
    }
}

/// Codes of blocks of `N` numbers, which have `B` bytes.
pub trait Coding<const N: usize, const B: usize> {
    /// Their kind.
    const CODEC: Codec;

    /// Decodes codes to numbers.
    fn decode(codes: &[u8; B], scale: f32, to: &mut [f32; N]);

    /// Encodes numbers; returns their scale.
    fn encode(from: &[f32; N], codes: &mut [u8; B]) -> f32;
}

pub(super) const SIGN: u32 = 0x8000_0000;
pub(super) const INFINITY: u32 = 0x7f80_0000;
/// 2^-116, the least scale: the number of no code but that of zero is subnormal, and its reciprocal is finite.
pub(super) const LEAST: u32 = 11 << 23;
