//! The chain `y = y * c; y = y + x` on numbers, as the benchmarks record and replay it.

use oxigrad_core::autodiff::replay::Host;
use oxigrad_core::autodiff::rule::{Rule, Rules, Source};
use oxigrad_core::autodiff::tape::{Id, Tape, View};
use oxigrad_core::kernel::Node;
use oxigrad_core::op::{Elementwise, Op};

/// A value of the tape; none where it is not kept.
pub type Number = Option<f64>;

/// Derivatives of addition and multiplication, on numbers.
pub struct Numbers(Rules);

impl Host<Number, ()> for Numbers {
    type Error = ();
    type Flow = Number;
    fn rules(&self) -> &Rules {
        &self.0
    }
    fn pullback(&mut self, _: &View<'_, Number, ()>, _: usize, _: &Number) -> Result<Number, ()> {
        Err(())
    }
    fn pull_together(&mut self, _: &View<'_, Number, ()>, _: &Number) -> Result<Option<Vec<Number>>, ()> {
        Ok(None)
    }
    fn pushforward(&mut self, _: &View<'_, Number, ()>, _: &[&Number]) -> Result<Number, ()> {
        Err(())
    }
    fn add(&mut self, _: Number, _: Number) -> Result<Number, ()> {
        Err(())
    }
    fn pulse(&mut self) -> Result<(), ()> {
        Ok(())
    }
}

/// The rules of both ops.
pub fn host() -> Numbers {
    let mut rules = Rules::default();
    for which in 0..2 {
        rules.set(Elementwise::Add, which, Rule { sources: vec![Source::Cotangent], nodes: vec![Node::Leaf(0)] });
        let other = Source::Arg(u8::from(which == 0));
        let product = Node::Apply(Elementwise::Multiply, [0, 1, 0]);
        let nodes = vec![Node::Leaf(0), Node::Leaf(1), product];
        rules.set(Elementwise::Multiply, which, Rule { sources: vec![Source::Cotangent, other], nodes });
    }
    Numbers(rules)
}

/// Records `ops` ops; gives the tape, the input and the result.
pub fn record(ops: usize) -> (Tape<Number, ()>, Id, Id) {
    let mut tape = Tape::default();
    let x = tape.watch(Some(1.5));
    let (mut y, mut value) = (x, 1.5);
    for _ in 0..ops / 2 {
        let c = tape.constant(Some(0.999));
        value *= 0.999;
        y = tape.push(Op::Elementwise(Elementwise::Multiply), &[y, c], None, Some(value));
        value += 1.5;
        y = tape.push(Op::Elementwise(Elementwise::Add), &[y, x], None, Some(value));
    }
    (tape, x, y)
}
