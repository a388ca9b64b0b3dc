//! Cotangents that wait to be computed: the elementwise rules of a run of entries over large arrays become one kernel,
//! which reads what they read and writes what is asked for, and nothing in between.
//!
//! While a tape is replayed nobody sees a cotangent but a rule of a structured op, so that nothing is lost by waiting.
//! What waits is computed all together, as soon as one of it is asked for: so nothing is computed twice.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::autodiff::rule::{Rule, Source};
use oxigrad_core::autodiff::tape::{self, View};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::Elementwise;
use oxigrad_core::scalar::Scalar;
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::arrays::array_pool;
use crate::arrays::contiguous::length;
use crate::arrays::elementwise::{LARGE, execute};
use crate::arrays::memory::Memory;
use crate::autodiff::tape::Attributes;
use crate::autodiff::value::Value;
use crate::error::IntoPython;

/// The longest program, and the most arrays that one reads: these are kept until it has run.
const NODES: usize = 256;
const LEAVES: usize = 32;
/// How many kernels are remembered on each thread.
const KERNELS: usize = 64;

/// A cotangent, or a tangent: known, or waiting.
#[derive(Debug)]
pub enum Flow {
    Known(Value),
    Waiting(Rc<Waiting>),
}

/// What waits: a node of the program, and its array once that has run.
#[derive(Debug)]
pub struct Waiting {
    node: u32,
    computed: OnceCell<Py<PyAny>>,
}

impl tape::Value for Flow {
    fn absent() -> Self {
        Self::Known(Value::Absent)
    }

    fn is_absent(&self) -> bool {
        matches!(self, Self::Known(Value::Absent))
    }

    #[inline]
    fn number(&self) -> Option<f64> {
        if let Self::Known(value) = self { value.number() } else { None }
    }

    #[inline]
    fn from_number(number: f64) -> Self {
        Self::Known(Value::Number(number))
    }

    #[inline]
    fn scalar(&self) -> Option<Scalar> {
        if let Self::Known(value) = self { value.scalar() } else { None }
    }

    #[inline]
    fn from_scalar(scalar: Scalar) -> Self {
        Self::Known(tape::Value::from_scalar(scalar))
    }
}

impl Flow {
    /// The value of a Python object.
    pub fn new(object: &Bound<'_, PyAny>) -> Self {
        Self::Known(Value::new(object))
    }

    /// Another reference to the same.
    pub fn share(&self, py: Python<'_>) -> Self {
        match self {
            Self::Known(value) => Self::Known(value.share(py)),
            Self::Waiting(waiting) => Self::Waiting(waiting.clone()),
        }
    }

    /// The value, if nobody else holds it and it is known.
    pub fn last(self) -> Option<Value> {
        match self {
            Self::Known(value) => Some(value),
            Self::Waiting(waiting) => Rc::into_inner(waiting)?.computed.into_inner().map(Value::Object),
        }
    }

    /// The array, where it is known already.
    fn known<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::Known(Value::Object(object)) => Some(object.bind(py).clone()),
            Self::Known(_) => None,
            Self::Waiting(waiting) => waiting.computed.get().map(|array| array.bind(py).clone()),
        }
    }
}

/// An array that the program reads.
struct Leaf {
    array: Py<PyAny>,
    memory: Memory,
    buffer: Buffer,
}

/// The program of all that waits, which is of one shape and dtype.
pub struct Fusion {
    shape: SmallVec<[usize; 4]>,
    dtype: Dtype,
    nodes: Vec<Node>,
    leaves: Vec<Leaf>,
    waiting: Vec<Rc<Waiting>>,
}

impl Default for Fusion {
    fn default() -> Self {
        let (nodes, leaves, waiting) = (Vec::new(), Vec::new(), Vec::new());
        Self { shape: SmallVec::new(), dtype: Dtype::F64, nodes, leaves, waiting }
    }
}

