//! Host memory that Python objects share, as the core's buffers.
//!
//! NumPy's own arrays are read where they lie, arrays of other libraries go by `DLPack`, anything else by the buffer protocol.

use oxigrad_core::array::buffer::{Buffer, Dtype, Span};
use oxigrad_core::array::quantized::BLOCK;
use oxigrad_core::error::{Error, Result};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::{SmallVec, smallvec};

use crate::arrays::dlpack::{self, Array, Exchange, Owner};
use crate::arrays::numpy::{ArrayFields, C_CONTIGUOUS, Numpy};
use crate::error::unless_refused;

/// What keeps the memory of an array where it is.
enum Keep {
    /// An export by the buffer protocol.
    Export(PyUntypedBuffer),
    /// A reference to a NumPy array, which then refuses to be resized.
    Reference(#[expect(dead_code, reason = "held, not read")] Py<PyAny>),
    /// An export by `DLPack`, and whether Python ran to make it.
    Owner(#[expect(dead_code, reason = "held, not read")] Owner, bool),
}

/// The memory of an array, kept for as long as this is.
pub struct Memory {
    keep: Keep,
    pointer: *mut u8,
    shape: SmallVec<[usize; 4]>,
    strides: SmallVec<[isize; 4]>,
    dtype: Option<Dtype>,
    writable: bool,
    /// Whether it is that of a tensor of PyTorch's.
    is_tensor: bool,
    /// The tensor, if it is one and a step writes it.
    changed: Option<Py<PyAny>>,
}

// SAFETY: the pointer is only handed to `Buffer`, which makes no use of it, and what keeps the memory is `Send`.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// The memory of an object; none where it shares none.
    ///
    /// # Errors
    /// What the object raises, but for the errors by which it refuses to share its memory.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        Self::by(object, Array::of)
    }

    /// As `of`, where the numbers were seen to be those in the memory: see `dlpack::first_negated`.
    pub fn of_seen(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        Self::by(object, Array::of_memory)
    }

