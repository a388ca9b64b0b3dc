//! Sums of rows by their indices: the derivative of `x[indices]`. One of the files that touch foreign memory.

use std::ops::Add;

use crate::array::buffer::{Buffer, Dtype, Layout, elements};
use crate::error::{Error, Result};

/// Rows of an array by their indices along adjacent axes.
#[derive(Clone, Copy, Debug)]
pub struct Scatter<'a> {
    /// The number of elements along the axes before the indexed ones.
    pub outer: usize,
    /// The extents of the indexed axes.
    pub extents: &'a [usize],
    /// The number of elements of a row.
    pub inner: usize,
    /// For each indexed axis, the `int64` indices; negative ones count from the end.
    pub indices: &'a [Buffer],
}

impl Scatter<'_> {
    /// Adds the rows of `from`, one for each outer element and index, to the rows of `to`, in the order of the indices.
    /// Returns false, with nothing written, if an index is out of bounds.
    ///
    /// # Errors
    /// `Shape` if the numbers of elements do not fit; `Dtype` if indices are not int64, or `from` and `to` are not alike
    /// float32 or float64; `Memory` if a buffer is not contiguous, or `to` is read-only.
    ///
    /// # Safety
    /// The memory of `from` and of the indices must be valid to read, and that of `to` to write, for the whole call; `to`
    /// must not overlap the others, and nobody else may write any of them or read `to` meanwhile.
    pub unsafe fn add(&self, from: &Buffer, to: &Buffer) -> Result<bool> {
        self.check(from, to)?;
        // SAFETY: the caller's promise; `check` has compared lengths, dtypes and layouts.
        let Some(rows) = (unsafe { self.rows() }) else { return Ok(false) };
        // SAFETY: as above; each row is below the product of the extents.
        unsafe {
            match to.dtype {
                Dtype::F32 => self.add_rows::<f32>(&rows, from, to),
                _ => self.add_rows::<f64>(&rows, from, to),
            }
        }
        Ok(true)
    }

    fn check(&self, from: &Buffer, to: &Buffer) -> Result<()> {
        let count = self.indices.first().map_or(0, Buffer::len);
        let expected =
            [count, elements(self.extents).unwrap_or(usize::MAX)].map(|rows| elements(&[self.outer, rows, self.inner]));
        if self.indices.len() != self.extents.len()
            || self.indices.iter().any(|indices| indices.len() != count)
            || expected != [from, to].map(|buffer| Some(buffer.length))
        {
            let (given, sums) = (from.length, to.length);
            return Err(Error::Shape(format!("{given} elements at {count} indices of {sums} elements")));
        }
        if self.indices.iter().any(|indices| indices.dtype != Dtype::I64)
            || from.dtype != to.dtype
            || !matches!(to.dtype, Dtype::F32 | Dtype::F64)
        {
            let (given, sums) = (from.dtype.name(), to.dtype.name());
            return Err(Error::Dtype(format!(
                "sums of {given} as {sums}, expected float32 or float64, and int64 indices"
            )));
        }
        let is_plain = |buffer: &Buffer| buffer.layout == Layout::Contiguous && buffer.rows.is_none();
        if !self.indices.iter().chain([from, to]).all(is_plain) || !to.writable {
            return Err(Error::Memory("expected contiguous memory, and a writable result".into()));
        }
        Ok(())
    }

    /// The number of the row of each index; `None` if one is out of bounds.
    ///
    /// # Safety
    /// As `add`, after `check`.
    #[expect(clippy::cast_ptr_alignment, reason = "the indices are read at any alignment")]
    unsafe fn rows(&self) -> Option<Vec<usize>> {
        let count = self.indices.first().map_or(0, Buffer::len);
        let mut rows = vec![0; count];
        for (indices, extent) in self.indices.iter().zip(self.extents) {
            let from = indices.pointer.cast::<i64>();
            for (at, row) in rows.iter_mut().enumerate() {
                // SAFETY: `at` is below the number of indices; they need not be aligned.
                let index = unsafe { from.add(at).read_unaligned() };
                let index =
                    usize::try_from(if index < 0 { index + i64::try_from(*extent).ok()? } else { index }).ok()?;
                *row = *row * extent + Some(index).filter(|index| index < extent)?;
            }
        }
        Some(rows)
    }

    /// # Safety
    /// As `add`, after `check`, of buffers of `T`; each row is below the product of the extents.
    unsafe fn add_rows<T: Copy + Add<Output = T>>(&self, rows: &[usize], from: &Buffer, to: &Buffer) {
        let (mut term, sums) = (from.pointer.cast::<T>().cast_const(), to.pointer.cast::<T>());
        let stride = to.length.checked_div(self.outer).unwrap_or_default();
        for outer in 0..self.outer {
            for row in rows {
                // SAFETY: the product of outer extent and stride is the length of `to`, and the row lies in the stride.
                let sum = unsafe { sums.add(outer * stride + row * self.inner) };
                for at in 0..self.inner {
                    // SAFETY: both have this many elements from here; they need not be aligned.
                    unsafe {
                        let sum = sum.add(at);
                        sum.write_unaligned(sum.read_unaligned() + term.add(at).read_unaligned());
                    }
                }
                // SAFETY: at most one past the last element of `from`.
                term = unsafe { term.add(self.inner) };
            }
        }
    }
}