impl Fusion {
    /// What the rule of an elementwise op gives, to be computed later; none where it has to be computed at once.
    pub fn wait(
        &mut self,
        py: Python<'_>,
        rule: &Rule,
        entry: &View<'_, Value, Attributes>,
        cotangent: &Flow,
    ) -> PyResult<Option<Flow>> {
        let Some(g) = self.begin(py, cotangent)? else { return Ok(None) };
        let mut places: SmallVec<[u32; 8]> = SmallVec::new();
        for node in &rule.nodes {
            let place = match *node {
                Node::Leaf(leaf) => match rule.sources[leaf as usize] {
                    Source::Cotangent => Some(g),
                    Source::Result => self.operand(py, entry.result())?,
                    Source::Arg(which) => self.operand(py, entry.arg(which as usize))?,
                },
                Node::Constant(_) => Some(self.push(*node)),
                Node::Apply(op, args) => {
                    let place = |arg: u32| places.get(arg as usize).copied().unwrap_or_default();
                    Some(self.push(Node::Apply(op, args.map(place))))
                }
                Node::Scalar(_) | Node::Noise(_) | Node::Sum(_) | Node::Total(..) => None,
            };
            let Some(place) = place else { return Ok(None) };
            places.push(place);
        }
        let Some(node) = places.last() else { return Ok(None) };
        self.keep_waiting(py, *node).map(Some)
    }

    /// The sum of two cotangents of which one waits, to be computed later as well; none where neither does, or they
    /// differ in shape or dtype.
    pub fn add(&mut self, py: Python<'_>, a: &Flow, b: &Flow) -> PyResult<Option<Flow>> {
        let waits = |flow: &Flow| matches!(flow, Flow::Waiting(waiting) if waiting.computed.get().is_none());
        if !waits(a) && !waits(b) {
            return Ok(None);
        }
        let (Some(a), Some(b)) = (self.term(py, a)?, self.term(py, b)?) else { return Ok(None) };
        let node = self.push(Node::Apply(Elementwise::Add, [a, b, 0]));
        self.keep_waiting(py, node).map(Some)
    }

    /// The value of a cotangent; computed now, if it has waited.
    pub fn settle(&mut self, py: Python<'_>, flow: &Flow) -> PyResult<Value> {
        match flow {
            Flow::Known(value) => Ok(value.share(py)),
            Flow::Waiting(waiting) => {
                if waiting.computed.get().is_none() {
                    self.run(py)?;
                }
                let array = waiting.computed.get().expect("whatever waits has been computed");
                Ok(Value::Object(array.clone_ref(py)))
            }
        }
    }

    /// The node of a large cotangent, of whose shape and dtype the program is from now on.
    fn begin(&mut self, py: Python<'_>, cotangent: &Flow) -> PyResult<Option<u32>> {
        if let Flow::Known(value) = cotangent
            && !matches!(value, Value::Object(object) if is_large(object.bind(py)))
        {
            return Ok(None);
        }
        let Some(array) = cotangent.known(py) else { return self.term(py, cotangent) };
        let Some(memory) = Memory::of_numpy(&array)? else { return Ok(None) };
        let Ok(buffer) = memory.computing() else { return Ok(None) };
        if self.shape[..] != *memory.shape() || self.dtype != buffer.dtype() {
            self.run(py)?;
            (self.shape, self.dtype) = (memory.shape().into(), buffer.dtype());
        }
        Ok(Some(self.leaf(py, &array, memory, buffer)))
    }

    /// The node of a cotangent of the shape and dtype of the program.
    fn term(&mut self, py: Python<'_>, flow: &Flow) -> PyResult<Option<u32>> {
        if let Some(array) = flow.known(py) {
            let Some(memory) = Memory::of_numpy(&array)? else { return Ok(None) };
            let buffer = memory.computing().ok().filter(|buffer| buffer.dtype() == self.dtype);
            let buffer = buffer.filter(|_| memory.shape() == &self.shape[..]);
            return Ok(buffer.map(|buffer| self.leaf(py, &array, memory, buffer)));
        }
        Ok(if let Flow::Waiting(waiting) = flow { Some(waiting.node) } else { None })
    }

    /// The node of what a rule reads: a number, or an array that can be broadcast to the shape of the program.
    fn operand(&mut self, py: Python<'_>, value: &Value) -> PyResult<Option<u32>> {
        Ok(match value {
            Value::Absent => None,
            Value::Number(number) => Some(self.push(Node::Constant(*number))),
            value => {
                let object = value.object(py);
                let Some(memory) = Memory::of_numpy(&object)? else { return Ok(None) };
                let buffer = memory.broadcast(&self.shape);
                buffer.map(|buffer| self.leaf(py, &object, memory, buffer))
            }
        })
    }

