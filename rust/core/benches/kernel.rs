//! `AdamW` over one large and over many small leaves, against the memory it moves; and the functions of `simd::math`.
//!
//! `cargo bench -p oxigrad-core --features benches --bench kernel`, with `-- --save-baseline NAME` and `-- --baseline NAME`. Absolute times
//! drift by a factor of two on shared machines: compare rows of one run only.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::exec::{self, Leaf, Scratch};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::Elementwise::{self, Add, Multiply, Negative};
use oxigrad_core::simd::dispatch::Isa;
use rayon::ThreadPoolBuilder;
use steps::{STORAGE, Tree, leaf, shipped};

mod steps;

/// A kernel that moves the memory of `AdamW` and computes next to nothing.
fn ceiling() -> Kernel {
    let leaves = (0..4).map(Node::Leaf);
    let results = [Node::Apply(Add, [1, 0, 0]), Node::Apply(Negative, [2, 0, 0]), Node::Apply(Negative, [3, 0, 0])];
    Kernel::compile(&leaves.chain(results).collect::<Vec<_>>(), &[4, 5, 6]).unwrap()
}

/// Leaves and the length of each; small ones where nothing is timed: `cargo test --bench kernel`, `cargo bench -- --test`.
fn sizes() -> [(usize, usize); 2] {
    let flag = |name: &str| std::env::args().any(|argument| argument == name);
    if flag("--bench") && !flag("--test") { [(1000, 1000), (1, 50_000_000)] } else { [(10, 1000), (1, 100_000)] }
}

fn optimizers(criterion: &mut Criterion) {
    let (adamw, ceiling) = (shipped("AdamW"), ceiling());
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for (leaves, length) in sizes() {
        for (name, dtypes, stochastic) in STORAGE {
            let tree = Tree::new(leaves, length, dtypes, stochastic);
            let mut group = criterion.benchmark_group(format!("adamw {name} {leaves}x{length}"));
            group.throughput(Throughput::Bytes(tree.bytes() as u64));
            group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2)).sample_size(20);
            for (threads, pool) in [(1, None), (2, Some(&pool))] {
                for isa in Isa::available() {
                    group.bench_function(format!("{}/{threads}", isa.name()), |b| {
                        b.iter(|| tree.step(&adamw, isa, pool));
                    });
                }
                let isa = Isa::detect();
                group.bench_function(format!("ceiling/{threads}"), |b| b.iter(|| tree.step(&ceiling, isa, pool)));
            }
        }
    }
}

/// The cost of one call over ten numbers: what a tape pays for each op.
fn small(criterion: &mut Criterion) {
    let kernel = Kernel::compile(&[Node::Leaf(0), Node::Leaf(1), Node::Apply(Multiply, [0, 1, 0])], &[2]).unwrap();
    let (mut a, mut b, mut c) = ([1.5f64; 10], [2.5f64; 10], [0.0f64; 10]);
    let mut scratch = Scratch::default();
    let isa = Isa::detect();
    let mut multiply = || {
        let of = |array: &mut [f64; 10]| Buffer::contiguous(array.as_mut_ptr().cast(), 10, Dtype::F64, true).unwrap();
        let (inputs, outputs) = ([of(&mut a), of(&mut b)], [of(&mut c)]);
        let leaf = Leaf { inputs: &inputs, outputs: &outputs, dtype: Dtype::F64, ..leaf(10) };
        // SAFETY: the arrays are alive and apart.
        unsafe { exec::run_one(&kernel, &[], black_box(&leaf), isa, &mut scratch) }.unwrap();
        black_box(&c)[9]
    };
    assert!((multiply() - 3.75).abs() < f64::EPSILON);
    criterion.bench_function("multiply f64 n=10", |bench| bench.iter(&mut multiply));
}

/// Nanoseconds an element of each function, on one thread, from the first-level cache.
fn functions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("functions");
    group.warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_millis(500)).sample_size(20);
    let mut x: Vec<f64> = (0..1024).map(|i| f64::from(i) / 300.0 - 1.5).collect();
    let mut y = vec![0.0; 1024];
    let of = |array: &mut Vec<f64>| Buffer::contiguous(array.as_mut_ptr().cast(), 1024, Dtype::F64, true).unwrap();
    let (inputs, outputs) = ([of(&mut x)], [of(&mut y)]);
    let leaf = Leaf { inputs: &inputs, outputs: &outputs, dtype: Dtype::F64, ..leaf(1024) };
    let mut scratch = Scratch::default();
    group.throughput(Throughput::Elements(1024));
    for isa in Isa::available() {
        for op in Elementwise::ALL.iter().filter(|op| op.arity() == 1) {
            let kernel = Kernel::compile(&[Node::Leaf(0), Node::Apply(*op, [0, 0, 0])], &[1]).unwrap();
            group.bench_function(format!("{}/{}", isa.name(), op.name()), |b| {
                // SAFETY: the arrays are alive and apart.
                b.iter(|| unsafe { exec::run_one(&kernel, &[], black_box(&leaf), isa, &mut scratch) }.unwrap());
            });
        }
    }
}

criterion_group!(benches, small, optimizers, functions);
criterion_main!(benches);
