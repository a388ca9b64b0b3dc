//! Deferred cotangents: the elementwise rules of consecutive entries over large arrays are fused into one kernel, which
//! reads each array once and writes only the cotangents that are asked for.
//!
//! During a replay, only the rule of a structured op reads the value of a cotangent, so that its computation can be
//! deferred. All deferred cotangents are computed together as soon as one of them is resolved: nothing is computed
//! twice.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use smallvec::SmallVec;

use crate::array::buffer::{Buffer, Dtype};
use crate::array::view::ArrayView;
use crate::autodiff::mask::Zeros;
use crate::autodiff::rule::Rule;
use crate::autodiff::tape::{self, Value as _, View};
use crate::error;
use crate::kernel::{Kernel, Node};
use crate::op::Elementwise;
use crate::scalar::Scalar;

/// The numbers of nodes and of arrays at which a program runs at once, since it keeps the arrays alive until it runs.
const NODES: usize = 256;
const LEAVES: usize = 32;
/// The number of kernels that each thread keeps.
const KERNELS: usize = 64;

/// The host of the arrays: it reads, computes and frees them.
pub trait Arrays {
    /// A value of the tape: a number, an array, or nothing.
    type Value: tape::Value;
    /// A reference that keeps the memory of an array in place.
    type Held;
    /// The error of an operation on arrays.
    type Error;

    /// Another reference to the same value.
    fn share(&self, value: &Self::Value) -> Self::Value;

    /// Whether both are references to one array.
    fn is_same(&self, a: &Self::Value, b: &Self::Value) -> bool;

    /// Whether the value is an array so large that fusion pays off.
    fn is_large(&self, value: &Self::Value) -> bool;

    /// The memory of a value; `None` if it is not an array that kernels can read.
    ///
    /// # Errors
    /// An error if reading the array fails.
    fn hold(&self, value: &Self::Value) -> Result<Option<Self::Held>, Self::Error>;

    /// The description of a held array.
    fn view<'h>(&self, held: &'h Self::Held) -> &'h ArrayView;

    /// Runs a kernel over contiguous new arrays of one shape and dtype, `outputs` of them, and returns them.
    ///
    /// # Errors
    /// An error if memory cannot be allocated, or the kernel does not match the inputs.
    fn compute(
        &self,
        kernel: &Kernel,
        inputs: &[Buffer],
        outputs: usize,
        shape: &[usize],
        dtype: Dtype,
    ) -> Result<Vec<Self::Value>, Self::Error>;

    /// Takes a value that the program no longer needs: its memory may be reused.
    fn retire(&self, value: Self::Value);

    /// An error of the core as the host's.
    fn error(&self, error: error::Error) -> Self::Error;
}

/// A cotangent or a tangent, known or deferred.
#[derive(Debug)]
pub enum Cotangent<V> {
    /// The value.
    Known(V),
    /// A node of a program that may not have run yet.
    Deferred(Rc<Deferred<V>>),
    /// A cotangent that is zero where an op did not select what it belongs to.
    Masked(Box<Masked<V>>),
}

/// A cotangent, and where it is zero.
#[derive(Debug)]
pub struct Masked<V> {
    /// The cotangent.
    pub cotangent: Cotangent<V>,
    /// Its zeros.
    pub zeros: Rc<Zeros<V>>,
    /// Whether rules may have computed other numbers there, which are still to be replaced by zeros.
    pub is_pending: bool,
}

/// A node of a program, and its value once that has run.
#[derive(Debug)]
pub struct Deferred<V> {
    node: u32,
    computed: OnceCell<V>,
}

impl<V: tape::Value> tape::Value for Cotangent<V> {
    fn absent() -> Self {
        Self::Known(V::absent())
    }

    fn is_absent(&self) -> bool {
        matches!(self, Self::Known(value) if value.is_absent())
    }

    #[inline]
    fn number(&self) -> Option<f64> {
        if let Self::Known(value) = self { value.number() } else { None }
    }

    #[inline]
    fn from_number(number: f64) -> Self {
        Self::Known(V::from_number(number))
    }

    #[inline]
    fn scalar(&self) -> Option<Scalar> {
        if let Self::Known(value) = self { value.scalar() } else { None }
    }

