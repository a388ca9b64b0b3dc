//! Instructions that the core's hot paths take, counted by callgrind: exact where times drift.
//!
//! `make counts` runs it and compares; `benches/counts.py` says how. The instruction set is AVX2, the widest that valgrind
//! knows, on any x86-64 processor, and there is one thread, so that the counts do not depend on the machine.

#![allow(missing_docs, unused_qualifications, reason = "gungraun's macros make such items")]

use std::hint::black_box;

use chain::{Number, Numbers, host, record};
use gungraun::prelude::*;
use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::array::matmul::{Factor, Product};
use oxigrad_core::array::shape::contiguous_strides;
use oxigrad_core::array::sum::{self, Axes};
use oxigrad_core::array::view::ArrayView;
use oxigrad_core::autodiff::tape::{Id, Tape};
use oxigrad_core::exec::array_run::Group;
use oxigrad_core::exec::array_run::small::{Arena, Read, SmallCall, SmallRun};
use oxigrad_core::exec::{self, Leaf, Scratch};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::Elementwise::{self, Multiply};
use oxigrad_core::scalar::Scalar;
use oxigrad_core::simd::dispatch::Isa;
use oxigrad_core::tree::{self, Container, Key, Structure};
use smallvec::SmallVec;
use steps::{STORAGE, Tree, leaf, shipped};

mod chain;
#[allow(dead_code, reason = "nobody asks here how many bytes a step moves")]
mod steps;

/// The instruction set of all counts: not the fastest, which differs from machine to machine.
fn isa() -> Isa {
    let fixed = |isa: &Isa| matches!(isa.name(), "avx2" | "neon");
    Isa::available().into_iter().find(fixed).expect("callgrind emulates AVX2 where the processor has it")
}

// --- the tape ---------------------------------------------------------------------------------------------------------

type Recorded = (Tape<Number, ()>, Id, Id);

#[library_benchmark]
#[bench::ops_1000(1000)]
fn tape_record(ops: usize) -> Recorded {
    black_box(record(black_box(ops)))
}

fn recorded(ops: usize) -> (Recorded, Numbers) {
    (record(ops), host())
}

#[library_benchmark]
#[bench::ops_1000(args = (1000), setup = recorded)]
fn tape_replay(((mut tape, x, y), mut host): (Recorded, Numbers)) -> (Vec<Number>, Tape<Number, ()>) {
    let gradients = tape.replay(vec![(y, Some(1.0))], &[x], true, &mut host).expect("every op has a rule");
    (black_box(gradients), tape)
}

// --- steps ------------------------------------------------------------------------------------------------------------

struct Steps {
    tree: Tree,
    kernel: Kernel,
    isa: Isa,
}

/// The first step is taken here: it may find more to do than those after it.
fn steps(rule: &str, leaves: usize, length: usize, storage: &str) -> Steps {
    let (_, dtypes, stochastic) = STORAGE.into_iter().find(|(name, ..)| *name == storage).expect("it is in the table");
    let ready = Steps { tree: Tree::new(leaves, length, dtypes, stochastic), kernel: kernel(rule), isa: isa() };
    ready.tree.step(&ready.kernel, ready.isa, None);
    ready
}

/// A rule's kernel; "momentum" has no native code, so that it is interpreted.
fn kernel(rule: &str) -> Kernel {
    if rule != "momentum" {
        return shipped(rule);
    }
    let kernel = Kernel::compile(&momentum(), &[8, 5, 9]).unwrap();
    assert!(!kernel.is_native());
    kernel
}

/// `m = m * b + g * g; p = p - sqrt(m) * c`, and the last slot plus its root.
fn momentum() -> Vec<Node> {
    use Elementwise::{Add, Sqrt, Subtract};
    let mut nodes = vec![Node::Leaf(0), Node::Leaf(1), Node::Leaf(2), Node::Leaf(3)];
    nodes.push(Node::Apply(Multiply, [0, 0, 0]));
    nodes.push(Node::Apply(Add, [2, 4, 0]));
    nodes.push(Node::Apply(Sqrt, [5, 0, 0]));
    nodes.push(Node::Apply(Multiply, [6, 3, 0]));
    nodes.push(Node::Apply(Subtract, [1, 7, 0]));
    nodes.push(Node::Apply(Add, [3, 6, 0]));
    nodes
}

