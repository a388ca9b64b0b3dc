//! The update rules that are shipped as native code, as programs.

#![allow(clippy::many_single_char_names, reason = "the letters of the formulas")]
#![allow(dead_code, reason = "the benchmark uses one of them")]

use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::Elementwise::{self, Add, Divide, Multiply, Pow, Sqrt, Subtract};

/// Writes a program down, line by line.
#[derive(Default)]
pub struct Program(Vec<Node>);

impl Program {
    pub fn node(&mut self, node: Node) -> u32 {
        self.0.push(node);
        u32::try_from(self.0.len() - 1).unwrap()
    }

    pub fn apply(&mut self, op: Elementwise, a: u32, b: u32) -> u32 {
        self.node(Node::Apply(op, [a, b, 0]))
    }

    pub fn compile(&self, outputs: &[u32]) -> Kernel {
        Kernel::compile(&self.0, outputs).unwrap()
    }

    /// `beta * old + (1 - beta) * new`
    fn mean(&mut self, beta: u32, old: u32, new: &[u32]) -> u32 {
        let one = self.node(Node::Constant(1.0));
        let rest = self.apply(Subtract, one, beta);
        let kept = self.apply(Multiply, beta, old);
        let fresh = new.iter().fold(rest, |product, factor| self.apply(Multiply, product, *factor));
        self.apply(Add, kept, fresh)
    }

    /// `1 - beta**step`
    fn bias(&mut self, beta: u32, step: u32) -> u32 {
        let one = self.node(Node::Constant(1.0));
        let power = self.apply(Pow, beta, step);
        self.apply(Subtract, one, power)
    }
}

/// Leaves p, g, m, v; scalars `learning_rate`, `beta1`, `beta2`, epsilon, step and (decayed) `weight_decay`.
pub fn adam(decayed: bool) -> Kernel {
    let mut r = Program::default();
    let [p, g, m, v] = [0, 1, 2, 3].map(|k| r.node(Node::Leaf(k)));
    let [learning_rate, beta1, beta2, epsilon, step] = [0, 1, 2, 3, 4].map(|k| r.node(Node::Scalar(k)));
    let m = r.mean(beta1, m, &[g]);
    let v = r.mean(beta2, v, &[g, g]);
    let mut p = p;
    if decayed {
        let weight_decay = r.node(Node::Scalar(5));
        let decay = r.apply(Multiply, learning_rate, weight_decay);
        let decay = r.apply(Multiply, decay, p);
        p = r.apply(Subtract, p, decay);
    }
    let bias = r.bias(beta1, step);
    let rate = r.apply(Divide, learning_rate, bias);
    let bias = r.bias(beta2, step);
    let bias = r.node(Node::Apply(Sqrt, [bias, 0, 0]));
    let one = r.node(Node::Constant(1.0));
    let scale = r.apply(Divide, one, bias);
    let root = r.node(Node::Apply(Sqrt, [v, 0, 0]));
    let root = r.apply(Multiply, root, scale);
    let root = r.apply(Add, root, epsilon);
    let update = r.apply(Multiply, rate, m);
    let update = r.apply(Divide, update, root);
    let p = r.apply(Subtract, p, update);
    r.compile(&[p, m, v])
}

/// Leaves p, g; scalar `learning_rate`.
pub fn sgd() -> Kernel {
    let mut r = Program::default();
    let [p, g] = [0, 1].map(|k| r.node(Node::Leaf(k)));
    let learning_rate = r.node(Node::Scalar(0));
    let update = r.apply(Multiply, learning_rate, g);
    let p = r.apply(Subtract, p, update);
    r.compile(&[p])
}
