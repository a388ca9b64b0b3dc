//! `AdamW` over one large and over many small leaves, against the memory it moves; and the functions of `lane::math`.
//!
//! `cargo bench -p oxigrad-core --bench kernel`. Absolute times drift by a factor of two on shared machines: compare
//! rows of one run only.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use oxigrad_core::buffer::{Buffer, Dtype};
use oxigrad_core::exec::{self, Batch, Leaf, Scratch};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::lane::dispatch::Isa;
use oxigrad_core::native::PROGRAMS;
use oxigrad_core::op::Elementwise::{self, Multiply};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The kernel of a rule that has native code.
fn shipped(name: &str) -> Kernel {
    let (_, nodes, wanted) = PROGRAMS.iter().find(|(shipped, ..)| *shipped == name).expect("it is shipped");
    Kernel::compile_wanted(nodes, wanted).unwrap()
}

const SCALARS: [f64; 6] = [3.0, 1e-3, 0.9, 0.999, 1e-8, 0.01];

/// Parameters, gradients and slots of some leaves of `f32`.
struct Tree {
    _arrays: Vec<Vec<f32>>,
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    length: usize,
}

impl Tree {
    fn new(leaves: usize, length: usize) -> Self {
        let mut arrays: Vec<Vec<f32>> = (0..4 * leaves).map(|k| vec![[0.5, 0.1, 0.2, 0.3][k % 4]; length]).collect();
        let buffer =
            |array: &mut Vec<f32>| Buffer::contiguous(array.as_mut_ptr().cast(), length, Dtype::F32, true).unwrap();
        let inputs: Vec<Buffer> = arrays.iter_mut().map(buffer).collect();
        let outputs = inputs.chunks(4).flat_map(|leaf| &leaf[1..]).cloned().collect();
        Self { _arrays: arrays, inputs, outputs, length }
    }

    fn leaves(&self) -> Vec<Leaf<'_>> {
        let leaf = |(inputs, outputs)| Leaf {
            inputs,
            outputs,
            length: self.length,
            dtype: Dtype::F32,
            scalar_set: 0,
            noise_key: 0,
        };
        self.inputs.chunks(4).zip(self.outputs.chunks(3)).map(leaf).collect()
    }

    fn step(&self, kernel: &Kernel, isa: Isa, pool: Option<&ThreadPool>) {
        let scalars = &SCALARS[..kernel.scalar_inputs()];
        // SAFETY: the arrays live in `self`, each has a memory of its own.
        unsafe { exec::run(&[Batch { kernel, scalars, leaves: &self.leaves() }], isa, pool) }.unwrap();
    }
}

fn optimizers(criterion: &mut Criterion) {
    let (adamw, ceiling) = (shipped("AdamW"), shipped("Stream"));
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for (leaves, length) in [(1000, 1000), (1, 50_000_000)] {
        let tree = Tree::new(leaves, length);
        let mut group = criterion.benchmark_group(format!("adamw f32 {leaves}x{length}"));
        group.throughput(Throughput::Bytes((leaves * length * 28) as u64));
        group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2)).sample_size(20);
        for isa in Isa::available() {
            for (threads, pool) in [(1, None), (2, Some(&pool))] {
                group.bench_function(format!("{}/{threads}", isa.name()), |b| b.iter(|| tree.step(&adamw, isa, pool)));
            }
        }
        for (threads, pool) in [(1, None), (2, Some(&pool))] {
            let isa = Isa::detect();
            group.bench_function(format!("ceiling/{threads}"), |b| b.iter(|| tree.step(&ceiling, isa, pool)));
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
        let (length, dtype) = (10, Dtype::F64);
        let leaf = Leaf { inputs: &inputs, outputs: &outputs, length, dtype, scalar_set: 0, noise_key: 0 };
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
    let leaf =
        Leaf { inputs: &inputs, outputs: &outputs, length: 1024, dtype: Dtype::F64, scalar_set: 0, noise_key: 0 };
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