    fn by(
        object: &Bound<'_, PyAny>,
        exported: impl Fn(&Bound<'_, PyAny>) -> PyResult<Option<Array>>,
    ) -> PyResult<Option<Self>> {
        if let Some(memory) = Self::of_array(object)? {
            return Ok(Some(memory));
        }
        let Some(numpy) = Numpy::get(object.py()) else { return Ok(None) };
        if numpy.is_scalar(object)? {
            // NumPy's scalars export their memory without a shape: a copy as an array has one, and is not to be written.
            let copy = Self::of_array(&numpy.asarray(object)?)?;
            return Ok(copy.map(|copy| Self { writable: false, ..copy }));
        }
        // A subclass of NumPy's array exports both; the buffer protocol says whether it may be written, DLPack refuses.
        if !numpy.is_array(object)?
            && let Some(array) = exported(object)?
        {
            return Ok(Some(Self::of_dlpack(array)));
        }
        Ok(unless_refused(object.py(), PyUntypedBuffer::get(object))?.map(Self::of_export))
    }

    /// The memory of a NumPy array or scalar: what the replay may compute with itself, without asking a library.
    pub fn of_numpy(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let Some(numpy) = Numpy::get(object.py()) else { return Ok(None) };
        if numpy.is_plain_array(object) || numpy.is_scalar(object)? { Self::of(object) } else { Ok(None) }
    }

    /// The memory of an array of exactly NumPy's type, of a dtype in native byte order.
    fn of_array(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let found = Numpy::get(object.py()).and_then(|numpy| Some((numpy, numpy.fields(object)?)));
        let Some((numpy, fields)) = found else { return Ok(None) };
        let keep = || Keep::Reference(object.clone().unbind());
        Ok(numpy.dtype(object.py(), &fields)?.map(|dtype| Self::of_fields(&fields, dtype, keep())))
    }

    fn of_fields(fields: &ArrayFields, dtype: Dtype, keep: Keep) -> Self {
        let (shape, strides) = (fields.extents().collect(), fields.strides().collect());
        let (dtype, writable) = (Some(dtype), fields.is_writable());
        Self { keep, pointer: fields.data, shape, strides, dtype, writable, is_tensor: false, changed: None }
    }

    /// Whether what an array's fields say is what the buffer protocol says.
    pub fn is_as_exported(array: &Bound<'_, PyAny>, fields: &ArrayFields, dtype: Dtype) -> PyResult<bool> {
        let by_protocol = Self::of_export(PyUntypedBuffer::get(array)?);
        if fields.data != by_protocol.pointer || fields.dimensions() != by_protocol.shape.len() {
            return Ok(false);
        }
        let by_fields = Self::of_fields(fields, dtype, Keep::Reference(array.clone().unbind()));
        Ok(by_fields.shape == by_protocol.shape
            && by_fields.strides == by_protocol.strides
            && by_fields.dtype == by_protocol.dtype
            && by_fields.writable == by_protocol.writable)
    }

    fn of_export(export: PyUntypedBuffer) -> Self {
        Self {
            pointer: export.buf_ptr().cast(),
            shape: export.shape().into(),
            strides: export.strides().into(),
            dtype: exported_dtype(&export),
            writable: !export.readonly(),
            keep: Keep::Export(export),
            is_tensor: false,
            changed: None,
        }
    }

    fn of_dlpack(array: Array) -> Self {
        let Array { owner, pointer, shape, strides, dtype, writable, by_python, is_tensor } = array;
        let keep = Keep::Owner(owner, by_python);
        Self { keep, pointer, shape, strides, dtype, writable, is_tensor, changed: None }
    }

    /// Says that a step writes the memory, which is that of this object.
    pub fn set_written(&mut self, object: &Bound<'_, PyAny>) {
        self.changed = self.is_tensor.then(|| object.clone().unbind());
    }

    /// The tensor of PyTorch's whose memory this is, if a step writes it.
    pub fn changed(&self) -> Option<&Py<PyAny>> {
        self.changed.as_ref()
    }

    /// Whether Python may have run to export it, and have changed other arrays.
    pub fn is_by_python(&self) -> bool {
        match self.keep {
            Keep::Export(_) => true,
            Keep::Reference(_) => false,
            Keep::Owner(_, by_python) => by_python,
        }
    }

    /// Whether Python, or another thread, may have run before it was exported.
    pub fn is_after_python(&self) -> bool {
        self.is_tensor || self.is_by_python()
    }

    /// Whether `is_still_of` can tell.
    pub fn can_be_seen(&self, object: &Bound<'_, PyAny>) -> bool {
        matches!(self.keep, Keep::Reference(_)) || dlpack::can_be_seen(object)
    }

    /// Whether this still is the memory of the object. It runs no Python, and says no where only an export would tell.
    #[inline]
    pub fn is_still_of(&self, numpy: &Numpy, object: &Bound<'_, PyAny>) -> bool {
        let Some(fields) = numpy.fields(object) else {
            return dlpack::lies(object, self.pointer, &self.shape, &self.strides, self.dtype);
        };
        fields.data == self.pointer
            && fields.is_writable() == self.writable
            && fields.dimensions() == self.shape.len()
            && fields.extents().eq(self.shape.iter().copied())
            && fields.strides().eq(self.strides.iter().copied())
            && match self.dtype {
                Some(Dtype::BF16) => numpy.seen_dtype(object.py(), &fields) == self.dtype,
                dtype => numpy.own_dtype(&fields) == dtype,
            }
    }

    /// The extents of the array.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Where the first element lies.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    /// Bytes from an element to the next, along each axis.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Whether the memory may be written.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// The bytes from the lowest element to the end of the highest.
    pub fn span(&self) -> Span {
        let start = self.pointer.addr();
        if self.shape.contains(&0) {
            return Span { start, end: start };
        }
        let (mut below, mut above) = (0usize, self.item_size());
        for (extent, stride) in self.shape.iter().zip(&self.strides) {
            let reach = (extent - 1).saturating_mul(stride.unsigned_abs());
            let side = if *stride < 0 { &mut below } else { &mut above };
            *side = side.saturating_add(reach);
        }
        Span { start: start.saturating_sub(below), end: start.saturating_add(above) }
    }

    fn item_size(&self) -> usize {
        match (&self.keep, self.dtype) {
            (_, Some(dtype)) => dtype.size(),
            (Keep::Export(export), None) => export.item_size(),
            (Keep::Reference(_) | Keep::Owner(..), None) => 1,
        }
    }

    /// Whether both are the same elements, in the same order.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let is_one = |extent: usize| extent < 2; // whose stride means nothing
        let strides = self.strides.iter().zip(&other.strides).zip(&self.shape);
        self.pointer == other.pointer
            && self.shape == other.shape
            && self.dtype.is_some()
            && self.dtype == other.dtype
            && strides.into_iter().all(|((a, b), extent)| a == b || is_one(*extent))
    }

    /// The memory as kernels see it; none where they cannot read its dtype.
    pub fn buffer(&self) -> Option<Buffer> {
        Buffer::strided(self.pointer, &self.shape, &self.strides, self.dtype?, self.writable).ok()
    }

