//! Runs of elementwise entries of a recording, and of sums and extrema of their results, computed in one pass over memory.
//!
//! Those along axes other than the first are added up part by part: a part is some indices of the first axis, whose numbers are in the cache.

mod fold;
mod foreign;
pub mod small;
mod source;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::ThreadPool;
use smallvec::SmallVec;

pub use self::fold::Fold;
pub use self::foreign::{Foreign, Function};
pub use self::source::{Group, Source};
use super::batch::{Batch, Leaf};
use super::interpreter::Scratch;
use super::run::{run, run_one};
use crate::array::buffer::{Buffer, Dtype};
use crate::array::shape::Reduction;
use crate::array::sum::Axes;
use crate::error::Result;
use crate::kernel::{Kernel, Node, Wanted};
use crate::op::Elementwise;
use crate::parallel::share_evenly;
use crate::simd::dispatch::Isa;

/// The calls of a run as a kernel: an input for each value that it reads, an output or a result for each that is needed later.
#[derive(Debug)]
pub struct ArrayRun {
    kernel: Kernel,
    group: Group,
    /// Each call that is needed later.
    writes: SmallVec<[Write; 4]>,
    /// The number of outputs of the kernel that are needed for sums along axes alone.
    temporary: usize,
}

/// A result of a run.
#[derive(Debug)]
enum Write {
    /// An array of this dtype, an output of the kernel.
    Array(Dtype),
    /// A sum of all elements, a result of the kernel, to be divided by the number.
    Total(f64),
    /// The results along axes of an output of the kernel.
    Axes(usize, Reduction, Fold),
}

/// The computation of a call of a run.
#[derive(Clone, Debug)]
pub enum Member {
    /// An op.
    Elementwise(Elementwise),
    /// An op whose result is an array of truth values, 1 or 0 within the run.
    Truth(Elementwise),
    /// The sum of all elements.
    Sum,
    /// The sum divided by the number of elements.
    Mean,
    /// The results along axes other than the first.
    Axes(Reduction, Fold),
}

/// A call of a run, and the positions of its arguments, first among the values read, then among the calls.
pub type Operation = (Member, SmallVec<[usize; 3]>);

impl Group {
    /// Whether the sum of an array is, to the bit, the one that a kernel computes in its pass: chunks of both are added up
    /// alike from 64 elements on. A sum of few elements is quicker by itself.
    #[must_use]
    pub fn has_sums(&self) -> bool {
        const CHUNK: usize = 4096;
        let length = self.len();
        length >= CHUNK && (length.is_multiple_of(CHUNK) || length % CHUNK >= 64)
    }

    /// The results along axes of an array as a part of a run: those of a part of the array are results of the whole. `None` for small arrays,
    /// whose sums are quicker by themselves, and where the first axis is among them.
    #[must_use]
    pub fn folded(&self, axes: &[isize], keepdims: bool, fold: Fold) -> Option<Member> {
        const SMALLEST: usize = 1 << 12;
        const LONGEST: usize = 1 << 16;
        let (first, rest) = self.shape.split_first()?;
        let each: usize = rest.iter().product();
        let dimensions = self.shape.len().cast_signed();
        let is_first = axes.iter().any(|axis| *axis == 0 || *axis == -dimensions);
        if is_first || *first < 2 || each > LONGEST || first.saturating_mul(each) < SMALLEST {
            return None;
        }
        let reduction = Reduction::over(&self.shape, Some(axes), keepdims)?;
        let is_whole = reduction.axes.outer.is_multiple_of(*first) && reduction.axes.count > 1;
        (is_whole && fold.fits(reduction.axes)).then_some(Member::Axes(reduction, fold))
    }
}

