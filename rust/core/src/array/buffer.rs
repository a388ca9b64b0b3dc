//! Buffers over foreign memory: the address, dtype, layout and writability of a leaf.
//!
//! A [`Buffer`] is plain data and safe to make: it does not own the memory. Running a kernel over it
//! is unsafe, on the conditions that [`crate::exec::run`] states. Nothing here or there makes a reference to foreign
//! memory.

use std::sync::Arc;

use crate::array::quantized::Codec;
use crate::array::rows::Rows;
use crate::error::{Error, Result};
use crate::simd::noise::Draws;

pub use crate::array::dtype::Dtype;

/// The memory layout of the elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Contiguous.
    Contiguous,
    /// One element, repeated.
    Repeated,
    /// By extents and byte strides, the last axis the fastest; no axis of extent one, and none that could be merged.
    Strided(Box<[Axis]>),
}

/// One axis of a strided buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub extent: usize,
    pub stride: isize,
}

/// The description of an array in memory, whose elements a kernel reads or writes in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub(crate) pointer: *mut u8,
    pub(crate) length: usize,
    pub(crate) dtype: Dtype,
    pub(crate) writable: bool,
    pub(crate) layout: Layout,
    /// The rows of a table that form the elements; `None` for the whole table.
    pub(crate) rows: Option<Arc<Rows>>,
    /// The kind of codes that the elements are, if they are quantized.
    pub(crate) codec: Option<Codec>,
    /// The address of the scales of quantized elements, as `f32`; null if the elements are not quantized.
    pub(crate) scales: *mut u8,
    pub(crate) rounding: Rounding,
}

/// The rounding of numbers that are written to a buffer of halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// To nearest, ties to even.
    #[default]
    Nearest,
    /// Up or down at random, so that the expected result is the number: by the noise of the leaf and its elements. The
    /// number tells the buffers of a leaf apart.
    Stochastic(u32),
}

impl Rounding {
    /// The sixteen random bits by which one element is rounded stochastically: see
    /// [`crate::array::half::Half::stochastic`].
    #[must_use]
    pub const fn random(key: u64, number: u32, index: u64) -> u16 {
        Self::draws(key, number, index).first()
    }

    /// The bits for consecutive elements. Two numbers share a draw of noise: those of a rule count from zero, these
    /// from the other end.
    pub(crate) const fn draws(key: u64, number: u32, index: u64) -> Draws {
        Draws::new(key, u32::MAX - number / 2, number % 2 * 16, index)
    }
}

// SAFETY: a buffer is an address and never dereferences it; `exec::run` asks its caller for what threads need.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

/// The bytes from `start` up to `end`, as addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Address of the first byte.
    pub start: usize,
    /// Address after the last byte.
    pub end: usize,
}

impl Span {
    /// Whether the spans overlap.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end && self.start < self.end && other.start < other.end
    }
}

impl Buffer {
    /// `length` contiguous elements, at any alignment.
    ///
    /// # Errors
    /// `Memory` if the pointer is null (and there are elements) or the range leaves the address space.
    pub fn contiguous(pointer: *mut u8, length: usize, dtype: Dtype, writable: bool) -> Result<Self> {
        let bytes = length.checked_mul(dtype.size()).filter(|bytes| pointer.addr().checked_add(*bytes).is_some());
        if bytes.is_none() || bytes > Some(isize::MAX.unsigned_abs()) {
            return Err(Error::Memory(format!("{length} elements of {} leave the address space", dtype.name())));
        }
        if pointer.is_null() && length > 0 {
            return Err(Error::Memory(format!("{length} elements of {} at a null pointer", dtype.name())));
        }
        let (codec, scales, rounding, rows) = (None, std::ptr::null_mut(), Rounding::Nearest, None);
        Ok(Self { pointer, length, dtype, writable, layout: Layout::Contiguous, rows, codec, scales, rounding })
    }

    /// One element, repeated `length` times.
    ///
    /// # Errors
    /// `Memory` if the pointer is null.
    pub fn repeated(pointer: *const u8, length: usize, dtype: Dtype) -> Result<Self> {
        let one = Self::contiguous(pointer.cast_mut(), 1, dtype, false)?;
        Ok(Self { length, layout: Layout::Repeated, ..one })
    }

