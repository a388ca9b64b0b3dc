//! The dtypes of elements in memory, and their conversion to and from the types that kernels compute in.

use std::ffi::c_int;

use crate::array::half::{Bfloat16, Float16, Half, narrowed};

macro_rules! dtypes {
    ($($variant:ident $name:literal $t:ty, $bytes:literal, $dlpack:literal, $xla:literal;)*) => {
        /// The type of the elements of a buffer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "a row of the table says it")]
        pub enum Dtype { $($variant),* }

        impl Dtype {
            /// Every dtype, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The Array API standard's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Bytes of an element.
            #[must_use]
            pub const fn size(self) -> usize {
                match self { $(Self::$variant => $bytes),* }
            }

            /// `DLPack`'s code of the kind of numbers, and the bits of one.
            #[must_use]
            pub const fn to_dlpack(self) -> (u8, u8) {
                match self { $(Self::$variant => ($dlpack, 8 * $bytes)),* }
            }

            /// The dtype of `DLPack`'s code and bits; `None` if kernels do not read it.
            #[must_use]
            pub const fn from_dlpack(code: u8, bits: u8) -> Option<Self> {
                match (code, bits % 8, bits / 8) {
                    $(($dlpack, 0, $bytes) => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The dtype of XLA's number; `None` if kernels do not read it.
            pub(crate) const fn from_xla(number: c_int) -> Option<Self> {
                match number {
                    $($xla => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Calls `visitor` with the Rust type of the elements.
            pub(crate) fn visit<V: DtypeVisitor>(self, visitor: V) -> V::Output {
                match self { $(Self::$variant => visitor.visit::<$t>()),* }
            }
        }
    };
}

dtypes! {
    // variant, name, type, bytes, the code of DLPack and the number of XLA
    Bool "bool"     Truth,    1, 6, 1;
    U8   "uint8"    u8,       1, 1, 6;
    U16  "uint16"   u16,      2, 1, 7;
    U32  "uint32"   u32,      4, 1, 8;
    U64  "uint64"   u64,      8, 1, 9;
    I8   "int8"     i8,       1, 0, 2;
    I16  "int16"    i16,      2, 0, 3;
    I32  "int32"    i32,      4, 0, 4;
    I64  "int64"    i64,      8, 0, 5;
    F16  "float16"  Float16,  2, 2, 10;
    BF16 "bfloat16" Bfloat16, 2, 4, 16;
    F32  "float32"  f32,      4, 2, 11;
    F64  "float64"  f64,      8, 2, 12;
}

impl Dtype {
    /// Whether kernels compute in this type.
    #[must_use]
    pub const fn computes(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// The type in which kernels compute: `F64` for `F64`, `F32` for all others.
    #[must_use]
    pub const fn computed_in(self) -> Self {
        if matches!(self, Self::F64) { Self::F64 } else { Self::F32 }
    }

    /// Whether kernels write it: floating point of any size.
    #[must_use]
    pub const fn is_floating(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// Whether it has two bytes, so that kernels compute in `F32` and round.
    #[must_use]
    pub const fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::BF16)
    }
}

/// A byte that is a truth value: any byte is valid, all but zero are true.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Truth(u8);

/// A function generic over the Rust type of a dtype.
pub(crate) trait DtypeVisitor {
    type Output;
    fn visit<T: Stored>(self) -> Self::Output;
}

/// The type of an element in foreign memory. Every bit pattern is valid.
pub(crate) trait Stored: Copy {
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn from_f32(value: f32) -> Self;
    fn from_f64(value: f64) -> Self;
}

macro_rules! stored {
    ($($t:ty)*) => {$(
        #[allow(
            clippy::cast_lossless, clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss,
            reason = "rounding to the element is the point"
        )]
        impl Stored for $t {
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn from_f32(value: f32) -> Self { value as $t }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value as $t }
        }
    )*};
}

stored!(u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

macro_rules! stored_halves {
    ($($t:ty)*) => {$(
        impl Stored for $t {
            #[inline(always)]
            fn to_f32(self) -> f32 { Half::to_f32(self) }
            #[inline(always)]
            fn to_f64(self) -> f64 { f64::from(Half::to_f32(self)) }
            #[inline(always)]
            fn from_f32(value: f32) -> Self { Half::nearest(value) }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { Half::nearest(narrowed(value)) }
        }
    )*};
}

stored_halves!(Float16 Bfloat16);

impl Stored for Truth {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from(u8::from(self.0 != 0))
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self.0 != 0))
    }
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Self(u8::from(value != 0.0))
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        Self(u8::from(value != 0.0))
    }
}