impl ArrayRun {
    /// The kernel of a run; `None` where it is too large for one, or has sums of all elements beside sums along axes.
    ///
    /// # Panics
    /// Panics where a position is out of range.
    #[must_use]
    pub fn new(operations: &[Operation], reads: usize, writes: &[usize], group: &Group) -> Option<Self> {
        let position = |at: usize| u32::try_from(at).ok();
        let mut nodes = (0..reads).map(|at| position(at).map(Node::Leaf)).collect::<Option<Vec<_>>>()?;
        // The node of each value; sums along axes have that of their argument, and nothing in the run reads them.
        let mut node_of: Vec<u32> = (0..reads).map(position).collect::<Option<_>>()?;
        for (member, args) in operations {
            let mut ids = [0; 3];
            for (id, arg) in ids.iter_mut().zip(args) {
                *id = node_of[*arg];
            }
            match member {
                Member::Axes(..) => {
                    node_of.push(ids[0]);
                    continue;
                }
                Member::Elementwise(op) | Member::Truth(op) => nodes.push(Node::Apply(*op, ids)),
                Member::Sum | Member::Mean => nodes.push(Node::Sum(ids[0])),
            }
            node_of.push(position(nodes.len() - 1)?);
        }
        #[allow(clippy::cast_precision_loss, reason = "no array has 2^53 elements")]
        let length = group.len() as f64;
        let is_array = |at: &&usize| matches!(operations[**at].0, Member::Elementwise(_) | Member::Truth(_));
        let mut outputs: Vec<u32> = writes.iter().filter(is_array).map(|at| node_of[reads + at]).collect();
        let (arrays, mut results, mut kinds) = (outputs.len(), Vec::new(), SmallVec::new());
        for at in writes {
            let node = node_of[reads + at];
            kinds.push(match &operations[*at].0 {
                Member::Elementwise(_) => Write::Array(group.dtype),
                Member::Truth(_) => Write::Array(Dtype::Bool),
                Member::Axes(reduction, fold) => {
                    let known = outputs.iter().position(|output| *output == node);
                    let output = known.unwrap_or_else(|| {
                        outputs.push(node);
                        outputs.len() - 1
                    });
                    Write::Axes(output, reduction.clone(), *fold)
                }
                total => {
                    results.push(node);
                    Write::Total(if matches!(total, Member::Mean) { length } else { 1.0 })
                }
            });
        }
        let has_axes = kinds.iter().any(|kind| matches!(kind, Write::Axes(..)));
        if has_axes && !(results.is_empty() && outputs.iter().all(|node| *node as usize >= reads)) {
            return None;
        }
        let kernel =
            Kernel::compile_wanted(&nodes, &Wanted { outputs: &outputs, results: &results, guard: None }).ok()?;
        Some(Self { kernel, group: group.clone(), writes: kinds, temporary: outputs.len() - arrays })
    }

    /// The shape and dtype of the arrays that it computes.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The shape and dtype of each result; `None` for a number, the sum or mean of all elements.
    pub fn arrays(&self) -> impl Iterator<Item = Option<(&[usize], Dtype)>> {
        self.writes.iter().map(|write| match write {
            Write::Array(dtype) => Some((&self.group.shape[..], *dtype)),
            Write::Axes(_, reduction, _) => Some((&reduction.shape[..], self.group.dtype)),
            Write::Total(_) => None,
        })
    }

