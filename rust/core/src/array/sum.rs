//! Sums along axes, in an order that depends only on the lengths: the same bits on any instruction set, with any number
//! of threads. One of the files that touch foreign memory.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::ThreadPool;

use crate::array::buffer::{Buffer, Dtype, Layout};
use crate::error::{Error, Result};
use crate::parallel::share_evenly;
use crate::simd::dispatch::Isa;
use crate::simd::{Element, Simd, Task};

/// Rows in a chunk, whose sum is computed separately, so that threads can share a long axis.
const ROWS: usize = 4096;
/// Columns in a block.
const COLUMNS: usize = 64;
/// From this many elements on, threads share the work.
const PARALLEL: usize = 1 << 15;

/// An array with its axes merged to three: those before the summed axes, the summed axes, those after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes {
    /// The number of sums of each column.
    pub outer: usize,
    /// The number of summands of a sum.
    pub count: usize,
    /// The number of columns.
    pub inner: usize,
}

/// Writes the sums along the middle axis of `from`, added up in `f64` and divided by `divisor`, to `to`.
///
/// # Errors
/// `Shape` if a buffer has not as many elements as `axes` say; `Dtype` if the two are not alike float32 or
/// float64; `Memory` if one does not lie contiguous, or `to` is read-only.
///
/// # Safety
/// The memory of `from` must be valid to read, and that of `to` to write, for the whole call; the two must not overlap,
/// and nobody else may write either or read `to` meanwhile.
pub unsafe fn sum(
    from: &Buffer,
    to: &Buffer,
    axes: Axes,
    divisor: f64,
    isa: Isa,
    threads: Option<&ThreadPool>,
) -> Result<()> {
    check(from, to, axes)?;
    let blocks = axes.inner.div_ceil(COLUMNS);
    let chunks = axes.count.div_ceil(ROWS).max(1);
    let partials = if chunks > 1 { axes.outer * chunks * axes.inner } else { 0 };
    let sums = Sums {
        from: Pointer(from.pointer),
        to: Pointer(to.pointer),
        is_single: from.dtype == Dtype::F32,
        axes,
        divisor,
        blocks,
        chunks,
        partials: &(0..partials).map(|_| AtomicU64::new(0)).collect::<Vec<_>>(),
    };
    let parts = axes.outer * chunks * blocks;
    let threads = threads.filter(|_| from.length >= PARALLEL);
    share_evenly(parts, threads, |parts| isa.run(Parts { sums: &sums, parts }));
    if chunks > 1 {
        sums.add_chunks();
    }
    Ok(())
}

fn check(from: &Buffer, to: &Buffer, axes: Axes) -> Result<()> {
    let Axes { outer, count, inner } = axes;
    let sums = outer.checked_mul(inner);
    if sums.and_then(|sums| sums.checked_mul(count)) != Some(from.length) || sums != Some(to.length) {
        let (given, sums) = (from.length, to.length);
        return Err(Error::Shape(format!("{given} elements to {sums} sums, with axes of {outer}, {count}, {inner}")));
    }
    if from.dtype != to.dtype || !matches!(from.dtype, Dtype::F32 | Dtype::F64) {
        let (given, sums) = (from.dtype.name(), to.dtype.name());
        return Err(Error::Dtype(format!("sums of {given} as {sums}, expected float32 or float64 for both")));
    }
    let is_plain = |buffer: &Buffer| buffer.layout == Layout::Contiguous && buffer.rows.is_none();
    if !is_plain(from) || !is_plain(to) || !to.writable {
        return Err(Error::Memory("sums are of contiguous memory, and written to such".into()));
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Pointer(*mut u8);

// SAFETY: an address; `sum` states what must hold where it is used.
unsafe impl Sync for Pointer {}

struct Sums<'a> {
    from: Pointer,
    to: Pointer,
    is_single: bool,
    axes: Axes,
    divisor: f64,
    blocks: usize,
    chunks: usize,
    /// The sums of chunks, as bits: by outer index, chunk and column. Empty if there is one chunk.
    partials: &'a [AtomicU64],
}

/// Some of the parts: a part is a block of columns of a chunk of rows; parts are numbered column by column, chunk by
/// chunk.
struct Parts<'a> {
    sums: &'a Sums<'a>,
    parts: Range<usize>,
}

impl Task for Parts<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self) {
        if self.sums.is_single { self.sums.parts::<f32>(self.parts) } else { self.sums.parts::<f64>(self.parts) }
    }
}

