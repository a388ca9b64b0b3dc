//! Arrays of a leaf in memory: how they are read and written.

use std::fmt::Write;

use super::source::Layout;
use crate::array::dtype::Dtype;
use crate::array::quantized::Codec;

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
    Codes(Codec),
}

impl Stored {
    /// `None` of a dtype that kernels do not take; codes are of the kind `codec`.
    pub const fn of(dtype: Dtype, codec: Codec) -> Option<Self> {
        Some(match dtype {
            Dtype::F16 => Self::Float16,
            Dtype::BF16 => Self::Bfloat16,
            Dtype::F32 => Self::Float32,
            Dtype::F64 => Self::Float64,
            Dtype::U8 => Self::Codes(codec),
            Dtype::Bool | Dtype::U16 | Dtype::U32 | Dtype::U64 | Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64 => {
                return None;
            }
        })
    }

    /// Bytes of an element; of codes, those of a whole one.
    pub const fn size(self) -> usize {
        match self {
            Self::Codes(_) => 1,
            Self::Float16 | Self::Bfloat16 => 2,
            Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }

    /// The type of the text that reads and writes elements.
    const fn name(self) -> &'static str {
        match self {
            Self::Codes(_) => "ox_u8",
            Self::Float16 => "OxF16",
            Self::Bfloat16 => "OxBF16",
            Self::Float32 => "OxF32",
            Self::Float64 => "OxF64",
        }
    }

    /// The text of the distance of elements in bytes.
    fn distance(self, elements: &str) -> String {
        match self {
            Self::Codes(Codec::Four) => format!("{elements} / 2"),
            _ => format!("{elements} * {}", self.size()),
        }
    }
}

impl Layout<'_> {
    /// An array of a leaf, of a dtype that was checked.
    pub(super) fn array(&self, number: usize) -> Array {
        let dtype = Stored::of(self.dtypes[number], self.codec).unwrap_or(Stored::Float32);
        let is_rounded = self.stochastic && number > 0 && self.dtypes[number].is_half();
        let rounding = u32::try_from(number).ok().filter(|_| is_rounded).map(|number| number - 1);
        let scales = self.dtypes[..number].iter().filter(|dtype| **dtype == Dtype::U8).count();
        Array { number, dtype, rounding, scales }
    }
}

impl Array {
    pub fn is_codes(&self) -> bool {
        self.codec().is_some()
    }

    /// The kind of codes that its elements are, if they are.
    fn codec(&self) -> Option<Codec> {
        if let Stored::Codes(codec) = self.dtype { Some(codec) } else { None }
    }

    /// The name of a function of this kind of codes.
    fn coding(&self, name: &str) -> String {
        format!("ox_{name}{}", if self.codec() == Some(Codec::Four) { "_pairs" } else { "" })
    }

    /// The declarations of the addresses of the chunk, and of the scales.
    pub fn pointers(&self) -> String {
        let (number, start, scales) = (self.number, self.dtype.distance("start"), self.scales);
        let array = format!("leaf.arrays[{number}]");
        let mut text = format!("    OX_GLOBAL({array})\n    char *const a{number} = (char *){array} + {start};\n");
        if self.is_codes() {
            _ = write!(text, "    float *const q{number} = leaf.scales[{scales}];\n    OX_GLOBAL(q{number})\n");
        }
        text
    }

    /// The address of the first element of a thread.
    fn address(&self) -> String {
        format!("a{} + {}", self.number, self.dtype.distance("(ox_u64)first"))
    }

    /// The elements that share a scale.
    fn block(&self) -> usize {
        self.codec().map_or(1, Codec::block)
    }

    /// The address of the scale of the elements of a thread.
    fn scale(&self) -> String {
        format!("q{}[(start + first) / {}]", self.number, self.block())
    }

    /// Reads the elements of a thread.
    pub fn load(&self, name: &str) -> String {
        let address = self.address();
        if self.is_codes() {
            let (function, scale) = (self.coding("decode"), self.scale());
            return format!("{function}({name}, {address}, count ? {scale} : 0.0f, count, wide);");
        }
        format!("ox_load<{}>({name}, {address}, count, wide);", self.dtype.name())
    }

    /// Writes the elements of a thread; of codes, keeps the numbers until all threads have theirs.
    pub fn store(&self, output: u16) -> String {
        if self.is_codes() {
            return format!(
                "ox_keep(OX_OWN(c{output}), out{output}, count);\n            largest{output}[threadIdx.x] = \
                 {}(OX_OWN(c{output}), count);",
                self.coding("largest")
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

    /// Writes the codes of a thread, which has `each` elements, and the scale.
    pub fn encode(&self, output: u16, each: usize) -> String {
        let (function, block, threads) = (self.coding("encode"), self.block(), self.block() / each);
        let (address, scale) = (self.address(), self.scale());
        format!(
            "            const float scale{output} =\n                {function}(OX_OWN(c{output}), {address}, largest{output} + \
             (threadIdx.x & ~{}u), count, wide);\n            if (count && first % {block} == 0) {scale} = scale{output};\n",
            threads - 1
        )
    }

    /// The declaration of the stream of random numbers by which elements are rounded, if they are.
    pub fn stream(&self) -> String {
        self.rounding.map_or_else(String::new, |number| {
            format!("    const OxStream r{} = ox_stream(key, {:#x}u, start);\n", self.number, u32::MAX - number / 2)
        })
    }
}