    /// The elements of an array of the given extents, `strides` bytes apart; `pointer` is the element of index zero.
    /// Strides may be zero (the axis is broadcast) or negative. A contiguous layout is detected.
    ///
    /// # Errors
    /// `Shape` if there is not one stride an extent; `Memory` if the pointer is null or the elements leave the
    /// address space.
    pub fn strided(
        pointer: *mut u8,
        extents: &[usize],
        strides: &[isize],
        dtype: Dtype,
        writable: bool,
    ) -> Result<Self> {
        if extents.len() != strides.len() {
            return Err(Error::Shape(format!("{} extents, but {} strides", extents.len(), strides.len())));
        }
        let Some(length) = elements(extents).filter(|length| isize::try_from(*length).is_ok()) else {
            return Err(Error::Memory(format!("an array of shape {extents:?} leaves the address space")));
        };
        if length == 0 || is_contiguous(extents, strides, dtype.size()) {
            return Self::contiguous(pointer, length, dtype, writable);
        }
        let axes = merged(extents, strides);
        let layout = match &axes[..] {
            [] => Layout::Contiguous,
            [only] if only.stride == 0 => Layout::Repeated,
            [only] if only.stride.unsigned_abs() == dtype.size() && only.stride > 0 => Layout::Contiguous,
            _ => Layout::Strided(axes.into()),
        };
        let (codec, scales, rounding, rows) = (None, std::ptr::null_mut(), Rounding::Nearest, None);
        let buffer = Self { pointer, length, dtype, writable, layout, rows, codec, scales, rounding };
        if pointer.is_null() || buffer.checked_span().is_none() {
            return Err(Error::Memory(format!("an array of shape {extents:?} leaves the address space")));
        }
        Ok(buffer)
    }

    /// `length` contiguous numbers as codes, and the `f32` scale of each block of them: see [`crate::array::quantized`].
    ///
    /// # Errors
    /// As [`Buffer::contiguous`], for the codes and for the scales.
    pub fn quantized(codec: Codec, codes: *mut u8, scales: *mut u8, length: usize, writable: bool) -> Result<Self> {
        Self::contiguous(scales, length.div_ceil(codec.block()), Dtype::F32, writable)?;
        let codes = Self::contiguous(codes, codec.bytes(length), Dtype::U8, writable)?;
        Ok(Self { codec: Some(codec), scales, length, ..codes })
    }

    /// The scales of quantized elements; `None` if the elements are not quantized.
    #[must_use]
    pub fn scales(&self) -> Option<Self> {
        let blocks = self.length.div_ceil(self.codec?.block());
        Self::contiguous(self.scales, blocks, Dtype::F32, self.writable).ok()
    }

    /// Whether the elements are codes.
    #[must_use]
    pub fn is_quantized(&self) -> bool {
        self.codec.is_some()
    }

    /// The kind of codes that the elements are, if they are quantized.
    #[must_use]
    pub fn codec(&self) -> Option<Codec> {
        self.codec
    }

    /// The same buffer with a rounding for writes of kernels. It has an effect only on buffers of halves.
    #[must_use]
    pub fn with_rounding(self, rounding: Rounding) -> Self {
        Self { rounding, ..self }
    }

    /// The given rows of the buffer, which is a table.
    ///
    /// # Errors
    /// `Shape` if the table has no such row, or is quantized and its rows are no whole blocks.
    pub fn of_rows(self, rows: Arc<Rows>) -> Result<Self> {
        if rows.reach().is_none_or(|reach| reach > self.length) {
            return Err(Error::Shape(format!("a table of {} elements: found a row index out of range", self.length)));
        }
        if let Some(block) = self.codec.map(Codec::block)
            && !rows.width().is_multiple_of(block)
        {
            let width = rows.width();
            return Err(Error::Shape(format!(
                "rows of codes: found rows of {width} elements, expected a multiple of {block}"
            )));
        }
        Ok(Self { rows: Some(rows), ..self })
    }

