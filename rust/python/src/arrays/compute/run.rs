//! Runs of elementwise entries, and of sums of their results, computed in one pass over memory.
//!
//! Sums along axes other than the first are added up part by part: a part is some indices of the first axis, whose numbers are in the cache.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::array::shape::{Reduction, Strides, broadcast_strides, contiguous_strides};
use oxigrad_core::array::sum::{Axes, sum};
use oxigrad_core::error::Result;
use oxigrad_core::exec::{self, Batch, Leaf, Scratch};
use oxigrad_core::kernel::{Kernel, Node, Wanted};
use oxigrad_core::op::Elementwise;
use oxigrad_core::parallel::share_evenly;
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::arrays::compute::array_pool;
use crate::arrays::compute::elementwise::{DETACHED, execute};
use crate::arrays::memory::contiguous::Contiguous;
use crate::arrays::memory::host_array::HostArray;
use crate::arrays::value::Value;
use crate::error::IntoPython;
use crate::threads::{isa, pool};

/// The shape and dtype of the results of a group of elementwise entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub shape: SmallVec<[usize; 4]>,
    pub dtype: Dtype,
}

/// The calls of a run as a kernel: an input for each value that it reads, an output or a result for each that is needed later.
pub struct Run {
    kernel: Kernel,
    group: Group,
    /// Each call that is needed later.
    writes: SmallVec<[Write; 4]>,
    /// The number of outputs of the kernel that are needed for sums along axes alone.
    temporary: usize,
}

/// A result of a run.
enum Write {
    /// An array, an output of the kernel.
    Array,
    /// A sum of all elements, a result of the kernel, to be divided by the number.
    Total(f64),
    /// The sums along axes of an output of the kernel, to be divided by the number.
    Axes(usize, Reduction, f64),
}

/// The computation of a call of a run.
#[derive(Clone, Debug)]
pub enum Member {
    Elementwise(Elementwise),
    /// The sum of all elements.
    Sum,
    /// The sum divided by the number of elements.
    Mean,
    /// The sums along axes other than the first, divided by the number.
    Axes(Reduction, f64),
}

/// A call of a run, and the positions of its arguments, first among the values read, then among the calls.
pub type Operation = (Member, SmallVec<[usize; 3]>);

impl Group {
    /// Whether the sum of an array is, to the bit, the one that a kernel computes in its pass: chunks of both are added up
    /// alike from 64 elements on. A sum of few elements is quicker by itself.
    pub fn has_sums(&self) -> bool {
        const CHUNK: usize = 4096;
        let length: usize = self.shape.iter().product();
        length >= CHUNK && (length.is_multiple_of(CHUNK) || length % CHUNK >= 64)
    }

    /// The sums along axes of an array, or their means, as a part of a run: those of a part of the array are sums of the whole. `None` for
    /// small arrays, whose sums are quicker by themselves, and where the first axis is summed.
    pub fn sums_along(&self, axes: &[isize], keepdims: bool, is_mean: bool) -> Option<Member> {
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
        #[allow(clippy::cast_precision_loss, reason = "no array has 2^53 elements")]
        let divisor = if is_mean { reduction.axes.count as f64 } else { 1.0 };
        is_whole.then_some(Member::Axes(reduction, divisor))
    }
}

