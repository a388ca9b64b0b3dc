//! Runs of elementwise entries, computed in one pass over memory.

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::Elementwise;
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::arrays::compute::array_pool;
use crate::arrays::compute::elementwise::execute;
use crate::arrays::memory::contiguous::Contiguous;
use crate::arrays::memory::host_array::HostArray;
use crate::arrays::value::Value;

/// The shape and dtype of the results of a group of elementwise entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub shape: SmallVec<[usize; 4]>,
    pub dtype: Dtype,
}

/// The calls of a run as a kernel: an input for each value that it reads, an output for each that is needed later.
pub struct Run {
    kernel: Kernel,
    group: Group,
    outputs: usize,
}

/// A call of a run: its op, and the positions of its arguments, first among the values read, then among the calls.
pub type Operation = (Elementwise, SmallVec<[usize; 3]>);

impl Run {
    /// The kernel of a run; `None` where it is too large for one.
    pub fn new(operations: &[Operation], reads: usize, writes: &[usize], group: &Group) -> Option<Self> {
        let position = |at: usize| u32::try_from(at).ok();
        let mut nodes = (0..reads).map(|at| position(at).map(Node::Leaf)).collect::<Option<Vec<_>>>()?;
        for (op, args) in operations {
            let mut ids = [0; 3];
            for (id, arg) in ids.iter_mut().zip(args) {
                *id = position(*arg)?;
            }
            nodes.push(Node::Apply(*op, ids));
        }
        let outputs: Vec<u32> = writes.iter().map(|at| position(reads + at)).collect::<Option<_>>()?;
        let kernel = Kernel::compile(&nodes, &outputs).ok()?;
        Some(Self { kernel, group: group.clone(), outputs: writes.len() })
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
        let (mut results, mut outputs) = (Vec::with_capacity(self.outputs), SmallVec::<[Buffer; 4]>::new());
        for _ in 0..self.outputs {
            let (result, output) = array_pool::take(py, shape, dtype)?;
            results.push(Value::Object(result.unbind()));
            outputs.push(output);
        }
        // SAFETY: the values and `results` keep the memory; outputs are new or have no other reference, so they overlap
        // nothing, and the numbers stay where they are.
        unsafe { execute(py, &self.kernel, &inputs, &outputs, dtype) }?;
        Ok(Some(results))
    }
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
