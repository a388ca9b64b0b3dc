//! Arrays of a leaf in memory: how they are read and written.

use std::fmt::Write;

use super::source::Layout;
use crate::array::dtype::Dtype;

/// An array of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Array {
    /// Its number: 0 for the gradient, 1 for the parameter, then slots.
    pub number: usize,
    pub dtype: Stored,
    /// The number by which its stochastic rounding draws.
    pub rounding: Option<u32>,
    /// Its number among arrays that are codes.
    scales: usize,
}

/// A dtype in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stored {
    Float16,
    Bfloat16,
    Float32,
    Float64,
    Codes,
}

impl Stored {
    /// `None` of a dtype that kernels do not take.
    pub const fn of(dtype: Dtype) -> Option<Self> {
        Some(match dtype {
            Dtype::F16 => Self::Float16,
            Dtype::BF16 => Self::Bfloat16,
            Dtype::F32 => Self::Float32,
            Dtype::F64 => Self::Float64,
            Dtype::U8 => Self::Codes,
            Dtype::Bool | Dtype::U16 | Dtype::U32 | Dtype::U64 | Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64 => {
                return None;
            }
        })
    }

    /// Bytes of an element.
    pub const fn size(self) -> usize {
        match self {
            Self::Codes => 1,
            Self::Float16 | Self::Bfloat16 => 2,
            Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }

    /// The type of the text that reads and writes elements.
    const fn name(self) -> &'static str {
        match self {
            Self::Codes => "ox_u8",
            Self::Float16 => "OxF16",
            Self::Bfloat16 => "OxBF16",
            Self::Float32 => "OxF32",
            Self::Float64 => "OxF64",
        }
    }
}

impl Layout<'_> {
    /// An array of a leaf, of a dtype that was checked.
    pub(super) fn array(&self, number: usize) -> Array {
        let dtype = Stored::of(self.dtypes[number]).unwrap_or(Stored::Float32);
        let is_rounded = self.stochastic && number > 0 && self.dtypes[number].is_half();
        let rounding = u32::try_from(number).ok().filter(|_| is_rounded).map(|number| number - 1);
        let scales = self.dtypes[..number].iter().filter(|dtype| **dtype == Dtype::U8).count();
        Array { number, dtype, rounding, scales }
    }
}

impl Array {
    pub fn is_codes(&self) -> bool {
        self.dtype == Stored::Codes
    }

    /// The declarations of the addresses of the chunk, and of the scales.
    pub fn pointers(&self) -> String {
        let (number, size, scales) = (self.number, self.dtype.size(), self.scales);
        let array = format!("leaf.arrays[{number}]");
        let mut text =
            format!("    OX_GLOBAL({array})\n    char *const a{number} = (char *){array} + start * {size};\n");
        if self.is_codes() {
            _ = write!(text, "    float *const q{number} = leaf.scales[{scales}];\n    OX_GLOBAL(q{number})\n");
        }
        text
    }

    /// The address of the first element of a thread.
    fn address(&self) -> String {
        format!("a{} + (ox_u64)first * {}", self.number, self.dtype.size())
    }

    /// The address of the scale of the elements of a thread.
    fn scale(&self) -> String {
        format!("q{}[(start + first) / 256]", self.number)
    }

    /// Reads the elements of a thread.
    pub fn load(&self, name: &str) -> String {
        let address = self.address();
        if self.is_codes() {
            return format!("ox_decode({name}, {address}, count ? {} : 0.0f, count, wide);", self.scale());
        }
        format!("ox_load<{}>({name}, {address}, count, wide);", self.dtype.name())
    }

    /// Writes the elements of a thread; of codes, keeps the numbers until all threads have theirs.
    pub fn store(&self, output: u16) -> String {
        if self.is_codes() {
            return format!(
                "ox_keep(OX_OWN(c{output}), out{output}, count);\n            largest{output}[threadIdx.x] = \
                 ox_largest(OX_OWN(c{output}));"
            );
        }
        let (name, address) = (self.dtype.name(), self.address());
        match self.rounding {
            None => format!("ox_store<{name}>(out{output}, {address}, count, wide);"),
            Some(number) => format!(
                "ox_store_random<{name}>(out{output}, {address}, count, wide, r{}, {}, (ox_u32)start + first);",
                self.number,
                number % 2 * 16
            ),
        }
    }

    /// Writes the codes of a thread, and the scale.
    pub fn encode(&self, output: u16) -> String {
        format!(
            "            const float scale{output} =\n                ox_encode(OX_OWN(c{output}), {}, largest{output} + \
             (threadIdx.x & ~15u), count, wide);\n            if (count && first % 256 == 0) {} = scale{output};\n",
            self.address(),
            self.scale()
        )
    }

    /// The declaration of the stream of random numbers by which elements are rounded, if they are.
    pub fn stream(&self) -> String {
        self.rounding.map_or_else(String::new, |number| {
            format!("    const OxStream r{} = ox_stream(key, {:#x}u, start);\n", self.number, u32::MAX - number / 2)
        })
    }
}
