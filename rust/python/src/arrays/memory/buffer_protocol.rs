//! Python's buffer protocol: the memory of objects that are neither NumPy arrays nor export `DLPack`.

use oxigrad_core::array::buffer::Dtype;
use oxigrad_core::array::view::ArrayView;
use pyo3::buffer::PyUntypedBuffer;

/// The array that an export describes.
pub fn view(export: &PyUntypedBuffer) -> ArrayView {
    ArrayView {
        pointer: export.buf_ptr().cast(),
        extents: export.shape().into(),
        strides: export.strides().into(),
        dtype: dtype(export),
        writable: !export.readonly(),
    }
}

/// The dtype of a format of the module `struct`; `None` if kernels cannot read it, as in another byte order.
fn dtype(export: &PyUntypedBuffer) -> Option<Dtype> {
    let native = if cfg!(target_endian = "little") { b'<' } else { b'>' };
    let letter = match export.format().to_bytes() {
        [letter] => *letter,
        [order, letter] if matches!(order, b'@' | b'=') || *order == native => *letter,
        _ => return None,
    };
    Some(match (letter, export.item_size()) {
        (b'e', 2) => Dtype::F16,
        (b'f', 4) => Dtype::F32,
        (b'd', 8) => Dtype::F64,
        (b'?', 1) => Dtype::Bool,
        (b'b', 1) => Dtype::I8,
        (b'B', 1) => Dtype::U8,
        (b'h', 2) => Dtype::I16,
        (b'H', 2) => Dtype::U16,
        (b'i' | b'l' | b'q', 4) => Dtype::I32,
        (b'I' | b'L' | b'Q', 4) => Dtype::U32,
        (b'i' | b'l' | b'q', 8) => Dtype::I64,
        (b'I' | b'L' | b'Q', 8) => Dtype::U64,
        _ => return None,
    })
}
