//! The border with foreign memory: where a leaf lies, of what type, in what order, and whether it may be written.
//!
//! A [`Buffer`] is plain data and safe to make: it says nothing about who owns the memory. Running a kernel over it is
//! what needs a promise, and [`crate::exec::run`] states it. Nothing here or there makes a reference to foreign memory.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::rows::Rows;

macro_rules! dtypes {
    ($($variant:ident $name:literal $t:ty, $bytes:literal;)*) => {
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

            /// Bytes an element.
            #[must_use]
            pub const fn size(self) -> usize {
                match self { $(Self::$variant => $bytes),* }
            }

            /// Calls `visitor` with the Rust type of the elements.
            pub(crate) fn visit<V: DtypeVisitor>(self, visitor: V) -> V::Output {
                match self { $(Self::$variant => visitor.visit::<$t>()),* }
            }
        }
    };
}

dtypes! {
    Bool "bool"    Truth, 1;
    U8   "uint8"   u8, 1;
    U16  "uint16"  u16, 2;
    U32  "uint32"  u32, 4;
    U64  "uint64"  u64, 8;
    I8   "int8"    i8, 1;
    I16  "int16"   i16, 2;
    I32  "int32"   i32, 4;
    I64  "int64"   i64, 8;
    F32  "float32" f32, 4;
    F64  "float64" f64, 8;
}

impl Dtype {
    /// Whether kernels compute in this type.
    #[must_use]
    pub const fn computes(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

/// A byte that is a truth value: any byte is valid, all but zero are true.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Truth(u8);

/// What is called with the Rust type of a dtype.
pub(crate) trait DtypeVisitor {
    type Output;
    fn visit<T: Stored>(self) -> Self::Output;
}

/// A type that lies in foreign memory. Every bit pattern of it is valid.
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

/// The order in which the elements lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One after the other.
    Contiguous,
    /// One element that stands for all.
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

/// Some memory that a kernel reads or writes, element by element in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub(crate) pointer: *mut u8,
    pub(crate) length: usize,
    pub(crate) dtype: Dtype,
    pub(crate) writable: bool,
    pub(crate) layout: Layout,
    /// Which rows the elements are of the table that lies there; all of it where there are none.
    pub(crate) rows: Option<Arc<Rows>>,
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
    /// Whether a byte is in both.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end && self.start < self.end && other.start < other.end
    }
}

impl Buffer {
    /// `length` elements one after the other, at any alignment.
    ///
    /// # Errors
    /// `Memory` where the pointer is null (and there are elements) or the range leaves the address space.
    pub fn contiguous(pointer: *mut u8, length: usize, dtype: Dtype, writable: bool) -> Result<Self> {
        let bytes = length.checked_mul(dtype.size()).filter(|bytes| pointer.addr().checked_add(*bytes).is_some());
        if bytes.is_none() || bytes > Some(isize::MAX.unsigned_abs()) {
            return Err(Error::Memory(format!("{length} elements of {} leave the address space", dtype.name())));
        }
        if pointer.is_null() && length > 0 {
            return Err(Error::Memory(format!("{length} elements of {} at a null pointer", dtype.name())));
        }
        Ok(Self { pointer, length, dtype, writable, layout: Layout::Contiguous, rows: None })
    }

    /// One element, read as often as the leaf has elements.
    ///
    /// # Errors
    /// `Memory` where the pointer is null.
    pub fn repeated(pointer: *const u8, length: usize, dtype: Dtype) -> Result<Self> {
        let one = Self::contiguous(pointer.cast_mut(), 1, dtype, false)?;
        Ok(Self { length, layout: Layout::Repeated, ..one })
    }

    /// The elements of an array of the given extents, `strides` bytes apart; `pointer` is the element of index zero.
    ///
    /// Strides may be zero (the axis is broadcast) or negative. What is in fact contiguous is kept as such.
    ///
    /// # Errors
    /// `Shape` where there is not one stride an extent; `Memory` where the pointer is null or the elements leave the
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
        let product = extents.iter().try_fold(1usize, |all, extent| all.checked_mul(*extent));
        let Some(length) = product.filter(|product| isize::try_from(*product).is_ok()) else {
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
        let buffer = Self { pointer, length, dtype, writable, layout, rows: None };
        if pointer.is_null() || buffer.checked_span().is_none() {
            return Err(Error::Memory(format!("an array of shape {extents:?} leaves the address space")));
        }
        Ok(buffer)
    }

    /// Only these rows of the table that the buffer is.
    ///
    /// # Errors
    /// `Shape` where the table has no such row.
    pub fn of_rows(self, rows: Arc<Rows>) -> Result<Self> {
        if rows.reach().is_none_or(|reach| reach > self.length) {
            return Err(Error::Shape(format!("a table of {} elements has fewer rows than are asked for", self.length)));
        }
        Ok(Self { rows: Some(rows), ..self })
    }

    /// How many elements a kernel sees.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.as_ref().map_or(self.length, |rows| rows.len())
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type of the elements.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Whether it may be written.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Points the buffer at other memory of the same layout: for gradients, which move from step to step.
    pub fn set_pointer(&mut self, pointer: *mut u8) {
        self.pointer = pointer;
    }

    /// The bytes from the lowest element to the end of the highest.
    #[must_use]
    pub fn span(&self) -> Span {
        if self.layout == Layout::Contiguous {
            // `contiguous` saw that the range is in the address space.
            let start = self.pointer.addr();
            return Span { start, end: start.wrapping_add(self.length.wrapping_mul(self.dtype.size())) };
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

    /// Whether two elements of different index may lie on the same byte: then it must not be written.
    ///
    /// Says yes to a few exotic layouts in which no two elements meet, never no to one in which two do.
    #[must_use]
    pub fn overlaps_itself(&self) -> bool {
        match &self.layout {
            Layout::Contiguous => false,
            Layout::Repeated => self.length > 1,
            Layout::Strided(axes) => {
                // Sorted by stride, each step must leave what the smaller ones reach.
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

    /// Whether the two are the same elements in the same order, so that one may be updated in place of the other.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.pointer == other.pointer
            && self.length == other.length
            && self.dtype == other.dtype
            && self.layout == other.layout
            && self.rows == other.rows
    }
}

/// Whether each axis steps over exactly the inner ones.
fn is_contiguous(extents: &[usize], strides: &[isize], size: usize) -> bool {
    let mut step = size;
    extents.iter().zip(strides).rev().all(|(&extent, &stride)| {
        let fits = extent == 1 || usize::try_from(stride) == Ok(step);
        step *= extent;
        fits
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