impl Run {
    /// The kernel of a run; `None` where it is too large for one, or has sums of all elements beside sums along axes.
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
                Member::Elementwise(op) => nodes.push(Node::Apply(*op, ids)),
                Member::Sum | Member::Mean => nodes.push(Node::Sum(ids[0])),
            }
            node_of.push(position(nodes.len() - 1)?);
        }
        #[allow(clippy::cast_precision_loss, reason = "no array has 2^53 elements")]
        let length = group.shape.iter().product::<usize>() as f64;
        let is_array = |at: &&usize| matches!(operations[**at].0, Member::Elementwise(_));
        let mut outputs: Vec<u32> = writes.iter().filter(is_array).map(|at| node_of[reads + at]).collect();
        let (arrays, mut results, mut kinds) = (outputs.len(), Vec::new(), SmallVec::new());
        for at in writes {
            let node = node_of[reads + at];
            kinds.push(match &operations[*at].0 {
                Member::Elementwise(_) => Write::Array,
                Member::Axes(reduction, divisor) => {
                    let known = outputs.iter().position(|output| *output == node);
                    let output = known.unwrap_or_else(|| {
                        outputs.push(node);
                        outputs.len() - 1
                    });
                    Write::Axes(output, reduction.clone(), *divisor)
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

    /// The results; `None` where a value is no number and no array of the dtype that lies in order.
    pub fn run(&self, py: Python<'_>, read: &[&Value]) -> PyResult<Option<Vec<Value>>> {
        let (shape, dtype) = (&self.group.shape[..], self.group.dtype);
        let length = shape.iter().product();
        let mut sources: SmallVec<[Source; 8]> = SmallVec::new();
        for value in read {
            let Some(source) = Source::of(py, value, shape, dtype)? else { return Ok(None) };
            sources.push(source);
        }
        let (mut results, mut outputs) = (Vec::with_capacity(self.writes.len()), SmallVec::<[Buffer; 4]>::new());
        let mut sums = SmallVec::<[Sums; 2]>::new();
        for write in &self.writes {
            let shape = match write {
                Write::Total(_) => {
                    results.push(Value::Absent);
                    continue;
                }
                Write::Array => shape,
                Write::Axes(_, reduction, _) => &reduction.shape[..],
            };
            let (result, to) = array_pool::take(py, shape, dtype)?;
            results.push(Value::Object(result.unbind()));
            match write {
                Write::Axes(output, reduction, divisor) => {
                    sums.push(Sums { output: *output, axes: reduction.axes, divisor: *divisor, to });
                }
                _ => outputs.push(to),
            }
        }
        if !sums.is_empty() {
            let parts = Parts { run: self, sources: &sources, outputs: &outputs, sums: &sums };
            // SAFETY: the values and `results` keep the memory; outputs and sums are new or have no other reference, so they overlap
            // nothing, and the numbers stay where they are.
            unsafe { parts.compute(py) }?;
            return Ok(Some(results));
        }
        let inputs = sources.iter().map(|source| source.part(shape, 0..usize::MAX, dtype));
        let Some(inputs) = inputs.collect::<Option<SmallVec<[Buffer; 8]>>>() else { return Ok(None) };
        if outputs.len() == self.writes.len() {
            // SAFETY: as above.
            unsafe { execute(py, &self.kernel, &inputs, &outputs, dtype) }?;
            return Ok(Some(results));
        }
        let leaf = Leaf { inputs: &inputs, outputs: &outputs, length, dtype, scalar_set: 0, noise_key: 0 };
        // SAFETY: as above.
        let totals = unsafe { with_totals(py, &self.kernel, leaf) }?;
        let divisor = |write: &Write| if let Write::Total(divisor) = write { Some(*divisor) } else { None };
        let found = results.iter_mut().zip(&self.writes).filter_map(|(result, write)| Some((result, divisor(write)?)));
        for ((result, divisor), total) in found.zip(totals) {
            #[allow(clippy::cast_possible_truncation, reason = "sums of float32 are rounded once")]
            let rounded = |number: f64| Value::Float32(number as f32);
            *result = if dtype == Dtype::F32 { rounded(total / divisor) } else { Value::Float64(total / divisor) };
        }
        Ok(Some(results))
    }
}

/// A value that a run reads.
enum Source {
    /// A number.
    Number(*const u8, Dtype),
    /// An array, its first element and its strides in bytes when it is repeated to the shape of the group.
    Array(*mut u8, Strides),
}

// SAFETY: addresses, which are read by `Parts::compute` alone: its caller promises the memory.
unsafe impl Sync for Source {}

impl Source {
    fn of(py: Python<'_>, value: &Value, shape: &[usize], dtype: Dtype) -> PyResult<Option<Self>> {
        Ok(match value {
            Value::Number(number) => Some(Self::Number(std::ptr::from_ref(number).cast(), Dtype::F64)),
            Value::Float64(number) if dtype == Dtype::F64 => {
                Some(Self::Number(std::ptr::from_ref(number).cast(), Dtype::F64))
            }
            Value::Float32(number) => Some(Self::Number(std::ptr::from_ref(number).cast(), Dtype::F32)),
            Value::Object(object) => {
                let object = object.bind(py);
                if let Some(array) = Contiguous::of(object) {
                    let extents = array.shape.extents();
                    let strides = contiguous_strides(extents, dtype.size()).filter(|_| array.dtype == dtype);
                    let strides = strides.and_then(|strides| broadcast_strides(extents, &strides, shape));
                    let first = array.buffer().map(|buffer| buffer.pointer());
                    return Ok(first.zip(strides).map(|(first, strides)| Self::Array(first, strides)));
                }
                let Some(memory) = HostArray::of_numpy(object)? else { return Ok(None) };
                let view = &memory.view;
                let strides = broadcast_strides(&view.extents, &view.strides, shape);
                let fits = view.dtype == Some(dtype) && is_in_order(&view.extents, &view.strides);
                strides.filter(|_| fits).map(|strides| Self::Array(view.pointer, strides))
            }
            Value::Float64(_) | Value::Absent => None,
        })
    }

    /// The elements of some indices of the first axis, as far as it has them.
    fn part(&self, shape: &[usize], rows: Range<usize>, dtype: Dtype) -> Option<Buffer> {
        let mut extents: SmallVec<[usize; 6]> = SmallVec::from_slice(shape);
        let mut first = 0;
        if let Some(extent) = extents.first_mut() {
            first = rows.start.min(*extent);
            *extent = rows.end.min(*extent) - first;
        }
        match self {
            Self::Number(number, own) => Buffer::repeated(*number, extents.iter().product(), *own).ok(),
            Self::Array(pointer, strides) => {
                let offset = strides.first().map_or(0, |stride| stride * first.cast_signed());
                Buffer::strided(pointer.wrapping_offset(offset), &extents, strides, dtype, false).ok()
            }
        }
    }
}

/// Whether elements lie in the order of their indices, apart from axes along which they are repeated.
fn is_in_order(extents: &[usize], strides: &[isize]) -> bool {
    let mut axes = extents.iter().zip(strides).filter(|(extent, stride)| **extent > 1 && **stride != 0);
    let mut last = isize::MAX;
    axes.all(|(_, stride)| *stride > 0 && std::mem::replace(&mut last, *stride) >= *stride)
}

/// The sums along axes of an output of a kernel.
struct Sums {
    output: usize,
    axes: Axes,
    divisor: f64,
    to: Buffer,
}

/// The computation of a run by parts.
struct Parts<'a> {
    run: &'a Run,
    sources: &'a [Source],
    outputs: &'a [Buffer],
    sums: &'a [Sums],
}

/// So many elements are computed before they are added up.
const PART: usize = 1 << 13;

impl Parts<'_> {
    /// # Safety
    /// As `exec::run`, for the memory of sources, outputs and sums.
    unsafe fn compute(&self, py: Python<'_>) -> PyResult<()> {
        let shape = &self.run.group.shape;
        let each: usize = shape[1..].iter().product();
        let rows = (PART / each.max(1)).max(1);
        let count = shape[0].div_ceil(rows);
        let failed = Mutex::new(Ok(()));
        let work = |parts: Range<usize>| {
            // SAFETY: the caller's promise; each part has memory of its own.
            let done = unsafe { self.range(parts.start * rows..shape[0].min(parts.end * rows), rows, each) };
            if done.is_err() {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = done;
            }
        };
        if shape[0] * each < DETACHED {
            work(0..count);
        } else {
            py.detach(|| share_evenly(count, pool().as_deref(), work));
        }
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).python()
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
            let inputs = self.sources.iter().map(|source| source.part(shape, start..end, dtype));
            let Some(inputs) = inputs.collect::<Option<SmallVec<[Buffer; 8]>>>() else {
                unreachable!("a part of an array is an array")
            };
            let at = |pointer: *mut u8, elements: usize| pointer.wrapping_add(elements * dtype.size());
            let mut outputs = SmallVec::<[Buffer; 4]>::new();
            for output in self.outputs {
                outputs.push(Buffer::contiguous(at(output.pointer(), start * each), length, dtype, true)?);
            }
            for number in 0..self.run.temporary {
                outputs.push(Buffer::contiguous(at(temporary, number * rows * each), length, dtype, true)?);
            }
            let leaf = Leaf { inputs: &inputs, outputs: &outputs, length, dtype, scalar_set: 0, noise_key: 0 };
            // SAFETY: the caller's promise; temporary memory is that of this call.
            unsafe { exec::run_one(&self.run.kernel, &[], &leaf, isa(), &mut scratch) }?;
            for Sums { output, axes, divisor, to } in self.sums {
                let outer = axes.outer / shape[0];
                let axes = Axes { outer: outer * (end - start), ..*axes };
                let first = at(to.pointer(), outer * axes.inner * start);
                let to = Buffer::contiguous(first, axes.outer * axes.inner, dtype, true)?;
                // SAFETY: as above.
                unsafe { sum(&outputs[*output], &to, axes, *divisor, isa(), None) }?;
            }
        }
        Ok(())
    }
}

/// Runs a kernel over an array, and returns its results.
///
/// # Safety
/// As `exec::run`.
unsafe fn with_totals(py: Python<'_>, kernel: &Kernel, leaf: Leaf<'_>) -> PyResult<Vec<f64>> {
    let leaves = [leaf];
    let batch = [Batch { kernel, scalars: &[], leaves: &leaves }];
    let is_small = leaf.length < DETACHED;
    let threads = if is_small { None } else { pool() };
    // SAFETY: the caller's promise.
    let run = || unsafe { exec::run(&batch, isa(), threads.as_deref()) };
    let results = if is_small { run() } else { py.detach(run) }.python()?;
    Ok(results.into_iter().flatten().flatten().collect())
}