    /// The memory as an array of a larger shape, repeated along the axes that broadcasting adds or stretches.
    pub fn broadcast(&self, shape: &[usize]) -> Option<Buffer> {
        if self.shape() == shape {
            return self.buffer();
        }
        let added = shape.len().checked_sub(self.shape.len())?;
        let mut strides: SmallVec<[isize; 4]> = SmallVec::from_elem(0, shape.len());
        for (axis, (extent, stride)) in self.shape.iter().zip(&self.strides).enumerate() {
            match (*extent, shape[added + axis]) {
                (extent, wanted) if extent == wanted => strides[added + axis] = *stride,
                (1, _) => {}
                _ => return None,
            }
        }
        Buffer::strided(self.pointer, shape, &strides, self.dtype?, false).ok()
    }

    /// The buffer, where kernels compute in its dtype.
    ///
    /// # Errors
    /// `Dtype` with what is there instead.
    pub fn computing(&self) -> Result<Buffer> {
        self.buffer_of(Dtype::computes, "float32 or float64")
    }

    /// The buffer, where kernels write its dtype.
    ///
    /// # Errors
    /// `Dtype` with what is there instead.
    pub fn floating(&self) -> Result<Buffer> {
        self.buffer_of(Dtype::is_floating, "float16, bfloat16, float32 or float64")
    }

    fn buffer_of(&self, fits: fn(Dtype) -> bool, expected: &str) -> Result<Buffer> {
        match self.buffer() {
            Some(buffer) if fits(buffer.dtype()) => Ok(buffer),
            _ => {
                let found = match (&self.keep, self.dtype) {
                    (_, Some(dtype)) => format!("dtype {}", dtype.name()),
                    (Keep::Export(export), None) => format!("format {:?}", export.format().to_string_lossy()),
                    (Keep::Reference(_) | Keep::Owner(..), None) => "an unknown dtype".into(),
                };
                Err(Error::Dtype(format!("found {found}, expected {expected} in native byte order")))
            }
        }
    }

    /// An array of NumPy's that lies where this memory does, for questions about overlap; its elements mean nothing.
    pub fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", format!("|V{}", self.dtype.map_or(1, Dtype::size)))?;
        interface.set_item("data", (self.pointer.expose_provenance(), true))?;
        interface.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        interface.set_item("strides", PyTuple::new(py, &self.strides)?)?;
        let named = PyDict::new(py);
        named.set_item("__array_interface__", interface)?;
        let holder = py.import("types")?.getattr("SimpleNamespace")?.call((), Some(&named))?;
        py.import("numpy")?.call_method1("asarray", (holder,))
    }
}

/// Where an array was found to lie, in one cache line: what is looked at again in every step. It keeps nothing alive.
pub struct Seat {
    pointer: *mut u8,
    /// The dtype of a NumPy array, the type of another; null where a look does not tell.
    descr: *mut PyObject,
    dtype: Option<Dtype>,
    dimensions: usize,
    writable: bool,
    extents: [usize; Seat::MOST],
    exchange: Option<&'static Exchange>,
}

// SAFETY: the pointers are compared, and not followed.
unsafe impl Send for Seat {}
// SAFETY: as above.
unsafe impl Sync for Seat {}

impl Seat {
    const MOST: usize = 4;

    /// Where an object's memory is; `lies` tells only of what is contiguous.
    pub fn new(numpy: &Numpy, object: &Bound<'_, PyAny>, memory: &Memory) -> Self {
        let fields = numpy.fields(object);
        let exchange = if fields.is_some() { None } else { dlpack::exchange(&object.get_type()) };
        let kind = exchange.map_or(std::ptr::null_mut(), |_| object.get_type_ptr().cast());
        let is_simple =
            memory.shape.len() <= Self::MOST && memory.buffer().is_some_and(|buffer| buffer.is_contiguous());
        let mut extents = [0; Self::MOST];
        extents.iter_mut().zip(&memory.shape).for_each(|(to, from)| *to = *from);
        Self {
            pointer: memory.pointer,
            descr: if is_simple { fields.map_or(kind, |fields| fields.descr) } else { std::ptr::null_mut() },
            dtype: memory.dtype,
            dimensions: memory.shape.len().min(Self::MOST),
            writable: memory.writable,
            extents,
            exchange,
        }
    }

