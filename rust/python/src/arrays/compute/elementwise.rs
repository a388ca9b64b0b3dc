//! Kernels over NumPy arrays, which the core runs without calling an array library.

use std::cell::RefCell;
use std::sync::OnceLock;

use oxigrad_core::array::buffer::{Buffer, Dtype, elements};
use oxigrad_core::array::shape::Shape;
use oxigrad_core::autodiff::tape;
use oxigrad_core::exec::{self, Batch, Leaf, Scratch};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::{Elementwise, Op};
use oxigrad_core::recording::ScalarOp;
use oxigrad_core::scalar::{Precision, Scalar, promoted};
use pyo3::exceptions::{PyTypeError, PyValueError};
use smallvec::SmallVec;

use crate::arrays::compute::array_pool;
use crate::arrays::memory::changes::Changed;
use crate::arrays::memory::contiguous::{Contiguous, scalar_of, unshared};
use crate::arrays::memory::exporters::Exporters;
use crate::arrays::memory::host_array::{FloatArray, HostArray};
use crate::arrays::value::Value;
use crate::prelude::*;
use crate::threads::{DETACHED, isa, pool};

/// The number of elements from which memory traffic dominates the cost of an op.
pub const LARGE: usize = 1 << 14;

thread_local!(pub static SCRATCH: RefCell<Scratch> = RefCell::default());

/// Runs a kernel of one output on numbers and NumPy arrays, which are broadcast to the shape of `like` and computed in
/// its dtype. `None` if some value is neither, or `like` has a dtype that kernels do not compute in.
pub fn compute<'py, 'v>(
    kernel: &Kernel,
    values: impl Iterator<Item = &'v Value> + Clone,
    like: &Object<'py>,
) -> PyResult<Option<Object<'py>>> {
    if let Some(contiguous) = Contiguous::of(like)
        && let Some(result) = compute_alike(like.py(), kernel, values.clone(), &contiguous)?
    {
        return Ok(Some(result));
    }
    let py = like.py();
    let Some(like) = HostArray::of_numpy(like)? else { return Ok(None) };
    let Ok(dtype) = like.computing().map(|buffer| buffer.dtype()) else { return Ok(None) };
    let (shape, Some(length)) = (like.shape(), elements(like.shape())) else { return Ok(None) };
    let (mut held, mut inputs): (SmallVec<[HostArray; 3]>, Buffers) = (SmallVec::new(), Buffers::new());
    for value in values {
        let buffer = match value {
            Value::Object(object) => HostArray::of_numpy(object.bind(py))?.and_then(|memory| {
                let buffer = memory.view.broadcast(shape);
                held.push(memory);
                buffer
            }),
            number => repeated(number, length),
        };
        let Some(buffer) = buffer else { return Ok(None) };
        inputs.push(buffer);
    }
    let (result, output) = array_pool::fresh(py, shape, dtype)?;
    // SAFETY: the values, `held` and `result` keep the memory; the output is new, so it overlaps nothing.
    unsafe { run(py, kernel, &inputs, output) }?;
    Ok(Some(result))
}

/// The same for contiguous arrays of the shape and the dtype of the result.
fn compute_alike<'py, 'v>(
    py: Python<'py>,
    kernel: &Kernel,
    values: impl Iterator<Item = &'v Value>,
    like: &Contiguous<'_>,
) -> PyResult<Option<Object<'py>>> {
    let array = |object: &Py<PyAny>| Contiguous::of(object.bind(py)).filter(|other| other.is_like(like))?.buffer();
    compute_with(py, kernel, values, array, like.shape.extents(), like.length, like.dtype)
}