    /// Computes the arrays of the results into `arrays`, new and contiguous, and returns the numbers; `None` where a value is no array
    /// of the group. With a pool its threads share the work.
    ///
    /// # Errors
    /// As [`run`].
    ///
    /// # Safety
    /// As [`run`], for the memory of sources and arrays.
    pub unsafe fn compute(
        &self,
        sources: &[Source],
        arrays: &[Buffer],
        isa: Isa,
        threads: Option<&ThreadPool>,
        scratch: &mut Scratch,
    ) -> Result<Option<Vec<f64>>> {
        let (mut outputs, mut sums) = (SmallVec::<[Buffer; 4]>::new(), SmallVec::<[Sums; 2]>::new());
        let written = self.writes.iter().filter(|write| !matches!(write, Write::Total(_)));
        for (write, to) in written.zip(arrays) {
            match write {
                Write::Axes(output, reduction, fold) => {
                    sums.push(Sums { output: *output, axes: reduction.axes, fold: *fold, to });
                }
                _ => outputs.push(to.clone()),
            }
        }
        if !sums.is_empty() {
            let parts = Parts { run: self, sources, outputs: &outputs, sums: &sums, isa };
            // SAFETY: the caller's promise.
            return unsafe { parts.compute(threads) }.map(|()| Some(Vec::new()));
        }
        let inputs = sources.iter().map(|source| source.part(&self.group.shape, 0..usize::MAX));
        let Some(inputs) = inputs.collect::<Option<SmallVec<[Buffer; 8]>>>() else { return Ok(None) };
        let leaf = self.leaf(&inputs, &outputs, self.group.len());
        if outputs.len() == self.writes.len() && threads.is_none() {
            // SAFETY: the caller's promise.
            unsafe { run_one(&self.kernel, &[], &leaf, isa, scratch) }?;
            return Ok(Some(Vec::new()));
        }
        // SAFETY: the caller's promise.
        let totals = unsafe { run(&[Batch { kernel: &self.kernel, scalars: &[], leaves: &[leaf] }], isa, threads) }?;
        let divisors = self.writes.iter().filter_map(|write| match write {
            Write::Total(divisor) => Some(*divisor),
            Write::Array(_) | Write::Axes(..) => None,
        });
        Ok(Some(totals.into_iter().flatten().flatten().zip(divisors).map(|(total, divisor)| total / divisor).collect()))
    }

    fn leaf<'a>(&self, inputs: &'a [Buffer], outputs: &'a [Buffer], length: usize) -> Leaf<'a> {
        Leaf { inputs, outputs, length, dtype: self.group.dtype, scalar_set: 0, noise_key: 0, first: 0 }
    }
}

/// The results along axes of an output of a kernel.
struct Sums<'a> {
    output: usize,
    axes: Axes,
    fold: Fold,
    to: &'a Buffer,
}

/// The computation of a run by parts.
struct Parts<'a> {
    run: &'a ArrayRun,
    sources: &'a [Source],
    outputs: &'a [Buffer],
    sums: &'a [Sums<'a>],
    isa: Isa,
}

/// So many elements are computed before they are added up.
const PART: usize = 1 << 13;

