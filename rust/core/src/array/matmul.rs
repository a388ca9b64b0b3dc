//! Products of narrow matrices, and of stacks of them, for which the overhead of a library exceeds the cost of the
//! product. Each number is a sum in the order of the inner axis, the same bits on any instruction set and with any
//! number of threads. One of the files that touch foreign memory.

use std::ops::Range;

use rayon::ThreadPool;
use smallvec::SmallVec;

use crate::array::buffer::{Buffer, Dtype, Layout, elements};
use crate::error::{Error, Result};
use crate::parallel::share_evenly;
use crate::simd::dispatch::Isa;
use crate::simd::{Element, Lane, Simd, Task};

/// Rows of the left factor in a block.
const ROWS: usize = 256;
/// From this many products of two numbers on, threads share the work.
const PARALLEL: usize = 1 << 17;

/// A stack of matrices in memory: the address of the first number, and strides in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Factor<'a> {
    /// The address of the first number of the first matrix.
    pub pointer: *const u8,
    /// Bytes from a matrix to the next, along each axis of the stack.
    pub stack: &'a [isize],
    /// Bytes from a row to the next.
    pub row: isize,
    /// Bytes from a column to the next.
    pub column: isize,
}

// SAFETY: an address; `Product::compute` states what must hold where it is used.
unsafe impl Send for Factor<'_> {}
// SAFETY: as above.
unsafe impl Sync for Factor<'_> {}

/// A matrix product: for each index of a stack, a matrix of `rows * inner` numbers by one of `inner * columns`.
#[derive(Clone, Copy, Debug)]
pub struct Product<'a> {
    /// The extents of the stack.
    pub stack: &'a [usize],
    /// Rows of the left factor.
    pub rows: usize,
    /// Columns of the left factor, rows of the right one.
    pub inner: usize,
    /// Columns of the right factor.
    pub columns: usize,
    /// Of the numbers: `F32` or `F64`.
    pub dtype: Dtype,
    /// The left factor.
    pub left: Factor<'a>,
    /// The right factor.
    pub right: Factor<'a>,
}

/// The rows of the left factor, its columns, and those of the right one, for matrices and vectors of these extents; and the extents of the
/// result. A vector is a row on the left and a column on the right, an axis that the result has not. `None` for other factors.
#[must_use]
pub fn product_extents(one: &[usize], other: &[usize]) -> Option<([usize; 3], SmallVec<[usize; 4]>)> {
    let (left, right) = (one.len() > 1, other.len() > 1);
    let ([rows, inner], [its, columns]) = match (one, other) {
        ([inner], [its]) => ([1, *inner], [*its, 1]),
        ([rows, inner], [its]) => ([*rows, *inner], [*its, 1]),
        ([inner], [its, columns]) => ([1, *inner], [*its, *columns]),
        ([rows, inner], [its, columns]) => ([*rows, *inner], [*its, *columns]),
        _ => return None,
    };
    let shape = [(left, rows), (right, columns)].into_iter().filter_map(|(is_kept, extent)| is_kept.then_some(extent));
    (inner == its).then(|| ([rows, inner, columns], shape.collect()))
}

/// Whether a right factor of these rows and columns is so narrow that a product is faster here than by a library for large matrices.
#[must_use]
pub const fn is_narrow(rows: usize, columns: usize) -> bool {
    columns <= 32 && rows.saturating_mul(columns) <= 1 << 15
}

impl Product<'_> {
    /// Whether the right factor is so narrow that this is faster than a library for large matrices.
    #[must_use]
    pub fn is_narrow(&self) -> bool {
        is_narrow(self.inner, self.columns)
    }

    /// Writes the products to `to`, contiguously.
    ///
    /// # Errors
    /// `Shape` if `to` has not as many elements; `Dtype` if it is of another dtype, or that is not float32 or
    /// float64; `Memory` if it does not lie contiguous or is read-only.
    ///
    /// # Safety
    /// The memory of every number of the factors must be valid to read, and that of `to` to write, for the whole call;
    /// `to` must not overlap the factors, and nobody else may write any of it or read `to` meanwhile.
    pub unsafe fn compute(&self, to: &Buffer, isa: Isa, threads: Option<&ThreadPool>) -> Result<()> {
        self.check(to)?;
        if to.length == 0 {
            return Ok(());
        }
        let stacked: usize = self.stack.iter().product();
        let blocks = self.rows.div_ceil(ROWS);
        let parts = stacked * blocks;
        let work = BlockedProduct { product: *self, to: to.pointer, blocks };
        let threads = threads.filter(|_| to.length.saturating_mul(self.inner) >= PARALLEL);
        share_evenly(parts, threads, |parts| isa.run(Parts { work: &work, parts }));
        Ok(())
    }

    fn check(&self, to: &Buffer) -> Result<()> {
        let dimensions = [self.left.stack.len(), self.right.stack.len()];
        if elements(self.stack.iter().chain(&[self.rows, self.columns])) != Some(to.length)
            || dimensions != [self.stack.len(); 2]
        {
            let (length, rows, columns) = (to.length, self.rows, self.columns);
            return Err(Error::Shape(format!("{length} elements for products of {rows} rows and {columns} columns")));
        }
        if self.dtype != to.dtype || !matches!(to.dtype, Dtype::F32 | Dtype::F64) {
            let (given, product) = (self.dtype.name(), to.dtype.name());
            return Err(Error::Dtype(format!(
                "products of {given} as {product}, expected float32 or float64 for both"
            )));
        }
        if to.layout != Layout::Contiguous || to.rows.is_some() || !to.writable {
            return Err(Error::Memory("products are written to contiguous memory".into()));
        }
        Ok(())
    }
}