    /// The number of elements that a kernel sees.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.as_ref().map_or(self.length, |rows| rows.len())
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address of the first element.
    #[must_use]
    pub fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Whether the elements are contiguous.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.layout == Layout::Contiguous
    }

    /// Whether the memory may be written.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// The bytes from the lowest element to the end of the highest.
    #[must_use]
    pub fn span(&self) -> Span {
        if self.layout == Layout::Contiguous {
            // `contiguous` saw that the range is in the address space.
            let start = self.pointer.addr();
            let bytes = match self.codec {
                Some(codec) => codec.bytes(self.length),
                None => self.length.wrapping_mul(self.dtype.size()),
            };
            return Span { start, end: start.wrapping_add(bytes) };
        }
        self.checked_span().unwrap_or(Span { start: 0, end: usize::MAX })
    }

    fn checked_span(&self) -> Option<Span> {
        let (mut below, mut above) = (0usize, 0usize);
        match &self.layout {
            Layout::Contiguous => above = self.length.saturating_sub(1).checked_mul(self.dtype.size())?,
            Layout::Repeated => {}
            Layout::Strided(axes) => {
                for axis in axes {
                    let reach = (axis.extent - 1).checked_mul(axis.stride.unsigned_abs())?;
                    let side = if axis.stride < 0 { &mut below } else { &mut above };
                    *side = side.checked_add(reach)?;
                }
            }
        }
        let size = if self.length == 0 { 0 } else { self.dtype.size() };
        let start = self.pointer.addr().checked_sub(below)?;
        let end = self.pointer.addr().checked_add(above)?.checked_add(size)?;
        (end - start <= isize::MAX.unsigned_abs()).then_some(Span { start, end })
    }

    /// Whether two elements of different index may share a byte: such a buffer must not be written.
    /// The check is conservative: true for a few exotic layouts without overlap, never false for one with overlap.
    #[must_use]
    pub fn overlaps_itself(&self) -> bool {
        match &self.layout {
            Layout::Contiguous => false,
            Layout::Repeated => self.length > 1,
            Layout::Strided(axes) => {
                // In the order of strides, each stride must exceed the extent of the smaller ones.
                let mut by_stride = axes.to_vec();
                by_stride.sort_by_key(|axis| axis.stride.unsigned_abs());
                let mut reach = self.dtype.size();
                by_stride.iter().any(|axis| {
                    let stride = axis.stride.unsigned_abs();
                    let meets = stride < reach;
                    reach = reach.saturating_add((axis.extent - 1).saturating_mul(stride));
                    meets
                })
            }
        }
    }

    /// Whether both have the same elements in the same order, so that an update of one in place is one of the other.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.pointer == other.pointer
            && self.length == other.length
            && self.dtype == other.dtype
            && self.layout == other.layout
            && (self.codec, self.scales) == (other.codec, other.scales)
            && self.rows == other.rows
    }
}

/// The number of elements of an array of these extents; `None` on overflow.
#[must_use]
pub fn elements<'a>(extents: impl IntoIterator<Item = &'a usize>) -> Option<usize> {
    let mut product = Some(1);
    for &extent in extents {
        if extent == 0 {
            return Some(0); // for any other extents
        }
        product = product.and_then(|product: usize| product.checked_mul(extent));
    }
    product
}

/// Whether each axis steps over exactly the inner ones.
fn is_contiguous(extents: &[usize], strides: &[isize], size: usize) -> bool {
    let mut step = Some(size);
    extents.iter().zip(strides).rev().all(|(&extent, &stride)| {
        let fits = extent == 1 || usize::try_from(stride).ok() == step;
        step = step.and_then(|step| step.checked_mul(extent));
        fits && step.is_some()
    })
}

/// The axes of extent above one, with neighbours merged where the outer steps over exactly the inner.
fn merged(extents: &[usize], strides: &[isize]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::with_capacity(extents.len());
    for (&extent, &stride) in extents.iter().zip(strides) {
        if extent == 1 {
            continue;
        }
        let steps = isize::try_from(extent).ok().and_then(|extent| stride.checked_mul(extent));
        match axes.last_mut() {
            Some(outer) if Some(outer.stride) == steps => *outer = Axis { extent: outer.extent * extent, stride },
            _ => axes.push(Axis { extent, stride }),
        }
    }
    axes
}
