//! Kernels over NumPy arrays: what the core computes by itself, without asking an array library.

use std::cell::RefCell;
use std::sync::OnceLock;

use oxigrad_core::buffer::{Buffer, Dtype};
use oxigrad_core::exec::{self, Batch, Leaf, Scratch};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::{Elementwise, Op};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use crate::derivatives::op_named;
use crate::error::IntoPython;
use crate::memory::{Memory, Numbers};
use crate::numpy::{contiguous, empty, is_unshared};
use crate::threads::{isa, pool};
use crate::value::Value;

/// From this many elements on, threads share the work on one array.
const PARALLEL: usize = 1 << 15;

thread_local!(static SCRATCH: RefCell<Scratch> = RefCell::default());

/// The memory of a value that is a NumPy array or scalar.
pub fn memory(py: Python<'_>, value: &Value) -> Option<Memory> {
    match value {
        Value::Object(object) => Memory::of_numpy(object.bind(py)),
        Value::Number(_) | Value::Absent => None,
    }
}

/// Arrays that nobody needs any more: a new one takes the memory of one of the same shape and dtype.
#[derive(Default)]
pub struct Spare(Vec<Py<PyAny>>);

/// How many arrays are kept: those that die together in one step of a replay, and a few.
const SPARE: usize = 8;

impl Spare {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps an array for later, if it is nobody else's.
    pub fn keep(&mut self, py: Python<'_>, value: Value) {
        let Value::Object(object) = value else { return };
        if self.0.len() == SPARE {
            self.0.remove(0);
        }
        if is_unshared(object.bind(py)) {
            self.0.push(object);
        }
    }

    /// An array to write to.
    fn take<'py>(&mut self, py: Python<'py>, shape: &[usize], dtype: Dtype) -> PyResult<(Bound<'py, PyAny>, Buffer)> {
        let fits = |array: &Py<PyAny>| contiguous(array.bind(py), shape, dtype);
        if let Some((at, buffer)) = self.0.iter().enumerate().rev().find_map(|(at, array)| Some((at, fits(array)?))) {
            return Ok((self.0.swap_remove(at).into_bound(py), buffer));
        }
        let array = empty(py, shape, dtype)?;
        let buffer = Memory::of(&array).and_then(|memory| memory.buffer());
        buffer.map(|buffer| (array, buffer)).ok_or_else(|| PyValueError::new_err("a new array cannot be written"))
    }
}

/// Runs a kernel of one output on numbers and NumPy arrays, which are broadcast to the shape of `like` and computed in
/// its dtype. None where some value is neither, or `like` has a dtype that kernels do not compute in.
pub fn compute<'py, 'v>(
    py: Python<'py>,
    kernel: &Kernel,
    values: impl Iterator<Item = Option<&'v Value>>,
    like: &Memory,
    spare: &mut Spare,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Ok(dtype) = like.computing().map(|buffer| buffer.dtype()) else { return Ok(None) };
    let (shape, length) = (like.shape(), like.shape().iter().product());
    let (mut held, mut inputs): (SmallVec<[Memory; 3]>, SmallVec<[Buffer; 3]>) = (SmallVec::new(), SmallVec::new());
    for value in values {
        let buffer = match value {
            Some(Value::Number(number)) => Buffer::repeated(std::ptr::from_ref(number).cast(), length, Dtype::F64).ok(),
            value => value.and_then(|value| memory(py, value)).and_then(|memory| {
                let buffer = memory.broadcast(shape);
                held.push(memory);
                buffer
            }),
        };
        let Some(buffer) = buffer else { return Ok(None) };
        inputs.push(buffer);
    }
    let (result, output) = spare.take(py, shape, dtype)?;
    let leaf = Leaf { inputs: &inputs, outputs: &[output], length, dtype, scalar_set: 0, noise_key: 0 };
    // SAFETY: `held`, the values and `result` keep the memory; the output is new or nobody else's, so it overlaps nothing.
    unsafe { run(kernel, &leaf) }?;
    Ok(Some(result))
}

/// The kernel of one op.
fn kernel(op: Elementwise) -> &'static Kernel {
    static KERNELS: OnceLock<Vec<Kernel>> = OnceLock::new();
    let kernels = KERNELS.get_or_init(|| {
        let leaves = [Node::Leaf(0), Node::Leaf(1), Node::Leaf(2)];
        let kernel = |op: &Elementwise| {
            let nodes = [&leaves[..op.arity()], &[Node::Apply(*op, [0, 1, 2])]].concat();
            Kernel::compile(&nodes, &[u32::try_from(op.arity()).expect("an op has few arguments")])
        };
        Elementwise::ALL.iter().map(|op| kernel(op).expect("one op is a program")).collect()
    });
    &kernels[op as usize]
}