/// The same for contiguous arrays of one dtype that are broadcast against each other.
fn compute_broadcast<'py, 'v>(
    py: Python<'py>,
    kernel: &Kernel,
    values: impl Iterator<Item = &'v Value> + Clone,
    dtype: Dtype,
) -> PyResult<Option<Object<'py>>> {
    let mut arrays: SmallVec<[Contiguous<'_>; 3]> = SmallVec::new();
    let mut shape = Shape::default();
    for value in values.clone() {
        let Value::Object(object) = value else { continue };
        let array = Contiguous::of(object.bind(py)).filter(|array| array.dtype == dtype);
        let both = array.as_ref().and_then(|array| shape.broadcast(&array.shape));
        let (Some(array), Some(both)) = (array, both) else { return Ok(None) };
        arrays.push(array);
        shape = both;
    }
    let Some(length) = elements(shape.extents()) else { return Ok(None) };
    let mut arrays = arrays.iter();
    let array = |_: &Py<PyAny>| arrays.next()?.broadcast(shape.extents());
    compute_with(py, kernel, values, array, shape.extents(), length, dtype)
}

/// Runs a kernel on numbers and on buffers of arrays, into a new array; `None` if some value is neither a number nor an
/// `array`, or a number is of a wider dtype.
#[inline]
fn compute_with<'py, 'v>(
    py: Python<'py>,
    kernel: &Kernel,
    values: impl Iterator<Item = &'v Value>,
    mut array: impl FnMut(&Py<PyAny>) -> Option<Buffer>,
    shape: &[usize],
    length: usize,
    dtype: Dtype,
) -> PyResult<Option<Object<'py>>> {
    let mut inputs = Buffers::new();
    for value in values {
        let buffer = match value {
            Value::Object(object) => array(object),
            Value::Float64(_) if dtype != Dtype::F64 => None,
            number => repeated(number, length),
        };
        let Some(buffer) = buffer else { return Ok(None) };
        inputs.push(buffer);
    }
    let (result, output) = array_pool::take(py, shape, dtype)?;
    // SAFETY: the values and `result` keep the memory; the output is new or has no other reference, so it overlaps
    // nothing.
    unsafe { run(py, kernel, &inputs, output) }?;
    Ok(Some(result))
}

/// The arguments of an op: seldom more than three.
type Buffers = SmallVec<[Buffer; 3]>;

/// A number as an array, for as long as it stays where it is; `None` for any other value.
fn repeated(number: &Value, length: usize) -> Option<Buffer> {
    match number {
        Value::Number(number) | Value::Float64(number) => {
            Buffer::repeated(std::ptr::from_ref(number).cast(), length, Dtype::F64).ok()
        }
        Value::Float32(number) => Buffer::repeated(std::ptr::from_ref(number).cast(), length, Dtype::F32).ok(),
        Value::Object(_) | Value::Absent => None,
    }
}

/// The kernel of one op.
pub fn kernel(op: Elementwise) -> &'static Kernel {
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

/// Adds a NumPy array to `sum`, an array of the same shape and dtype, in place; returns false if they differ or `sum`
/// has other references.
pub fn add_to(sum: &Object<'_>, term: &Object<'_>) -> PyResult<bool> {
    let Some(own) = unshared(sum) else { return Ok(false) };
    let Some(other) = Contiguous::of(term).filter(|other| other.is_like(&own)) else { return Ok(false) };
    let (Some(own), Some(other)) = (own.buffer(), other.buffer()) else { return Ok(false) };
    // SAFETY: the references that we hold keep the memory, and `sum` has no other reference.
    unsafe { run(sum.py(), kernel(Elementwise::Add), &[own.clone(), other], own) }?;
    Ok(true)
}

/// A copy of the numbers of an array in host memory to another, rounded to its dtype. Either may be a tuple of
/// codes and their scales. A source without axes fills the target.
pub struct Copying {
    input: [Buffer; 1],
    output: [Buffer; 1],
    dtype: Dtype,
    /// The owners of the memory of both arrays.
    from: FloatArray,
    to: FloatArray,
    target: Py<PyAny>,
}

