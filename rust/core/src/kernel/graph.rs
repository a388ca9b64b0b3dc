//! Simplification of a program: common subexpressions are merged, constants folded, and dead nodes dropped.

use std::collections::HashMap;

use super::program::{Node, Wanted};
use crate::error::{Error, Result};
use crate::op::{Attribute, Elementwise};

/// The needed nodes, arguments first, and the phase of each.
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    pub outputs: Vec<usize>,
    pub results: Vec<usize>,
    pub guard: Option<usize>,
    /// Whether the value is one number for the leaf.
    pub scalar: Vec<bool>,
    /// The number of nested sums that the value depends on.
    pub phase: Vec<usize>,
}

/// A node as a key: numbers by their bits, arguments of commutative ops in order.
#[derive(PartialEq, Eq, Hash)]
enum NodeKey {
    Leaf(u32),
    Scalar(u32),
    Constant(u64),
    Noise(u32),
    Apply(Elementwise, [u32; 3]),
    Sum(u32),
    Dot([u32; 2]),
    Total(u32, u32),
}

#[derive(Default)]
struct Interner {
    nodes: Vec<Node>,
    ids: HashMap<NodeKey, u32>,
}

impl Graph {
    pub fn new(nodes: &[Node], wanted: &Wanted) -> Result<Self> {
        let mut interner = Interner::default();
        let mut renamed: Vec<u32> = Vec::with_capacity(nodes.len());
        for (id, node) in nodes.iter().enumerate() {
            let rename = |arg: u32| {
                renamed.get(arg as usize).copied().ok_or_else(|| {
                    Error::Rule(format!("node {id} of the program: found argument {arg}, expected an earlier node"))
                })
            };
            renamed.push(interner.simplify(node.renamed(rename)?));
        }
        let roots = wanted.outputs.iter().chain(wanted.results).chain(&wanted.guard).map(|root| {
            renamed.get(*root as usize).map(|id| *id as usize).ok_or_else(|| {
                Error::Rule(format!("output {root}: expected a node of the program, which has {}", renamed.len()))
            })
        });
        let (nodes, roots) = in_order_of_need(&interner.nodes, &roots.collect::<Result<Vec<_>>>()?);
        let (outputs, numbers) = roots.split_at(wanted.outputs.len());
        let (results, guard) = numbers.split_at(wanted.results.len());
        let graph = Self::classify(nodes, outputs.to_vec(), results.to_vec(), guard.first().copied());
        graph.check()?;
        Ok(graph)
    }

    /// Checks that results, guards and totals are computed from numbers and sums.
    fn check(&self) -> Result<()> {
        let totals = self.nodes.iter().filter(|node| matches!(node, Node::Total(..))).flat_map(Node::arguments);
        if self.results.iter().copied().chain(self.guard).chain(totals).all(|id| self.scalar[id]) {
            return Ok(());
        }
        Err(Error::Rule("found an array, expected a number, computed from numbers and sums".into()))
    }

    /// The phase in which the outputs are written: the first in which all that they wait for is known.
    pub fn writing(&self) -> usize {
        self.outputs.iter().chain(&self.guard).map(|id| self.phase[*id]).max().unwrap_or(0)
    }

    /// The program without the results that depend on sums; `None` if outputs do, or sums on others.
    pub fn without_sums(&self) -> Option<Self> {
        // A scalar that is written would have another register.
        if self.phase.iter().any(|phase| *phase > 1)
            || self.writing() > 0
            || self.guard.is_some()
            || self.outputs.iter().any(|id| self.scalar[*id])
        {
            return None;
        }
        let results = self.results.iter().copied().filter(|id| self.phase[*id] == 0);
        let roots: Vec<usize> = self.outputs.iter().copied().chain(results).collect();
        let (nodes, roots) = in_order_of_need(&self.nodes, &roots);
        let (outputs, results) = roots.split_at(self.outputs.len());
        Some(Self::classify(nodes, outputs.to_vec(), results.to_vec(), None))
    }