    fn leaf(&mut self, py: Python<'_>, array: &Bound<'_, PyAny>, memory: Memory, buffer: Buffer) -> u32 {
        let known = self.leaves.iter().position(|leaf| leaf.array.is(array));
        let at = known.unwrap_or_else(|| {
            self.leaves.push(Leaf { array: array.clone().unbind().clone_ref(py), memory, buffer });
            self.leaves.len() - 1
        });
        self.push(Node::Leaf(u32::try_from(at).expect("a program reads few arrays")))
    }

    fn push(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        u32::try_from(self.nodes.len() - 1).expect("a program is short")
    }

    fn keep_waiting(&mut self, py: Python<'_>, node: u32) -> PyResult<Flow> {
        let waiting = Rc::new(Waiting { node, computed: OnceCell::new() });
        self.waiting.push(waiting.clone());
        if self.nodes.len() > NODES || self.leaves.len() > LEAVES {
            self.run(py)?;
        }
        Ok(Flow::Waiting(waiting))
    }

    /// Computes whatever still waits.
    fn run(&mut self, py: Python<'_>) -> PyResult<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let wanted: Vec<Rc<Waiting>> = waiting.into_iter().filter(|waiting| Rc::strong_count(waiting) > 1).collect();
        let (nodes, leaves) = (std::mem::take(&mut self.nodes), std::mem::take(&mut self.leaves));
        if wanted.is_empty() {
            return Ok(());
        }
        let outputs: Vec<u32> = wanted.iter().map(|waiting| waiting.node).collect();
        let kernel = compiled(&nodes, &outputs).python()?;
        let (mut arrays, mut buffers) = (Vec::with_capacity(wanted.len()), Vec::with_capacity(wanted.len()));
        for _ in &wanted {
            let (array, buffer) = array_pool::take(py, &self.shape, self.dtype)?;
            arrays.push(array);
            buffers.push(buffer);
        }
        let inputs: Vec<Buffer> = leaves.iter().map(|leaf| leaf.buffer.clone()).collect();
        // SAFETY: `leaves` and `arrays` keep the memory; the outputs are new or nobody else's, so they overlap nothing.
        unsafe { execute(py, &kernel, &inputs, &buffers, self.dtype) }?;
        for (waiting, array) in wanted.iter().zip(arrays) {
            waiting.computed.set(array.unbind()).expect("it is computed once");
        }
        for Leaf { array, memory, .. } in leaves {
            drop(memory);
            array_pool::keep(py, Value::Object(array));
        }
        Ok(())
    }
}

/// Whether an array is worth the wait: below, the pass over memory that is saved costs less than the kernel.
fn is_large(array: &Bound<'_, PyAny>) -> bool {
    length(array) >= Some(LARGE)
}

/// The kernel of a program, which the next replay of the same function asks for again.
fn compiled(nodes: &[Node], outputs: &[u32]) -> oxigrad_core::error::Result<Rc<Kernel>> {
    thread_local!(static KERNELS_OF: RefCell<HashMap<Vec<u64>, Rc<Kernel>>> = RefCell::default());
    let key = signature(nodes, outputs);
    KERNELS_OF.with_borrow_mut(|kernels| {
        if let Some(kernel) = kernels.get(&key) {
            return Ok(kernel.clone());
        }
        let kernel = Rc::new(Kernel::compile(nodes, outputs)?);
        if kernels.len() == KERNELS {
            kernels.clear();
        }
        kernels.insert(key, kernel.clone());
        Ok(kernel)
    })
}

/// What tells programs apart.
fn signature(nodes: &[Node], outputs: &[u32]) -> Vec<u64> {
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let words = |node: &Node| match *node {
        Node::Leaf(leaf) => [pair(0, leaf), 0],
        Node::Constant(number) => [pair(1, 0), number.to_bits()],
        Node::Apply(op, [a, b, c]) => [pair(c << 8 | 2, op as u32), pair(a, b)],
        Node::Scalar(_) | Node::Noise(_) | Node::Sum(_) | Node::Total(..) => {
            unreachable!("the program has none of these")
        }
    };
    nodes.iter().flat_map(words).chain(outputs.iter().map(|output| pair(3, *output))).collect()
}