impl Copying {
    /// Checks both arrays, so that `run` cannot fail.
    pub fn new(source: &Object<'_>, target: &Object<'_>) -> PyResult<Self> {
        let unshared = || PyTypeError::new_err("expected numbers in host memory to copy");
        let [from, to] = [source, target].map(|stated| FloatArray::of(stated)?.ok_or_else(unshared)?.python());
        let (from, to) = (from?, to?);
        let [given, wanted] = [&from, &to].map(FloatArray::shape);
        let input = from
            .broadcast(wanted)
            .ok_or_else(|| PyValueError::new_err(format!("{given:?} is copied to {wanted:?}")))?;
        let output = to.buffer.clone();
        let dtype = if input.dtype() == Dtype::F64 { Dtype::F64 } else { output.dtype().computed_in() };
        let made = Self { input: [input], output: [output], dtype, from, to, target: target.clone().unbind() };
        exec::check(&[Batch { kernel: kernel(Elementwise::Positive), scalars: &[], leaves: &[made.leaf()] }])
            .python()?;
        Ok(made)
    }

    fn leaf(&self) -> Leaf<'_> {
        leaf(&self.input, &self.output, self.dtype)
    }

    /// Writes them, and adds what has `changed`. This runs no Python, in which an interrupt could come between, and
    /// cannot fail.
    pub fn run<'py>(self, py: Python<'py>, changed: &mut Changed<'py>) -> PyResult<()> {
        // SAFETY: `from` and `to` keep the memory.
        let done = unsafe { execute(py, kernel(Elementwise::Positive), &self.input, &self.output, self.dtype) };
        changed.push(&mut Exporters::default(), self.target.bind(py));
        drop((self.from, self.to));
        done
    }
}

/// Copies numbers: see [`Copying`].
#[pyfunction]
pub fn copy(source: &Object<'_>, target: &Object<'_>) -> PyResult<()> {
    let mut changed = Changed::default();
    let done = Copying::new(source, target)?.run(source.py(), &mut changed);
    changed.count(source.py()).and(done)
}

/// # Safety
/// As `exec::run`.
unsafe fn run(py: Python<'_>, kernel: &Kernel, inputs: &[Buffer], output: Buffer) -> PyResult<()> {
    let dtype = output.dtype();
    // SAFETY: the caller's promise.
    unsafe { execute(py, kernel, inputs, &[output], dtype) }
}

/// The leaf of a kernel that takes no scalars and draws no numbers.
fn leaf<'a>(inputs: &'a [Buffer], outputs: &'a [Buffer], dtype: Dtype) -> Leaf<'a> {
    let length = outputs.first().map_or(0, Buffer::len);
    Leaf { inputs, outputs, length, dtype, scalar_set: 0, noise_key: 0, first: 0 }
}

/// Runs a kernel over arrays: large ones on several threads, and without the interpreter lock.
///
/// # Safety
/// As `exec::run`.
pub unsafe fn execute(
    py: Python<'_>,
    kernel: &Kernel,
    inputs: &[Buffer],
    outputs: &[Buffer],
    dtype: Dtype,
) -> PyResult<()> {
    let leaf = leaf(inputs, outputs, dtype);
    let done = if leaf.length < DETACHED {
        // SAFETY: the caller's promise.
        SCRATCH.with_borrow_mut(|scratch| unsafe { exec::run_one(kernel, &[], &leaf, isa(), scratch) })
    } else {
        let (pool, batch) = (pool(), Batch { kernel, scalars: &[], leaves: &[leaf] });
        // SAFETY: the caller's promise.
        py.detach(|| unsafe { exec::run(&[batch], isa(), pool.as_deref()) }).map(drop)
    };
    done.python()
}

/// An elementwise op on NumPy arrays of one dtype, NumPy scalars and numbers, where the core computes it as NumPy does,
/// or more accurately; `None` for any other arguments. The second item tells whether all arrays have the shape of the
/// result.
pub fn elementwise<'py, 'v>(
    py: Python<'py>,
    op: Elementwise,
    values: impl Iterator<Item = &'v Value> + Clone,
) -> PyResult<Option<(Object<'py>, bool)>> {
    if !op.is_computed_in_core(matches!(values.clone().next(), Some(Value::Number(_)))) {
        return Ok(None);
    }
    let like = values.clone().find_map(|value| match value {
        Value::Object(object) => Contiguous::of(object.bind(py)),
        _ => None,
    });
    if let Some(like) = like {
        if let Some(result) = compute_alike(py, kernel(op), values.clone(), &like)? {
            return Ok(Some((result, true)));
        }
        return Ok(compute_broadcast(py, kernel(op), values, like.dtype)?.map(|result| (result, false)));
    }
    let scalars: Option<SmallVec<[Scalar; 3]>> = values.map(tape::Value::scalar).collect();
    let result = scalars.and_then(|scalars| on_numpy_scalars(op, &scalars));
    Ok(result.map(|result| (<Value as tape::Value>::from_scalar(result).into_object(py), true)))
}