impl Sums<'_> {
    #[inline(always)]
    fn parts<E: Element>(&self, parts: Range<usize>) {
        match (self.axes.inner, self.chunks) {
            (1, 1) => parts.for_each(|outer| self.write::<E>(outer, self.row::<E>(outer, 0))),
            (1, chunks) => parts.for_each(|part| {
                let total = self.row::<E>(part / chunks, part % chunks);
                self.partials[part].store(total.to_bits(), Relaxed);
            }),
            _ => parts.for_each(|part| self.block::<E>(part)),
        }
    }

    /// The first number of a chunk, and how many rows it has.
    #[inline(always)]
    fn chunk<E: Element>(&self, outer: usize, chunk: usize) -> (*const E, usize) {
        let Axes { count, inner, .. } = self.axes;
        let from = self.from.0.cast::<E>().cast_const();
        (from.wrapping_add((outer * count + chunk * ROWS) * inner), ROWS.min(count - chunk * ROWS))
    }

    #[inline(always)]
    fn row<E: Element>(&self, outer: usize, chunk: usize) -> f64 {
        let (from, count) = self.chunk::<E>(outer, chunk);
        // SAFETY: the numbers are those of the array, which `check` saw to have as many, and which the caller of `sum`
        // promised to be valid.
        unsafe { if count < SHORT { row::<E, 4>(from, count) } else { row::<E, 16>(from, count) } }
    }

    #[inline(always)]
    fn block<E: Element>(&self, part: usize) {
        let inner = self.axes.inner;
        let (column, rest) = (part % self.blocks * COLUMNS, part / self.blocks);
        let (chunk, outer) = (rest % self.chunks, rest / self.chunks);
        let (from, rows) = self.chunk::<E>(outer, chunk);
        let mut totals = [0.0; COLUMNS];
        let totals = &mut totals[..COLUMNS.min(inner - column)];
        // SAFETY: as in `row`, and the columns are less than `inner`.
        unsafe { add_rows(from.wrapping_add(column), rows, inner, totals) };
        for (at, total) in (column..).zip(totals) {
            if self.chunks > 1 {
                self.partials[rest * inner + at].store(total.to_bits(), Relaxed);
            } else {
                self.write::<E>(outer * inner + at, *total);
            }
        }
    }

    #[inline(always)]
    fn write<E: Element>(&self, at: usize, total: f64) {
        let to = self.to.0.cast::<E>().wrapping_add(at);
        // SAFETY: `at` is less than the number of sums, which `check` compared; the caller of `sum` promised the
        // memory.
        unsafe { to.write_unaligned(E::from_f64(total / self.divisor)) };
    }

    /// The sums of the chunks, added up in order.
    fn add_chunks(&self) {
        let Axes { outer, inner, .. } = self.axes;
        for at in 0..outer * inner {
            let (outer, column) = (at / inner, at % inner);
            let partial = |chunk: usize| &self.partials[(outer * self.chunks + chunk) * inner + column];
            let total = (0..self.chunks).fold(0.0, |sum, chunk| sum + f64::from_bits(partial(chunk).load(Relaxed)));
            if self.is_single { self.write::<f32>(at, total) } else { self.write::<f64>(at, total) }
        }
    }
}

/// Below this many numbers, a row is added up as few of them at once.
const SHORT: usize = 64;

/// The sum of consecutive numbers: number `i` belongs to summand `i % N`, and the summands are added up as a tree.
///
/// # Safety
/// There are `count` numbers at `from`.
#[inline(always)]
unsafe fn row<E: Element, const N: usize>(from: *const E, count: usize) -> f64 {
    let mut sums = [0.0; N];
    let whole = count - count % N;
    for start in (0..whole).step_by(N) {
        // SAFETY: `start + N <= count`.
        unsafe { add_row(from.add(start), &mut sums) };
    }
    // SAFETY: `whole` and what is left are `count`.
    unsafe { add_row(from.add(whole), &mut sums[..count - whole]) };
    balanced(sums)
}

/// The sum of numbers, as many as a power of two, as a balanced tree.
#[inline(always)]
pub(crate) fn balanced<const N: usize>(mut sums: [f64; N]) -> f64 {
    let mut half = N / 2;
    while half > 0 {
        for k in 0..half {
            sums[k] += sums[k + half];
        }
        half /= 2;
    }
    sums[0]
}

/// Adds rows, `stride` numbers apart, to the totals of their first columns: four rows at a time.
///
/// # Safety
/// There are as many rows, of `stride` numbers or at least of as many as there are totals, at `from`.
#[inline(always)]
unsafe fn add_rows<E: Element>(from: *const E, rows: usize, stride: usize, totals: &mut [f64]) {
    let mut row = from;
    for _ in 0..rows / 4 {
        // SAFETY: four more rows are there.
        let four = unsafe { [row, row.add(stride), row.add(stride * 2), row.add(stride * 3)] };
        for (column, total) in (0..totals.len()).zip(totals.iter_mut()) {
            // SAFETY: the caller promises the column in each row.
            let [a, b, c, d] = four.map(|row| unsafe { row.add(column).read_unaligned() }.to_f64());
            *total += (a + b) + (c + d);
        }
        row = row.wrapping_add(stride * 4);
    }
    for _ in 0..rows % 4 {
        // SAFETY: one more row is there.
        unsafe { add_row(row, totals) };
        row = row.wrapping_add(stride);
    }
}

/// Adds consecutive numbers, each to its own total.
///
/// # Safety
/// There are as many numbers as totals at `from`.
#[inline(always)]
unsafe fn add_row<E: Element>(from: *const E, totals: &mut [f64]) {
    for (k, total) in (0..totals.len()).zip(totals) {
        // SAFETY: promised by the caller.
        *total += unsafe { from.add(k).read_unaligned() }.to_f64();
    }
}