    fn classify(nodes: Vec<Node>, outputs: Vec<usize>, results: Vec<usize>, guard: Option<usize>) -> Self {
        let (mut scalar, mut phase) = (Vec::with_capacity(nodes.len()), Vec::with_capacity(nodes.len()));
        for node in &nodes {
            let (is_scalar, in_phase) = match *node {
                Node::Leaf(_) | Node::Noise(_) => (false, 0),
                Node::Scalar(_) | Node::Constant(_) => (true, 0),
                Node::Sum(_) | Node::Dot(_) => (true, node.arguments().map(|arg| phase[arg]).max().unwrap_or(0) + 1),
                Node::Total(arg, _) => (true, phase[arg as usize]),
                Node::Apply(..) => {
                    let latest = node.arguments().map(|arg| phase[arg]).max();
                    (node.arguments().all(|arg| scalar[arg]), latest.unwrap_or(0))
                }
            };
            scalar.push(is_scalar);
            phase.push(in_phase);
        }
        Self { nodes, outputs, results, guard, scalar, phase }
    }
}

/// The nodes that the outputs need, each just after its arguments: a canonical order of programs, with short lifetimes
/// of values.
fn in_order_of_need(nodes: &[Node], outputs: &[usize]) -> (Vec<Node>, Vec<usize>) {
    let mut renamed: Vec<Option<u32>> = vec![None; nodes.len()];
    let mut ordered = Vec::new();
    let mut waiting: Vec<usize> = outputs.iter().rev().copied().collect();
    while let Some(id) = waiting.last().copied() {
        let missing: Vec<usize> = nodes[id].arguments().filter(|arg| renamed[*arg].is_none()).collect();
        if renamed[id].is_none() && missing.is_empty() {
            let Ok(node) = nodes[id].renamed(|arg| renamed[arg as usize].ok_or(())) else {
                unreachable!("none is missing")
            };
            renamed[id] = u32::try_from(ordered.len()).ok();
            ordered.push(node);
        }
        if missing.is_empty() {
            waiting.pop();
        }
        waiting.extend(missing.into_iter().rev());
    }
    let outputs = outputs.iter().filter_map(|output| renamed[*output]).map(|id| id as usize).collect();
    (ordered, outputs)
}

/// Whether each node is needed by the roots, going only through nodes for which `through` holds.
pub(super) fn reachable(
    nodes: &[Node],
    roots: impl IntoIterator<Item = usize>,
    through: impl Fn(usize) -> bool,
) -> Vec<bool> {
    let mut needed = vec![false; nodes.len()];
    for root in roots {
        needed[root] = true;
    }
    for id in (0..nodes.len()).rev().filter(|id| through(*id)) {
        if needed[id] {
            nodes[id].arguments().for_each(|arg| needed[arg] = true);
        }
    }
    needed
}

impl Interner {
    /// The id of a node that has the same value, to the bit.
    fn simplify(&mut self, node: Node) -> u32 {
        let Node::Apply(op, args) = node else { return self.intern(node) };
        let constant = |arg: u32| match self.nodes[arg as usize] {
            Node::Constant(value) => Some(value),
            _ => None,
        };
        let mut values = [0.0; 3];
        let folded = (0..op.arity()).all(|k| constant(args[k]).map(|value| values[k] = value).is_some());
        if folded {
            return self.intern(Node::Constant(op.on_numbers(values)));
        }
        // The meaning of pow is the argument, and its product with itself, for these two exponents.
        let exponent = (op == Elementwise::Pow).then(|| constant(args[1])).flatten();
        if op.has(Attribute::Identity) || exponent == Some(1.0) {
            args[0]
        } else if op == Elementwise::Square || exponent == Some(2.0) {
            self.intern(Node::Apply(Elementwise::Multiply, [args[0], args[0], 0]))
        } else {
            self.intern(node)
        }
    }

    fn intern(&mut self, node: Node) -> u32 {
        let next = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let id = *self.ids.entry(key(node)).or_insert(next);
        if id == next {
            self.nodes.push(node);
        }
        id
    }
}

fn key(node: Node) -> NodeKey {
    match node {
        Node::Leaf(k) => NodeKey::Leaf(k),
        Node::Scalar(k) => NodeKey::Scalar(k),
        Node::Constant(value) => NodeKey::Constant(value.to_bits()),
        Node::Noise(k) => NodeKey::Noise(k),
        Node::Apply(op, [a, b, _]) if op.has(Attribute::Commutative) => NodeKey::Apply(op, [a.min(b), a.max(b), 0]),
        Node::Apply(op, args) => NodeKey::Apply(op, args),
        Node::Sum(arg) => NodeKey::Sum(arg),
        Node::Dot([a, b]) => NodeKey::Dot([a.min(b), a.max(b)]),
        Node::Total(arg, number) => NodeKey::Total(arg, number),
    }
}