/// An elementwise op on scalars of which one at least is NumPy's, in the dtype that NumPy promotes them to; `None` if
/// NumPy computes it, as where its `errstate` applies.
#[inline]
pub fn on_numpy_scalars(op: Elementwise, scalars: &[Scalar]) -> Option<Scalar> {
    if promoted(scalars) == Precision::Weak { None } else { ScalarOp::of_standard(op).compute(scalars) }
}

/// The function of a NumPy array of any layout, or of a number and such an array, for the functions that the core has vector code of.
pub fn function<'py>(op: Elementwise, values: &[Value], args: &[Object<'py>]) -> PyResult<Option<Object<'py>>> {
    let of_number = matches!(values, [Value::Number(_), ..]);
    match args.last() {
        Some(array) if op.is_vectorized(of_number) => compute(kernel(op), values.iter(), array),
        _ => Ok(None),
    }
}

/// A NumPy array or scalar repeated to a larger shape, if that is small: the next op is faster on contiguous elements
/// than on a view.
pub fn repeat_to<'py>(array: &Object<'py>, shape: &[usize]) -> PyResult<Option<Object<'py>>> {
    let py = array.py();
    let Some(length) = elements(shape).filter(|length| !shape.is_empty() && *length < LARGE) else { return Ok(None) };
    let number = scalar_of(array).map(<Value as tape::Value>::from_scalar);
    let memory = if number.is_none() { HostArray::of_numpy(array)? } else { None };
    let buffer = match &number {
        Some(number) => repeated(number, length),
        None => memory.as_ref().and_then(|memory| memory.view.broadcast(shape)),
    };
    let Some(buffer) = buffer.filter(|buffer| buffer.dtype().computes()) else { return Ok(None) };
    let (result, output) = array_pool::take(py, shape, buffer.dtype())?;
    // SAFETY: `number` or `memory`, and `result` keep the memory; the output is new or has no other reference, so it overlaps
    // nothing.
    unsafe { run(py, kernel(Elementwise::Positive), &[buffer], output) }?;
    Ok(Some(result))
}

/// Computes an elementwise op that NumPy lacks on NumPy arrays. The first array has the shape and the
/// dtype, float32 or float64, of the result.
#[pyfunction]
#[pyo3(name = "compute")]
pub fn compute_named<'py>(name: &str, args: Vec<Object<'py>>) -> PyResult<Object<'py>> {
    let computed = match op_named(name)? {
        Op::Elementwise(op) if args.len() == op.arity() => {
            let values: Vec<Value> = args.iter().map(Value::new).collect();
            compute(kernel(op), values.iter(), &args[0])?
        }
        Op::Elementwise(_) | Op::Structured(_) => None,
    };
    computed.ok_or_else(|| PyTypeError::new_err(format!("{name} is computed on NumPy arrays of float32 or float64")))
}

/// The op of this name.
pub fn op_named(name: &str) -> PyResult<Op> {
    Op::from_name(name).ok_or_else(|| PyValueError::new_err(format!("there is no op {name:?} in the table")))
}

/// The op of this name, for so many arrays.
///
/// # Errors
/// `TypeError` if it takes another number of them.
pub fn op_taking(name: &str, count: usize) -> PyResult<Op> {
    if count == 0 {
        return Err(PyTypeError::new_err(format!("{name} needs at least one argument")));
    }
    let op = op_named(name)?;
    match op.arity() {
        Some(arity) if arity != count => Err(PyTypeError::new_err(format!("{name} takes {arity} arrays, got {count}"))),
        _ => Ok(op),
    }
}