    #[inline]
    fn from_scalar(scalar: Scalar) -> Self {
        Self::Known(V::from_scalar(scalar))
    }
}

impl<V> Cotangent<V> {
    /// Another reference to the same cotangent; `share` makes one to a known value.
    pub fn share(&self, share: impl FnOnce(&V) -> V) -> Self {
        match self {
            Self::Known(value) => Self::Known(share(value)),
            Self::Deferred(deferred) => Self::Deferred(deferred.clone()),
            Self::Masked(masked) => {
                let Masked { cotangent, zeros, is_pending } = &**masked;
                let (cotangent, zeros) = (cotangent.share(share), zeros.clone());
                Self::Masked(Box::new(Masked { cotangent, zeros, is_pending: *is_pending }))
            }
        }
    }

    /// The value, if it is known or computed, and not masked.
    #[must_use]
    pub fn computed(&self) -> Option<&V> {
        match self {
            Self::Known(value) => Some(value),
            Self::Deferred(deferred) => deferred.computed.get(),
            Self::Masked(_) => None,
        }
    }

    /// The value, if it is known or computed and this is the last reference to it.
    #[must_use]
    pub fn into_computed(self) -> Option<V> {
        match self {
            Self::Known(value) => Some(value),
            Self::Deferred(deferred) => Rc::into_inner(deferred)?.computed.into_inner(),
            Self::Masked(masked) => masked.cotangent.into_computed(),
        }
    }
}

/// An array that the program reads.
struct Leaf<H: Arrays> {
    value: H::Value,
    _held: H::Held,
    buffer: Buffer,
}

/// The program of all deferred cotangents, which are of one shape and dtype.
pub struct Fusion<H: Arrays> {
    shape: SmallVec<[usize; 4]>,
    dtype: Dtype,
    nodes: Vec<Node>,
    leaves: Vec<Leaf<H>>,
    deferred: Vec<Rc<Deferred<H::Value>>>,
}

impl<H: Arrays> Default for Fusion<H> {
    fn default() -> Self {
        let (nodes, leaves, deferred) = (Vec::new(), Vec::new(), Vec::new());
        Self { shape: SmallVec::new(), dtype: Dtype::F64, nodes, leaves, deferred }
    }
}

impl<H: Arrays> Fusion<H> {
    /// Defers the rule of an elementwise op; `None` if the rule has to be computed at once.
    ///
    /// # Errors
    /// Any error of the host.
    pub fn defer<A>(
        &mut self,
        host: &H,
        rule: &Rule,
        entry: &View<'_, H::Value, A>,
        cotangent: &Cotangent<H::Value>,
    ) -> Result<Option<Cotangent<H::Value>>, H::Error> {
        let Some(g) = self.begin(host, cotangent)? else { return Ok(None) };
        let mut nodes: SmallVec<[u32; 8]> = SmallVec::new();
        for node in &rule.nodes {
            let node = match *node {
                Node::Leaf(leaf) => match rule.sources[leaf as usize].kept(entry) {
                    None => Some(g),
                    Some(value) => self.operand(host, value)?,
                },
                Node::Constant(_) => Some(self.push(*node)),
                Node::Apply(op, args) => {
                    let node = |arg: u32| nodes.get(arg as usize).copied().unwrap_or_default();
                    Some(self.push(Node::Apply(op, args.map(node))))
                }
                Node::Scalar(_) | Node::Noise(_) | Node::Sum(_) | Node::Dot(_) | Node::Total(..) => None,
            };
            let Some(node) = node else { return Ok(None) };
            nodes.push(node);
        }
        let Some(node) = nodes.last() else { return Ok(None) };
        self.defer_node(host, *node).map(Some)
    }

    /// Defers the sum of two cotangents; `None` if neither is deferred, or they differ in shape or dtype.
    ///
    /// # Errors
    /// Any error of the host.
    pub fn add(
        &mut self,
        host: &H,
        a: &Cotangent<H::Value>,
        b: &Cotangent<H::Value>,
    ) -> Result<Option<Cotangent<H::Value>>, H::Error> {
        if a.computed().is_some() && b.computed().is_some() {
            return Ok(None);
        }
        let (Some(a), Some(b)) = (self.term(host, a)?, self.term(host, b)?) else { return Ok(None) };
        let node = self.push(Node::Apply(Elementwise::Add, [a, b, 0]));
        self.defer_node(host, node).map(Some)
    }