/// Adds one NumPy array to another of its shape and dtype, in place.
pub fn add_to(sum: &Bound<'_, PyAny>, term: &Bound<'_, PyAny>) -> PyResult<()> {
    let buffers = Memory::of_numpy(sum).zip(Memory::of_numpy(term));
    let buffers = buffers.and_then(|(sum, term)| Some([sum.computing().ok()?, term.computing().ok()?]));
    let Some([own, other]) = buffers else {
        return sum.call_method1(intern!(sum.py(), "__iadd__"), (term,)).map(drop);
    };
    let (length, dtype) = (own.len(), own.dtype());
    let (inputs, outputs) = ([own.clone(), other], [own]);
    let leaf = Leaf { inputs: &inputs, outputs: &outputs, length, dtype, scalar_set: 0, noise_key: 0 };
    // SAFETY: the references that we hold keep the memory.
    unsafe { run(kernel(Elementwise::Add), &leaf) }
}

/// Copies numbers from an array in host memory to another, rounded to its dtype. Either may be a tuple of codes of eight bits
/// and their scales. One array without axes fills another.
#[pyfunction]
pub fn copy(source: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>) -> PyResult<()> {
    let unshared = || PyTypeError::new_err("what is copied must lie in host memory, and be numbers");
    let [from, to] = [source, target].map(|stated| Numbers::of(stated).python()?.ok_or_else(unshared));
    let (from, to) = (from?, to?);
    let (output, length) = (to.buffer.clone(), to.buffer.len());
    let shapes = [&from, &to].map(|numbers| numbers.memory[0].shape());
    let input = if shapes[0] == shapes[1] { Some(from.buffer.clone()) } else { from.memory[0].broadcast(shapes[1]) };
    let input = input.ok_or_else(|| PyValueError::new_err(format!("{:?} is copied to {:?}", shapes[0], shapes[1])))?;
    let dtype = if input.dtype() == Dtype::F64 { Dtype::F64 } else { output.dtype().computed_in() };
    let (inputs, outputs) = ([input], [output]);
    let leaf = Leaf { inputs: &inputs, outputs: &outputs, length, dtype, scalar_set: 0, noise_key: 0 };
    // SAFETY: `from` and `to` keep the memory.
    unsafe { run(kernel(Elementwise::Positive), &leaf) }
}

/// The sum over the leading axes that `shape` has not: what a bias gets. None unless that is all that differs, and the
/// array is NumPy's.
pub fn sum_leading<'py>(array: &Bound<'py, PyAny>, shape: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static REDUCE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = array.py();
    let Some(memory) = Memory::of_numpy(array) else { return Ok(None) };
    let shape: SmallVec<[usize; 4]> = shape.extract::<Vec<usize>>()?.into();
    let added = memory.shape().len().saturating_sub(shape.len());
    if added == 0 || memory.shape()[added..] != shape[..] {
        return Ok(None);
    }
    let reduce = REDUCE
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("numpy")?.getattr("add")?.getattr("reduce")?.unbind()))?;
    reduce.bind(py).call1((array, PyTuple::new(py, 0..added)?)).map(Some)
}

/// # Safety
/// As `exec::run`.
unsafe fn run(kernel: &Kernel, leaf: &Leaf) -> PyResult<()> {
    // SAFETY: the caller's promise.
    let done = SCRATCH.with_borrow_mut(|scratch| unsafe {
        if leaf.length < PARALLEL {
            exec::run_one(kernel, &[], leaf, isa(), scratch)
        } else {
            exec::run(&[Batch { kernel, scalars: &[], leaves: &[*leaf] }], isa(), pool().as_deref()).map(drop)
        }
    });
    done.python()
}

/// The function of a NumPy array of floating-point dtype, for the functions that the core has vector code of; none of
/// anything else.
pub fn function<'py>(op: Elementwise, array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if has_vector_code(op) { on_arrays(op, std::slice::from_ref(array)) } else { Ok(None) }
}

/// What an elementwise op gives on arrays, which are broadcast to the shape of the first and computed in its dtype.
fn on_arrays<'py>(op: Elementwise, args: &[Bound<'py, PyAny>]) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(like) = args.first().and_then(Memory::of_numpy) else { return Ok(None) };
    let values: SmallVec<[Value; 3]> = args.iter().map(Value::new).collect();
    compute(args[0].py(), kernel(op), values.iter().map(Some), &like, &mut Spare::default())
}

/// Computes an elementwise op on NumPy arrays, for what NumPy has no function. The first array has the shape and the
/// dtype, float32 or float64, of the result.
#[pyfunction]
#[pyo3(name = "compute")]
pub fn compute_named<'py>(name: &str, args: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let computed = match op_named(name)? {
        Op::Elementwise(op) if args.len() == op.arity() => on_arrays(op, &args)?,
        Op::Elementwise(_) | Op::Structured(_) => None,
    };
    computed.ok_or_else(|| PyTypeError::new_err(format!("{name} is computed on NumPy arrays of float32 or float64")))
}

const fn has_vector_code(op: Elementwise) -> bool {
    matches!(
        op,
        Elementwise::Exp
            | Elementwise::Expm1
            | Elementwise::Log
            | Elementwise::Log1p
            | Elementwise::Sin
            | Elementwise::Cos
            | Elementwise::Tanh
    )
}
