//! Arrays in host memory: a description of the memory, and its owner.
//!
//! NumPy's own arrays are read from their fields, arrays of other libraries by `DLPack`, other objects by the buffer
//! protocol.

use oxigrad_core::array::buffer::{Buffer, Dtype, Span, elements};
use oxigrad_core::array::quantized::Codec;
use oxigrad_core::array::view::ArrayView;
use oxigrad_core::error::{Error, Result};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::types::{PyDict, PyTuple};
use smallvec::{SmallVec, smallvec};

use crate::arrays::batch_level::BatchLevel;
use crate::arrays::memory::buffer_protocol;
use crate::arrays::memory::dlpack::Export;
use crate::arrays::memory::numpy::Numpy;
use crate::error::unless_refused;
use crate::prelude::*;

/// The owner of the memory of an array, which keeps it valid.
enum Owner {
    /// A reference to a NumPy array, which then refuses to be resized.
    Reference(#[expect(dead_code, reason = "held, not read")] Py<PyAny>),
    /// An export by the buffer protocol.
    Buffer(PyUntypedBuffer),
    /// An export by `DLPack`.
    Export(Export),
}

/// An array in host memory: its description, and its owner, which keeps the memory valid.
pub struct HostArray {
    pub view: ArrayView,
    owner: Owner,
}

// SAFETY: the pointer is only passed to `Buffer`, which does not dereference it, and the owner of the memory is `Send`.
unsafe impl Send for HostArray {}
// SAFETY: as above.
unsafe impl Sync for HostArray {}

impl HostArray {
    /// The memory of an object; `None` if it shares none.
    ///
    /// # Errors
    /// Any error that the object raises, other than those by which it refuses to share its memory.
    pub fn of(object: &Object<'_>) -> PyResult<Option<Self>> {
        Self::by(object, Export::of)
    }

    /// As `of`, for an object whose negative bit is known not to be set: see `Torch::is_negated`.
    pub fn of_seen(object: &Object<'_>) -> PyResult<Option<Self>> {
        Self::by(object, Export::of_memory)
    }

    fn by(
        object: &Object<'_>,
        exported: impl Fn(&Object<'_>) -> PyResult<Option<(ArrayView, Export)>>,
    ) -> PyResult<Option<Self>> {
        if let Some(array) = Self::of_array(object)? {
            return Ok(Some(array));
        }
        if object.is_instance_of::<BatchLevel>() {
            return Ok(None);
        }
        let numpy = Numpy::get(object.py());
        if numpy.is_scalar(object)? {
            // NumPy's scalars export their memory without a shape: a copy as an array has one, and is not to be
            // written.
            let copy = Self::of_array(&numpy.asarray(object)?)?;
            return Ok(copy.map(|mut copy| {
                copy.view.writable = false;
                copy
            }));
        }
        // A subclass of NumPy's array exports both; the buffer protocol says whether it may be written, DLPack refuses.
        if !numpy.is_array(object)?
            && let Some((view, export)) = exported(object)?
        {
            return Ok(Some(Self { view, owner: Owner::Export(export) }));
        }
        let exported = unless_refused(object.py(), PyUntypedBuffer::get(object))?;
        Ok(exported.map(|export| {
            let view = buffer_protocol::view(&export);
            Self { view, owner: Owner::Buffer(export) }
        }))
    }

    /// The memory of a NumPy array or scalar: an operand that a replay computes with without calling a library.
    pub fn of_numpy(object: &Object<'_>) -> PyResult<Option<Self>> {
        let numpy = Numpy::get(object.py());
        if numpy.is_plain_array(object) || numpy.is_scalar(object)? { Self::of(object) } else { Ok(None) }
    }

    /// The memory of an array of exactly NumPy's type, of a dtype in native byte order.
    fn of_array(object: &Object<'_>) -> PyResult<Option<Self>> {
        let numpy = Numpy::get(object.py());
        let Some(fields) = numpy.fields(object) else { return Ok(None) };
        let Some(dtype) = numpy.dtype(object.py(), &fields)? else { return Ok(None) };
        let owner = Owner::Reference(object.clone().unbind());
        Ok(Some(Self { view: fields.view(dtype), owner }))
    }

    /// Whether Python may have run to export it, and have changed other arrays.
    pub fn is_by_python(&self) -> bool {
        match &self.owner {
            Owner::Buffer(_) => true,
            Owner::Reference(_) => false,
            Owner::Export(export) => export.by_python,
        }
    }

    /// The extents of the array.
    pub fn shape(&self) -> &[usize] {
        &self.view.extents
    }

    /// Whether the memory may be written.
    pub fn is_writable(&self) -> bool {
        self.view.writable
    }

    /// The bytes from the lowest element to the end of the highest.
    pub fn span(&self) -> Span {
        self.view.span(match (&self.owner, self.view.dtype) {
            (_, Some(dtype)) => dtype.size(),
            (Owner::Buffer(export), None) => export.item_size(),
            (Owner::Reference(_) | Owner::Export(_), None) => 1,
        })
    }

    /// The buffer, where kernels compute in its dtype.
    ///
    /// # Errors
    /// `Dtype` with the dtype that was found.
    pub fn computing(&self) -> Result<Buffer> {
        self.buffer_of(Dtype::computes, "float32 or float64")
    }

    /// The buffer, where kernels write its dtype.
    ///
    /// # Errors
    /// `Dtype` with the dtype that was found.
    pub fn floating(&self) -> Result<Buffer> {
        self.buffer_of(Dtype::is_floating, "float16, bfloat16, float32 or float64")
    }

    fn buffer_of(&self, fits: fn(Dtype) -> bool, expected: &str) -> Result<Buffer> {
        match self.view.buffer() {
            Some(buffer) if fits(buffer.dtype()) => Ok(buffer),
            _ => {
                let found = match (&self.owner, self.view.dtype) {
                    (_, Some(dtype)) => format!("dtype {}", dtype.name()),
                    (Owner::Buffer(export), None) => format!("format {:?}", export.format().to_string_lossy()),
                    (Owner::Reference(_) | Owner::Export(_), None) => "an unknown dtype".into(),
                };
                Err(Error::Dtype(format!("found {found}, expected {expected} in native byte order")))
            }
        }
    }

    /// A NumPy array of the same memory, to test for overlap; its elements are opaque.
    pub fn probe<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", format!("|V{}", self.view.dtype.map_or(1, Dtype::size)))?;
        interface.set_item("data", (self.view.pointer.expose_provenance(), true))?;
        interface.set_item("shape", PyTuple::new(py, &self.view.extents)?)?;
        interface.set_item("strides", PyTuple::new(py, &self.view.strides)?)?;
        let named = PyDict::new(py);
        named.set_item("__array_interface__", interface)?;
        let holder = py.import("types")?.getattr("SimpleNamespace")?.call((), Some(&named))?;
        py.import("numpy")?.call_method1("asarray", (holder,))
    }
}

/// Floating-point numbers in host memory: an array, or codes, given as a tuple of the codes and their scales; and, where
/// codes of four bits are packed, of the shape of the numbers.
pub struct FloatArray {
    pub buffer: Buffer,
    /// The array, or the codes and the scales.
    pub parts: SmallVec<[HostArray; 1]>,
    /// The shape of the numbers whose codes are packed.
    packed: Option<Box<[usize]>>,
}

impl FloatArray {
    /// The numbers of an object; `None` if it shares no memory. The inner error, `Shape`, `Dtype` or `Memory`, describes
    /// what was found in place of floating-point numbers, or of codes and scales.
    ///
    /// # Errors
    /// As `HostArray::of`.
    pub fn of(stated: &Object<'_>) -> PyResult<Option<Result<Self>>> {
        let Ok(coded) = stated.cast::<PyTuple>() else {
            let Some(array) = HostArray::of(stated)? else { return Ok(None) };
            return Ok(Some(array.floating().map(|buffer| Self { buffer, parts: smallvec![array], packed: None })));
        };
        let packed = coded.get_item(2).ok().map(|shape| shape.extract::<Vec<usize>>()).transpose()?;
        let packed = packed.map(Vec::into_boxed_slice);
        let parts: PyResult<Option<SmallVec<[HostArray; 1]>>> =
            coded.iter().take(2).map(|array| HostArray::of(&array)).collect();
        let Some(parts) = parts?.filter(|parts| parts.len() == 2) else { return Ok(None) };
        let buffer = quantized(&parts[0], &parts[1], packed.as_deref());
        Ok(Some(buffer.map(|buffer| Self { buffer, parts, packed })))
    }