    /// Defers a cotangent with zeros where a mask has them; `None` if they have to be written at once.
    ///
    /// # Errors
    /// Any error of the host.
    pub fn zeroed(
        &mut self,
        host: &H,
        cotangent: &Cotangent<H::Value>,
        zeros: &Zeros<H::Value>,
    ) -> Result<Option<Cotangent<H::Value>>, H::Error> {
        let (Zeros::If(first) | Zeros::Unless(first) | Zeros::Less(first, _)) = zeros else { return Ok(None) };
        let Some(g) = self.begin(host, cotangent)? else { return Ok(None) };
        let Some(mut condition) = self.operand(host, first)? else { return Ok(None) };
        let zero = self.push(Node::Constant(0.0));
        let (mut one, mut other) = (zero, g);
        match zeros {
            Zeros::If(_) | Zeros::Described(_) => {}
            Zeros::Unless(_) => (one, other) = (g, zero),
            Zeros::Less(_, second) => {
                let Some(second) = self.operand(host, second)? else { return Ok(None) };
                condition = self.push(Node::Apply(Elementwise::Less, [condition, second, 0]));
            }
        }
        let node = self.push(Node::Apply(Elementwise::Where, [condition, one, other]));
        self.defer_node(host, node).map(Some)
    }

    /// The value of a cotangent, computed now if it is deferred.
    ///
    /// # Errors
    /// Any error of the host.
    ///
    /// # Panics
    /// Panics on a cotangent that another `Fusion` deferred.
    pub fn resolve(&mut self, host: &H, cotangent: &Cotangent<H::Value>) -> Result<H::Value, H::Error> {
        if cotangent.computed().is_none() {
            self.run(host)?;
        }
        Ok(host.share(cotangent.computed().expect("a program computes all that is deferred")))
    }

    /// Computes all that is deferred, so that arrays which it reads may change.
    ///
    /// # Errors
    /// Any error of the host.
    pub fn flush(&mut self, host: &H) -> Result<(), H::Error> {
        self.run(host)
    }

    /// The node of a large cotangent, whose shape and dtype the program has from now on.
    fn begin(&mut self, host: &H, cotangent: &Cotangent<H::Value>) -> Result<Option<u32>, H::Error> {
        if matches!(cotangent, Cotangent::Known(value) if !host.is_large(value)) {
            return Ok(None);
        }
        let Some(value) = cotangent.computed() else { return self.term(host, cotangent) };
        let Some(held) = host.hold(value)? else { return Ok(None) };
        let view = host.view(&held);
        let Some(buffer) = view.computing() else { return Ok(None) };
        if self.shape != view.extents || self.dtype != buffer.dtype() {
            self.run(host)?;
            (self.shape, self.dtype) = (view.extents.clone(), buffer.dtype());
        }
        Ok(Some(self.leaf(host, value, held, buffer)))
    }

    /// The node of a cotangent that has the shape and dtype of the program.
    fn term(&mut self, host: &H, cotangent: &Cotangent<H::Value>) -> Result<Option<u32>, H::Error> {
        if let Some(value) = cotangent.computed() {
            let Some(held) = host.hold(value)? else { return Ok(None) };
            let view = host.view(&held);
            let buffer = view.computing().filter(|buffer| buffer.dtype() == self.dtype);
            let buffer = buffer.filter(|_| view.extents == self.shape);
            return Ok(buffer.map(|buffer| self.leaf(host, value, held, buffer)));
        }
        Ok(if let Cotangent::Deferred(deferred) = cotangent { Some(deferred.node) } else { None })
    }

    /// The node of a number, or of an array that can be broadcast to the shape of the program.
    fn operand(&mut self, host: &H, value: &H::Value) -> Result<Option<u32>, H::Error> {
        if let Some(number) = value.number() {
            return Ok(Some(self.push(Node::Constant(number))));
        }
        let Some(held) = host.hold(value)? else { return Ok(None) };
        let buffer = host.view(&held).broadcast(&self.shape);
        Ok(buffer.map(|buffer| self.leaf(host, value, held, buffer)))
    }

