//! Arrays in memory.

use super::Layout;
use crate::array::buffer::Dtype;

/// The name of the type in the prelude that reads and writes elements of a dtype.
pub(super) const fn type_of(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F16 => "OxF16",
        Dtype::BF16 => "OxBF16",
        Dtype::F64 => "OxF64",
        Dtype::U8 => "OxCode",
        _ => "OxF32",
    }
}

/// The elements of a thread: as many as make 16 bytes of the narrowest of these arrays.
pub(super) fn elements(layout: &Layout, arrays: impl Iterator<Item = usize>) -> usize {
    arrays.map(|array| 16 / layout.dtypes[array].size()).max().unwrap_or(1)
}