    /// The shape of the numbers.
    pub fn shape(&self) -> &[usize] {
        self.packed.as_deref().unwrap_or_else(|| self.parts[0].shape())
    }

    /// The numbers, repeated to this shape; `None` if they cannot be.
    pub fn broadcast(&self, shape: &[usize]) -> Option<Buffer> {
        match &self.parts[..] {
            _ if self.shape() == shape => Some(self.buffer.clone()),
            [array] => array.view.broadcast(shape),
            _ => None,
        }
    }
}

/// The memory of codes and the scales of their blocks, as one buffer; codes that are `packed` are those of numbers of this
/// shape.
fn quantized(codes: &HostArray, scales: &HostArray, packed: Option<&[usize]>) -> Result<Buffer> {
    let buffers = codes.view.buffer().zip(scales.view.buffer()).map(<[Buffer; 2]>::from);
    let is_coded = |buffers: &[Buffer; 2]| buffers[0].dtype() == Dtype::U8 && buffers[1].dtype() == Dtype::F32;
    let Some(buffers) = buffers.filter(is_coded) else {
        return Err(Error::Dtype("expected codes of uint8 and scales of float32".into()));
    };
    let (codec, length) = match packed {
        None => (Codec::Eight, buffers[0].len()),
        Some(shape) => (Codec::Four, elements(shape).unwrap_or(usize::MAX)),
    };
    let (found, bytes) = (buffers[0].len(), codec.bytes(length));
    if found != bytes {
        return Err(Error::Shape(format!("found {found} bytes of codes for {length} numbers, expected {bytes}")));
    }
    let (found, blocks) = (buffers[1].len(), length.div_ceil(codec.block()));
    if found != blocks {
        return Err(Error::Shape(format!("found {found} scales for {length} codes, expected {blocks}")));
    }
    if !buffers.iter().all(Buffer::is_contiguous) {
        return Err(Error::Memory("codes and scales must be contiguous".into()));
    }
    let writable = buffers.iter().all(Buffer::is_writable);
    Buffer::quantized(codec, codes.view.pointer, scales.view.pointer, length, writable)
}

/// Whether the object is an array that lies in host memory and shares it, by `DLPack` or Python's buffer protocol.
#[pyfunction]
pub fn exports_memory(object: &Object<'_>) -> PyResult<bool> {
    Ok(HostArray::of(object)?.is_some())
}

/// Whether an object shares memory of a floating-point dtype: kernels can update it.
#[pyfunction]
pub fn is_floating(object: &Object<'_>) -> PyResult<bool> {
    Ok(HostArray::of(object)?.is_some_and(|memory| memory.floating().is_ok()))
}

/// Whether the memory that an object shares may be written.
#[pyfunction]
pub fn is_writable(object: &Object<'_>) -> PyResult<bool> {
    Ok(HostArray::of(object)?.is_some_and(|memory| memory.is_writable()))
}