struct BlockedProduct<'a> {
    product: Product<'a>,
    to: *mut u8,
    blocks: usize,
}

// SAFETY: addresses; `Product::compute` states what must hold where they are used, and parts write apart.
unsafe impl Sync for BlockedProduct<'_> {}

/// Some of the parts: a part is a block of rows of one product; parts are numbered block by block.
struct Parts<'a> {
    work: &'a BlockedProduct<'a>,
    parts: Range<usize>,
}

impl Task for Parts<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self) {
        if self.work.product.dtype == Dtype::F32 {
            self.work.parts::<S::F32>(self.parts);
        } else {
            self.work.parts::<S::F64>(self.parts);
        }
    }
}

impl BlockedProduct<'_> {
    #[inline(always)]
    fn parts<L: Lane>(&self, parts: Range<usize>) {
        let Product { rows, inner, columns, left, .. } = self.product;
        let padded = columns.next_multiple_of(L::WIDTH);
        let mut right = vec![L::Element::from_f64(0.0); inner * padded];
        let mut packed = usize::MAX;
        for part in parts {
            let (place, first) = (part / self.blocks, part % self.blocks * ROWS);
            if packed != place {
                self.pack(place, padded, &mut right);
                packed = place;
            }
            let from = self.at(&left, place).wrapping_offset(first.cast_signed() * left.row);
            let to = self.to.cast::<L::Element>().wrapping_add((place * rows + first) * columns);
            let tiles =
                Tiles::<L> { left: from, row: left.row, column: left.column, right: &right, padded, columns, to };
            tiles.all(ROWS.min(rows - first));
        }
    }

    /// The address of the matrix at a place of the stack.
    #[inline(always)]
    fn at(&self, factor: &Factor, place: usize) -> *const u8 {
        let (mut rest, mut offset) = (place, 0);
        for (extent, stride) in self.product.stack.iter().zip(factor.stack).rev() {
            offset += (rest % extent).cast_signed() * stride;
            rest /= extent;
        }
        factor.pointer.wrapping_offset(offset)
    }

    /// Copies a right factor, its rows padded to whole lanes: the padding stays zero.
    #[inline(always)]
    fn pack<E: Element>(&self, place: usize, padded: usize, to: &mut [E]) {
        let Product { columns, right, .. } = self.product;
        let mut from = self.at(&right, place);
        for packed in to.chunks_exact_mut(padded) {
            let mut number = from;
            for place in &mut packed[..columns] {
                // SAFETY: the caller of `compute` promises every number of the factor.
                *place = unsafe { number.cast::<E>().read_unaligned() };
                number = number.wrapping_offset(right.column);
            }
            from = from.wrapping_offset(right.row);
        }
    }
}

/// Some rows of a left factor, and the packed right one.
struct Tiles<'a, L: Lane> {
    left: *const u8,
    row: isize,
    column: isize,
    right: &'a [L::Element],
    padded: usize,
    columns: usize,
    to: *mut L::Element,
}

impl<L: Lane> Tiles<'_, L> {
    #[inline(always)]
    fn all(&self, rows: usize) {
        let mut row = 0;
        while row < rows {
            row += match rows - row {
                8.. => self.rows::<8>(row),
                4.. => self.rows::<4>(row),
                _ => self.rows::<1>(row),
            };
        }
    }

    #[inline(always)]
    fn rows<const R: usize>(&self, row: usize) -> usize {
        let mut column = 0;
        while column < self.padded {
            column += if self.padded - column >= 2 * L::WIDTH {
                self.tile::<R, 2>(row, column)
            } else {
                self.tile::<R, 1>(row, column)
            };
        }
        R
    }

    /// `R` rows of the product, and as many columns as `C` lanes hold.
    #[inline(always)]
    fn tile<const R: usize, const C: usize>(&self, row: usize, column: usize) -> usize {
        let mut sums = [[L::zero(); C]; R];
        let mut left = self.left.wrapping_offset(row.cast_signed() * self.row);
        for right in self.right.chunks_exact(self.padded) {
            let right = right[column..][..C * L::WIDTH].as_ptr();
            // SAFETY: there are as many numbers as `C` lanes hold; the caller of `compute` promises those of the left
            // factor.
            unsafe {
                let lanes: [L; C] = std::array::from_fn(|lane| L::load(right.add(lane * L::WIDTH)));
                let mut number = left;
                for sums in &mut sums {
                    let factor = L::splat(number.cast::<L::Element>().read_unaligned().to_f64());
                    number = number.wrapping_offset(self.row);
                    for (sum, lane) in sums.iter_mut().zip(lanes) {
                        *sum = sum.add(factor.mul(lane));
                    }
                }
            }
            left = left.wrapping_offset(self.column);
        }
        for (at, sums) in (row..).zip(sums) {
            for (column, sum) in (column..).step_by(L::WIDTH).zip(sums) {
                let (to, left) = (self.to.wrapping_add(at * self.columns + column), self.columns - column);
                // SAFETY: the row and the columns are those of the product, for which `check` saw that there is room.
                unsafe { if left >= L::WIDTH { sum.store(to) } else { sum.store_part(to, left) } };
            }
        }
        C * L::WIDTH
    }
}
