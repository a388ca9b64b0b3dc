//! Runs of elementwise entries, and of sums of their results, computed in one pass over memory.

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::exec::{self, Batch, Leaf};
use oxigrad_core::kernel::{Kernel, Node, Wanted};
use oxigrad_core::op::Elementwise;
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
    /// For each call that is needed later, its divisor if it is a sum.
    writes: SmallVec<[Option<f64>; 4]>,
}

/// The computation of a call of a run.
#[derive(Clone, Copy, Debug)]
pub enum Member {
    Elementwise(Elementwise),
    /// The sum of all elements.
    Sum,
    /// The sum divided by the number of elements.
    Mean,
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
}

impl Run {
    /// The kernel of a run; `None` where it is too large for one.
    pub fn new(operations: &[Operation], reads: usize, writes: &[usize], group: &Group) -> Option<Self> {
        let position = |at: usize| u32::try_from(at).ok();
        let mut nodes = (0..reads).map(|at| position(at).map(Node::Leaf)).collect::<Option<Vec<_>>>()?;
        for (member, args) in operations {
            let mut ids = [0; 3];
            for (id, arg) in ids.iter_mut().zip(args) {
                *id = position(*arg)?;
            }
            nodes.push(match member {
                Member::Elementwise(op) => Node::Apply(*op, ids),
                Member::Sum | Member::Mean => Node::Sum(ids[0]),
            });
        }
        #[allow(clippy::cast_precision_loss, reason = "no array has 2^53 elements")]
        let length = group.shape.iter().product::<usize>() as f64;
        let (mut outputs, mut results, mut kinds) = (Vec::new(), Vec::new(), SmallVec::new());
        for at in writes {
            let divisor = match operations[*at].0 {
                Member::Elementwise(_) => None,
                Member::Sum => Some(1.0),
                Member::Mean => Some(length),
            };
            if divisor.is_none() { &mut outputs } else { &mut results }.push(position(reads + at)?);
            kinds.push(divisor);
        }
        let kernel =
            Kernel::compile_wanted(&nodes, &Wanted { outputs: &outputs, results: &results, guard: None }).ok()?;
        Some(Self { kernel, group: group.clone(), writes: kinds })
    }

    /// The results; `None` where a value is no number and no contiguous array of the dtype.
    pub fn run(&self, py: Python<'_>, read: &[&Value]) -> PyResult<Option<Vec<Value>>> {
        let (shape, dtype) = (&self.group.shape[..], self.group.dtype);
        let length = shape.iter().product();
        let mut inputs: SmallVec<[Buffer; 8]> = SmallVec::new();
        for value in read {
            let repeated = |number: *const u8, dtype| Buffer::repeated(number, length, dtype).ok();
            let buffer = match value {
                Value::Number(number) => repeated(std::ptr::from_ref(number).cast(), Dtype::F64),
                Value::Float64(number) if dtype == Dtype::F64 => {
                    repeated(std::ptr::from_ref(number).cast(), Dtype::F64)
                }
                Value::Float32(number) => repeated(std::ptr::from_ref(number).cast(), Dtype::F32),
                Value::Object(object) => {
                    let object = object.bind(py);
                    match Contiguous::of(object) {
                        Some(array) if array.dtype == dtype => array.broadcast(shape),
                        Some(_) => None,
                        None => one_repeated(object, length, dtype)?,
                    }
                }
                Value::Float64(_) | Value::Absent => None,
            };
            let Some(buffer) = buffer else { return Ok(None) };
            inputs.push(buffer);
        }
        let (mut results, mut outputs) = (Vec::with_capacity(self.writes.len()), SmallVec::<[Buffer; 4]>::new());
        for divisor in &self.writes {
            if divisor.is_some() {
                results.push(Value::Absent);
                continue;
            }
            let (result, output) = array_pool::take(py, shape, dtype)?;
            results.push(Value::Object(result.unbind()));
            outputs.push(output);
        }
        if outputs.len() == self.writes.len() {
            // SAFETY: the values and `results` keep the memory; outputs are new or have no other reference, so they overlap
            // nothing, and the numbers stay where they are.
            unsafe { execute(py, &self.kernel, &inputs, &outputs, dtype) }?;
            return Ok(Some(results));
        }
        let leaf = Leaf { inputs: &inputs, outputs: &outputs, length, dtype, scalar_set: 0, noise_key: 0 };
        // SAFETY: as above.
        let totals = unsafe { with_totals(py, &self.kernel, leaf) }?;
        let sums = results.iter_mut().zip(&self.writes).filter_map(|(result, divisor)| Some((result, (*divisor)?)));
        for ((result, divisor), total) in sums.zip(totals) {
            #[allow(clippy::cast_possible_truncation, reason = "sums of float32 are rounded once")]
            let rounded = |number: f64| Value::Float32(number as f32);
            *result = if dtype == Dtype::F32 { rounded(total / divisor) } else { Value::Float64(total / divisor) };
        }
        Ok(Some(results))
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

/// The elements of an array of one element that is repeated to a larger shape; the caller's reference keeps the memory.
fn one_repeated(array: &Bound<'_, PyAny>, length: usize, dtype: Dtype) -> PyResult<Option<Buffer>> {
    let Some(memory) = HostArray::of_numpy(array)? else { return Ok(None) };
    let view = &memory.view;
    let is_repeated = view.strides.iter().all(|stride| *stride == 0) && view.extents.iter().all(|extent| *extent > 0);
    if view.dtype != Some(dtype) || !is_repeated {
        return Ok(None);
    }
    Ok(Buffer::repeated(view.pointer, length, dtype).ok())
}