#[library_benchmark]
#[bench::leaf_of_1(args = ("AdamW", 1, 1, "float32"), setup = steps)]
#[bench::leaves_100_of_10(args = ("AdamW", 100, 10, "float32"), setup = steps)]
#[bench::leaf_of_10000(args = ("AdamW", 1, 10_000, "float32"), setup = steps)]
#[bench::bfloat16(args = ("AdamW", 1, 10_000, "bfloat16"), setup = steps)]
#[bench::stochastic(args = ("AdamW", 1, 10_000, "bfloat16 stochastic"), setup = steps)]
#[bench::slots_8bit(args = ("AdamW", 1, 10_000, "float32, slots 8bit"), setup = steps)]
#[bench::interpreted(args = ("momentum", 1, 10_000, "float32"), setup = steps)]
fn step(ready: Steps) -> Steps {
    ready.tree.step(&ready.kernel, ready.isa, None);
    black_box(ready)
}

#[library_benchmark]
#[bench::native(args = ("AdamW"), setup = program)]
fn compile((nodes, outputs): (Vec<Node>, Vec<u32>)) -> Kernel {
    black_box(Kernel::compile(&nodes, &outputs).unwrap())
}

/// The program of a rule and its outputs.
fn program(rule: &str) -> (Vec<Node>, Vec<u32>) {
    let (nodes, wanted) = steps::programs::program(rule);
    (nodes.to_vec(), wanted.outputs.to_vec())
}

// --- functions of arrays ----------------------------------------------------------------------------------------------

struct Arrays {
    from: Vec<f64>,
    to: Vec<f64>,
    dtype: Dtype,
    kernel: Kernel,
    scratch: Scratch,
    isa: Isa,
}

fn arrays(op: Elementwise, length: u32) -> Arrays {
    arrays_of(op, length, Dtype::F64)
}

/// Arrays with room for numbers of `f64`, which hold this many of the type.
fn arrays_of(op: Elementwise, length: u32, dtype: Dtype) -> Arrays {
    let second = u32::from(op.arity() > 1);
    let kernel = Kernel::compile(&[Node::Leaf(0), Node::Leaf(1), Node::Apply(op, [0, second, 0])], &[2]).unwrap();
    let mut from: Vec<f64> = (0..length).map(|i| f64::from(i) / 300.0 - 1.5).collect();
    if dtype == Dtype::F32 {
        // Two numbers of `f32` in the place of each.
        from.truncate(from.len() / 2);
        for x in &mut from {
            #[expect(clippy::cast_possible_truncation, reason = "numbers of `f32` are wanted")]
            let bits = u64::from((*x as f32).to_bits());
            *x = f64::from_bits(bits << 32 | bits);
        }
    }
    let to = vec![0.0; from.len()];
    let mut ready = Arrays { from, to, dtype, kernel, scratch: Scratch::default(), isa: isa() };
    ready.apply();
    ready
}

impl Arrays {
    fn apply(&mut self) {
        let length = self.from.len() * size_of::<f64>() / self.dtype.size();
        let of = |array: &mut [f64]| Buffer::contiguous(array.as_mut_ptr().cast(), length, self.dtype, true).unwrap();
        let input = of(&mut self.from);
        let (inputs, outputs) = ([input.clone(), input], [of(&mut self.to)]);
        let inputs = &inputs[..self.kernel.leaf_inputs()];
        let leaf = Leaf { inputs, outputs: &outputs, dtype: self.dtype, ..leaf(length) };
        // SAFETY: the arrays are alive and apart.
        unsafe { exec::run_one(&self.kernel, &[], black_box(&leaf), self.isa, &mut self.scratch) }.unwrap();
    }
}

fn buffer(array: &mut [f64]) -> Buffer {
    Buffer::contiguous(array.as_mut_ptr().cast(), array.len(), Dtype::F64, true).unwrap()
}

#[library_benchmark]
#[bench::multiply_10(args = (Multiply, 10), setup = arrays)]
#[bench::exp_1024(args = (Elementwise::Exp, 1024), setup = arrays)]
#[bench::sin_1024(args = (Elementwise::Sin, 1024), setup = arrays)]
#[bench::tanh_1024(args = (Elementwise::Tanh, 1024), setup = arrays)]
#[bench::exp_float32_1024(args = (Elementwise::Exp, 1024, Dtype::F32), setup = arrays_of)]
#[bench::tanh_float32_1024(args = (Elementwise::Tanh, 1024, Dtype::F32), setup = arrays_of)]
fn apply(mut ready: Arrays) -> Arrays {
    ready.apply();
    black_box(ready)
}

fn two_arrays(from: usize, to: usize) -> (Vec<f64>, Vec<f64>, Isa) {
    (vec![0.5; from], vec![0.0; to], isa())
}