    fn leaf(&mut self, host: &H, value: &H::Value, held: H::Held, buffer: Buffer) -> u32 {
        let known = self.leaves.iter().position(|leaf| host.is_same(&leaf.value, value));
        let at = known.unwrap_or_else(|| {
            self.leaves.push(Leaf { value: host.share(value), _held: held, buffer });
            self.leaves.len() - 1
        });
        self.push(Node::Leaf(u32::try_from(at).expect("a program reads few arrays")))
    }

    fn push(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        u32::try_from(self.nodes.len() - 1).expect("a program is short")
    }

    fn defer_node(&mut self, host: &H, node: u32) -> Result<Cotangent<H::Value>, H::Error> {
        let deferred = Rc::new(Deferred { node, computed: OnceCell::new() });
        self.deferred.push(deferred.clone());
        if self.nodes.len() > NODES || self.leaves.len() > LEAVES {
            self.run(host)?;
        }
        Ok(Cotangent::Deferred(deferred))
    }

    /// Computes all deferred cotangents that are still referenced.
    fn run(&mut self, host: &H) -> Result<(), H::Error> {
        let deferred = std::mem::take(&mut self.deferred);
        let wanted: Vec<_> = deferred.into_iter().filter(|deferred| Rc::strong_count(deferred) > 1).collect();
        let (nodes, leaves) = (std::mem::take(&mut self.nodes), std::mem::take(&mut self.leaves));
        if wanted.is_empty() {
            return Ok(());
        }
        let outputs: Vec<u32> = wanted.iter().map(|deferred| deferred.node).collect();
        let kernel = compiled(&nodes, &outputs).map_err(|error| host.error(error))?;
        let inputs: Vec<Buffer> = leaves.iter().map(|leaf| leaf.buffer.clone()).collect();
        let values = host.compute(&kernel, &inputs, wanted.len(), &self.shape, self.dtype)?;
        for (deferred, value) in wanted.iter().zip(values) {
            assert!(deferred.computed.set(value).is_ok(), "a program runs once");
        }
        for Leaf { value, _held: held, .. } in leaves {
            drop(held);
            host.retire(value);
        }
        Ok(())
    }
}

/// The kernel of a program, cached for the next replay of the same function.
fn compiled(nodes: &[Node], outputs: &[u32]) -> error::Result<Rc<Kernel>> {
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

/// The key of a program: equal for equal programs only.
fn signature(nodes: &[Node], outputs: &[u32]) -> Vec<u64> {
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let words = |node: &Node| match *node {
        Node::Leaf(leaf) => [pair(0, leaf), 0],
        Node::Constant(number) => [pair(1, 0), number.to_bits()],
        Node::Apply(op, [a, b, c]) => [pair(c << 8 | 2, op as u32), pair(a, b)],
        Node::Scalar(_) | Node::Noise(_) | Node::Sum(_) | Node::Dot(_) | Node::Total(..) => {
            unreachable!("the program has none of these")
        }
    };
    nodes.iter().flat_map(words).chain(outputs.iter().map(|output| pair(3, *output))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_tell_programs_apart() {
        let apply = |op, args| Node::Apply(op, args);
        let programs: [(&[Node], &[u32]); 6] = [
            (&[Node::Leaf(0)], &[0]),
            (&[Node::Leaf(1)], &[0]),
            (&[Node::Constant(0.0)], &[0]),
            (&[Node::Constant(-0.0)], &[0]),
            (&[Node::Leaf(0), apply(Elementwise::Add, [0, 0, 0])], &[1]),
            (&[Node::Leaf(0), apply(Elementwise::Add, [0, 0, 0])], &[0]),
        ];
        let signatures: Vec<_> = programs.iter().map(|(nodes, outputs)| signature(nodes, outputs)).collect();
        for (at, one) in signatures.iter().enumerate() {
            assert!(signatures[..at].iter().all(|other| other != one), "program {at} is taken for an earlier one");
        }
    }
}
