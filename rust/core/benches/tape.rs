//! The tape on numbers: recording and replaying the chain `y = y * c; y = y + x`.
//!
//! `cargo bench -p oxigrad-core --bench tape`. Divide by the elements that a row names: they are ops.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use oxigrad_core::autodiff::replay::Host;
use oxigrad_core::autodiff::rule::{Rule, Rules, Source};
use oxigrad_core::autodiff::tape::{Id, Tape, View};
use oxigrad_core::kernel::Node;
use oxigrad_core::op::{Elementwise, Op};

type Number = Option<f64>;

struct Numbers(Rules);

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

fn host() -> Numbers {
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
fn record(ops: usize) -> (Tape<Number, ()>, Id, Id) {
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

fn chain(criterion: &mut Criterion) {
    let mut host = host();
    let mut replay = |(mut tape, x, y): (Tape<Number, ()>, Id, Id)| {
        tape.replay(vec![(y, Some(1.0))], &[x], true, &mut host).expect("every op has a rule")[0]
    };
    let expected = 0.999f64.powi(500) + (1.0 - 0.999f64.powi(500)) / 0.001;
    let gradient = replay(record(1000)).expect("x leads to y");
    assert!((gradient / expected - 1.0).abs() < 1e-12, "{gradient} is not {expected}");
    for ops in [1000, 1_000_000] {
        let mut group = criterion.benchmark_group(format!("chain of {ops} ops"));
        group.throughput(Throughput::Elements(ops as u64)).sample_size(20);
        group.bench_function("record", |bencher| bencher.iter(|| black_box(record(ops))));
        let batch = if ops > 1000 { BatchSize::PerIteration } else { BatchSize::SmallInput };
        group.bench_function("replay", |bencher| bencher.iter_batched(|| record(ops), &mut replay, batch));
        group.finish();
    }
}

criterion_group!(benches, chain);
criterion_main!(benches);