    /// Whether the object, the same as before, still lies there. It runs no Python, and says no where an export has to tell.
    #[inline]
    pub fn lies(&self, numpy: &Numpy, object: &Bound<'_, PyAny>) -> bool {
        let extents = &self.extents[..self.dimensions];
        if let Some(exchange) = self.exchange {
            let mut strides = [0; Self::MOST];
            let mut step = self.dtype.map_or(0, Dtype::size).cast_signed();
            for (stride, extent) in strides[..extents.len()].iter_mut().zip(extents).rev() {
                *stride = step;
                step = step.wrapping_mul(extent.cast_signed());
            }
            return self.descr == object.get_type_ptr().cast()
                && exchange.lies(object, self.pointer, extents, &strides[..extents.len()], self.dtype);
        }
        numpy.fields(object).is_some_and(|fields| {
            fields.data == self.pointer
                && fields.descr == self.descr
                && fields.flags & C_CONTIGUOUS != 0
                && fields.is_writable() == self.writable
                && fields.dimensions() == extents.len()
                && fields.extents().eq(extents.iter().copied())
        })
    }
}

/// Numbers in memory: those of an array, or codes of eight bits, stated as a tuple of the codes and their scales.
pub struct Numbers {
    pub buffer: Buffer,
    pub memory: SmallVec<[Memory; 1]>,
}

impl Numbers {
    /// The numbers of an object; none where it shares no memory. The inner error, `Shape`, `Dtype` or `Memory`, says what is
    /// there instead of floating-point numbers, or of codes and scales.
    ///
    /// # Errors
    /// As `Memory::of`.
    pub fn of(stated: &Bound<'_, PyAny>) -> PyResult<Option<Result<Self>>> {
        let Ok(coded) = stated.cast::<PyTuple>() else {
            let Some(memory) = Memory::of(stated)? else { return Ok(None) };
            return Ok(Some(memory.floating().map(|buffer| Self { buffer, memory: smallvec![memory] })));
        };
        let memory: PyResult<Option<SmallVec<[Memory; 1]>>> = coded.iter().map(|array| Memory::of(&array)).collect();
        let Some(memory) = memory?.filter(|memory| memory.len() == 2) else { return Ok(None) };
        Ok(Some(quantized(&memory[0], &memory[1]).map(|buffer| Self { buffer, memory })))
    }

    /// Says that a step writes them, which are those of this object; of codes PyTorch has no tensors.
    pub fn set_written(&mut self, object: &Bound<'_, PyAny>) {
        if let [memory] = &mut self.memory[..] {
            memory.set_written(object);
        }
    }

    /// The tensors of PyTorch's whose memory this is, if a step writes it.
    pub fn changed(&self) -> impl Iterator<Item = &Py<PyAny>> {
        self.memory.iter().filter_map(Memory::changed)
    }
}

/// The memory of codes and the scales of their blocks, as one buffer.
fn quantized(codes: &Memory, scales: &Memory) -> Result<Buffer> {
    let buffers = codes.buffer().zip(scales.buffer()).map(<[Buffer; 2]>::from);
    let is_coded = |buffers: &[Buffer; 2]| buffers[0].dtype() == Dtype::U8 && buffers[1].dtype() == Dtype::F32;
    let Some(buffers) = buffers.filter(is_coded) else {
        return Err(Error::Dtype("expected codes of uint8 and scales of float32".into()));
    };
    let (length, found) = (buffers[0].len(), buffers[1].len());
    let blocks = length.div_ceil(BLOCK);
    if found != blocks {
        return Err(Error::Shape(format!("found {found} scales for {length} codes, expected {blocks}")));
    }
    if !buffers.iter().all(Buffer::is_contiguous) {
        return Err(Error::Memory("codes and scales must lie one after the other".into()));
    }
    let writable = buffers.iter().all(Buffer::is_writable);
    Buffer::quantized(codes.pointer, scales.pointer, length, writable)
}

/// The dtype of a format of Python's `struct`; none where kernels cannot read it, another byte order among them.
fn exported_dtype(export: &PyUntypedBuffer) -> Option<Dtype> {
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

/// Whether the object is an array that lies in host memory and shares it, by `DLPack` or Python's buffer protocol.
#[pyfunction]
pub fn exports_memory(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(Memory::of(object)?.is_some())
}

/// Whether an object shares memory of a floating-point dtype: kernels can update it.
#[pyfunction]
pub fn is_floating(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(Memory::of(object)?.is_some_and(|memory| memory.floating().is_ok()))
}

/// Whether the memory that an object shares may be written.
#[pyfunction]
pub fn is_writable(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(Memory::of(object)?.is_some_and(|memory| memory.is_writable()))
}