#[library_benchmark]
#[bench::middle_of_16_64_16(args = (16 * 64 * 16, 16 * 16), setup = two_arrays)]
fn sum_axis((mut from, mut to, isa): (Vec<f64>, Vec<f64>, Isa)) -> (Vec<f64>, Vec<f64>) {
    let axes = Axes { outer: 16, count: 64, inner: 16 };
    // SAFETY: both are alive, and apart.
    unsafe { sum::sum(&buffer(&mut from), &buffer(&mut to), axes, 1.0, isa, None) }.unwrap();
    black_box((from, to))
}

#[library_benchmark]
#[bench::rows_64_by_16_by_16(args = (64 * 16 + 16 * 16, 64 * 16), setup = two_arrays)]
fn product((from, mut to, isa): (Vec<f64>, Vec<f64>, Isa)) -> (Vec<f64>, Vec<f64>) {
    let factor = |at: usize| Factor { pointer: from[at..].as_ptr().cast(), stack: &[0], row: 16 * 8, column: 8 };
    let (left, right) = (factor(0), factor(64 * 16));
    let product = Product { stack: &[1], rows: 64, inner: 16, columns: 16, dtype: Dtype::F64, left, right };
    // SAFETY: all are alive, and apart.
    unsafe { product.compute(&buffer(&mut to), isa, None) }.unwrap();
    black_box((from, to))
}

struct Recording {
    run: SmallRun,
    from: Vec<f64>,
    to: Vec<f64>,
    arena: Arena,
    isa: Isa,
}

/// Steps `h = tanh(M @ h + 0.1) * w` of 14 numbers, the first from `w`.
fn recording(steps: usize) -> Recording {
    let group = Group { shape: SmallVec::from_slice(&[14]), dtype: Dtype::F64 };
    let apply = |op| SmallCall::Elementwise(op, group.clone(), false);
    let (mut calls, mut h) = (Vec::new(), 1);
    for _ in 0..steps {
        let at = calls.len() + 3;
        calls.push((SmallCall::Product, SmallVec::from_slice(&[0, h])));
        calls.push((apply(Elementwise::Add), SmallVec::from_slice(&[at, 2])));
        calls.push((apply(Elementwise::Tanh), SmallVec::from_slice(&[at + 1])));
        calls.push((apply(Multiply), SmallVec::from_slice(&[at + 2, 1])));
        h = at + 3;
    }
    let from = (0..14 * 15).map(|at| f64::from(at % 17) / 40.0).collect::<Vec<_>>();
    let kinds = reads(&from).iter().map(|read| read.kind().unwrap()).collect();
    let run = SmallRun::new(&calls, kinds, &[h - 3]).unwrap();
    let mut ready = Recording { run, from, to: vec![0.0; 14], arena: Arena::default(), isa: isa() };
    ready.replay();
    ready
}

/// The matrix, the vector and the number.
fn reads(from: &[f64]) -> [Read; 3] {
    let view = |at: usize, extents: &[usize]| ArrayView {
        pointer: from[at..].as_ptr().cast_mut().cast(),
        extents: SmallVec::from_slice(extents),
        strides: contiguous_strides(extents, 8).unwrap().into_iter().collect(),
        dtype: Some(Dtype::F64),
        writable: false,
    };
    [Read::Array(view(0, &[14, 14])), Read::Array(view(14 * 14, &[14])), Read::Number(Scalar::weak(0.1))]
}

impl Recording {
    fn replay(&mut self) {
        let to = [buffer(&mut self.to)];
        // SAFETY: the arrays are alive and apart.
        unsafe { self.run.compute(black_box(&reads(&self.from)), &to, self.isa, &mut self.arena) }.unwrap();
    }
}

#[library_benchmark]
#[bench::steps_200_of_14(args = (200), setup = recording)]
fn replay_small(mut ready: Recording) -> Recording {
    ready.replay();
    black_box(ready)
}

// --- trees ------------------------------------------------------------------------------------------------------------

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct List;

impl Container for List {
    fn name(&self) -> &'static str {
        "list"
    }
    fn key(&self, child: usize) -> Key {
        Key::Index(child)
    }
}

/// A list of 100 lists of ten leaves.
fn structure() -> Structure<List> {
    let mut structure = Structure::default();
    let list = structure.add_container(List);
    structure.push_branch(list, 100).unwrap();
    for _ in 0..100 {
        structure.push_branch(list, 10).unwrap();
        (0..10).for_each(|_| structure.push(tree::Node::Leaf { trainable: true }));
    }
    structure
}

#[library_benchmark]
#[bench::leaves_1000(structure())]
fn paths(structure: Structure<List>) -> (Vec<tree::KeyPath>, Structure<List>) {
    (black_box(structure.paths()), structure)
}

library_benchmark_group!(
    name = core,
    benchmarks = [tape_record, tape_replay, step, compile, apply, sum_axis, product, replay_small, paths]
);
main!(library_benchmark_groups = core);