impl Parts<'_> {
    /// # Safety
    /// As [`run`], for the memory of sources, outputs and sums.
    unsafe fn compute(&self, threads: Option<&ThreadPool>) -> Result<()> {
        let shape = &self.run.group.shape;
        let each: usize = shape[1..].iter().product();
        let rows = (PART / each.max(1)).max(1);
        let failed = Mutex::new(Ok(()));
        share_evenly(shape[0].div_ceil(rows), threads, |parts| {
            // SAFETY: the caller's promise; each part has memory of its own.
            let done = unsafe { self.range(parts.start * rows..shape[0].min(parts.end * rows), rows, each) };
            if done.is_err() {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = done;
            }
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Safety
    /// As `compute`.
    unsafe fn range(&self, range: Range<usize>, rows: usize, each: usize) -> Result<()> {
        let Group { shape, dtype } = &self.run.group;
        let (dtype, mut scratch) = (*dtype, Scratch::default());
        let mut memory: Vec<u64> = vec![0; (self.run.temporary * rows * each * dtype.size()).div_ceil(8)];
        let temporary = memory.as_mut_ptr().cast::<u8>();
        for start in range.clone().step_by(rows) {
            let end = range.end.min(start + rows);
            let length = (end - start) * each;
            let inputs = self.sources.iter().map(|source| source.part(shape, start..end));
            let Some(inputs) = inputs.collect::<Option<SmallVec<[Buffer; 8]>>>() else {
                unreachable!("a part of an array is an array")
            };
            let at = |pointer: *mut u8, elements: usize, dtype: Dtype| pointer.wrapping_add(elements * dtype.size());
            let mut outputs = SmallVec::<[Buffer; 4]>::new();
            for output in self.outputs {
                let first = at(output.pointer(), start * each, output.dtype());
                outputs.push(Buffer::contiguous(first, length, output.dtype(), true)?);
            }
            for number in 0..self.run.temporary {
                outputs.push(Buffer::contiguous(at(temporary, number * rows * each, dtype), length, dtype, true)?);
            }
            let leaf = self.run.leaf(&inputs, &outputs, length);
            // SAFETY: the caller's promise; temporary memory is that of this call.
            unsafe { run_one(&self.run.kernel, &[], &leaf, self.isa, &mut scratch) }?;
            for Sums { output, axes, fold, to } in self.sums {
                let outer = axes.outer / shape[0];
                let axes = Axes { outer: outer * (end - start), ..*axes };
                let first = at(to.pointer(), outer * axes.inner * start, dtype);
                let to = Buffer::contiguous(first, axes.outer * axes.inner, dtype, true)?;
                // SAFETY: as above.
                unsafe { fold.compute(&outputs[*output], &to, axes, self.isa) }?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `square(x * row + 0.5)` of a 64 x 128 array: the square is 1, and what `also` adds reads it.
    fn run_of(also: Member, writes: &[usize], group: &Group) -> Option<ArrayRun> {
        let op = |op, args: &[usize]| (Member::Elementwise(op), SmallVec::from_slice(args));
        let operations = [
            op(Elementwise::Multiply, &[0, 1]),
            op(Elementwise::Add, &[3, 2]),
            op(Elementwise::Square, &[4]),
            (also, SmallVec::from_slice(&[5])),
        ];
        ArrayRun::new(&operations, 3, writes, group)
    }

    const ROWS: usize = 64;
    const COLUMNS: usize = 128;

    fn group() -> Group {
        Group { shape: SmallVec::from_slice(&[ROWS, COLUMNS]), dtype: Dtype::F64 }
    }

    /// The arrays that a run writes, of these lengths, and its numbers, over an array, a row that is repeated, and a number.
    fn results(run: &ArrayRun, lengths: &[usize], threads: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
        let (mut x, mut row) = inputs();
        let source = |of: &mut Vec<f64>, extents: &[usize], strides: &[isize]| {
            Source::array(of.as_mut_ptr().cast(), extents, strides, Dtype::F64, &group().shape).unwrap()
        };
        let sources = [
            source(&mut x, &[ROWS, COLUMNS], &[COLUMNS.cast_signed() * 8, 8]),
            source(&mut row, &[COLUMNS], &[8]),
            Source::Number(0.5),
        ];
        let mut arrays: Vec<Vec<f64>> = lengths.iter().map(|length| vec![f64::NAN; *length]).collect();
        let buffer = |array: &mut Vec<f64>| {
            Buffer::contiguous(array.as_mut_ptr().cast(), array.len(), Dtype::F64, true).unwrap()
        };
        let buffers: Vec<Buffer> = arrays.iter_mut().map(buffer).collect();
        let pool = (threads > 1).then(|| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
        // SAFETY: all memory is that of vectors and of a number that outlive the call.
        let numbers = unsafe { run.compute(&sources, &buffers, Isa::detect(), pool.as_ref(), &mut Scratch::default()) };
        (arrays, numbers.unwrap().unwrap())
    }

    fn inputs() -> (Vec<f64>, Vec<f64>) {
        let numbers = |count: u32| (0..count).map(|k| f64::from(k % 17) / 8.0 - 1.0).collect();
        (numbers(8192), numbers(128))
    }

    fn squares() -> Vec<f64> {
        let (x, row) = inputs();
        x.iter().zip(row.iter().cycle()).map(|(x, row)| (x * row + 0.5).powi(2)).collect()
    }

    #[test]
    fn arrays_and_totals_are_computed_in_one_pass() {
        let expected = squares();
        for threads in [1, 2] {
            let run = run_of(Member::Sum, &[2, 3], &group()).unwrap();
            assert_eq!(run.arrays().collect::<Vec<_>>(), [Some((&[ROWS, COLUMNS][..], Dtype::F64)), None]);
            let (arrays, numbers) = results(&run, &[ROWS * COLUMNS], threads);
            assert_eq!(arrays, std::slice::from_ref(&expected));
            let total: f64 = expected.iter().sum(); // exact: multiples of 2^-12
            assert_eq!(numbers, [total]);
            let run = run_of(Member::Mean, &[3], &group()).unwrap();
            assert_eq!(results(&run, &[], threads).1, [total / 8192.0]);
            let run = run_of(Member::Elementwise(Elementwise::Negative), &[3], &group()).unwrap();
            let (arrays, numbers) = results(&run, &[ROWS * COLUMNS], threads);
            assert_eq!((&arrays[0], numbers), (&expected.iter().map(|x| -x).collect(), vec![]));
        }
    }

    #[test]
    fn truth_values_are_read_and_written_as_bytes() {
        let op = |member, args: &[usize]| (member, SmallVec::from_slice(args));
        let operations = [
            op(Member::Truth(Elementwise::Greater), &[0, 2]),
            op(Member::Truth(Elementwise::LogicalAnd), &[3, 1]),
            op(Member::Elementwise(Elementwise::Where), &[4, 0, 2]),
        ];
        let (x, _) = inputs();
        let mask: Vec<u8> = (0..COLUMNS).map(|k| if k % 3 == 0 { 7 } else { 0 }).collect(); // any byte but 0 is true
        let expected: Vec<u8> = x.iter().zip(mask.iter().cycle()).map(|(x, at)| (*x > 0.5 && *at > 0).into()).collect();
        let chosen: Vec<f64> = x.iter().zip(&expected).map(|(x, is)| if *is == 1 { *x } else { 0.5 }).collect();
        let run = ArrayRun::new(&operations, 3, &[1, 2], &group()).unwrap();
        let shape = &[ROWS, COLUMNS][..];
        assert_eq!(run.arrays().collect::<Vec<_>>(), [Some((shape, Dtype::Bool)), Some((shape, Dtype::F64))]);
        let array = |first: *const u8, extents: &[usize], strides: &[isize], dtype| {
            Source::array(first.cast_mut(), extents, strides, dtype, shape).unwrap()
        };
        let sources = [
            array(x.as_ptr().cast(), shape, &[COLUMNS.cast_signed() * 8, 8], Dtype::F64),
            array(mask.as_ptr(), &[COLUMNS], &[1], Dtype::Bool),
            Source::Number(0.5),
        ];
        let (mut truths, mut numbers) = (vec![9u8; ROWS * COLUMNS], vec![f64::NAN; ROWS * COLUMNS]);
        let arrays = [
            Buffer::contiguous(truths.as_mut_ptr(), truths.len(), Dtype::Bool, true).unwrap(),
            Buffer::contiguous(numbers.as_mut_ptr().cast(), numbers.len(), Dtype::F64, true).unwrap(),
        ];
        // SAFETY: all memory is that of vectors that outlive the call.
        let done = unsafe { run.compute(&sources, &arrays, Isa::detect(), None, &mut Scratch::default()) };
        assert!(done.unwrap().unwrap().is_empty());
        assert_eq!((truths, numbers), (expected, chosen));
    }

    #[test]
    fn sums_along_axes_are_added_up_part_by_part() {
        let expected: Vec<f64> = squares().chunks(COLUMNS).map(|row| row.iter().sum()).collect();
        for (fold, divisor) in [(Fold::Sum, 1.0), (Fold::Mean, 128.0)] {
            let member = group().folded(&[-1], false, fold).unwrap();
            let run = run_of(member, &[3], &group()).unwrap();
            assert_eq!(run.arrays().collect::<Vec<_>>(), [Some((&[ROWS][..], Dtype::F64))]);
            for threads in [1, 2] {
                let (arrays, _) = results(&run, &[ROWS], threads);
                assert_eq!(arrays[0], expected.iter().map(|sum| sum / divisor).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn sums_of_few_elements_or_along_the_first_axis_are_no_part_of_a_run() {
        let small = Group { shape: SmallVec::from_slice(&[4, 4]), dtype: Dtype::F64 };
        assert!(small.folded(&[1], false, Fold::Sum).is_none() && !small.has_sums());
        assert!(group().folded(&[0], false, Fold::Sum).is_none() && group().has_sums());
        assert!(group().folded(&[-2, 1], false, Fold::Sum).is_none());
    }
}
