//! `AdamW` over one large and over many small leaves, against the memory it moves; and the functions of `simd::math`.
//!
//! `cargo bench -p oxigrad-core --bench kernel`. Absolute times drift by a factor of two on shared machines: compare
//! rows of one run only.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use oxigrad_core::array::buffer::{Buffer, Dtype, Rounding};
use oxigrad_core::array::quantized::BLOCK;
use oxigrad_core::exec::{self, Batch, Leaf, Scratch};
use oxigrad_core::kernel::native::PROGRAMS;
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::Elementwise::{self, Add, Multiply, Negative};
use oxigrad_core::simd::dispatch::Isa;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The kernel of a rule that has native code.
fn shipped(name: &str) -> Kernel {
    let (_, nodes, wanted) = PROGRAMS.iter().find(|(shipped, ..)| *shipped == name).expect("it is shipped");
    Kernel::compile_wanted(nodes, wanted).unwrap()
}

/// A kernel that moves the memory of `AdamW` and computes next to nothing.
fn ceiling() -> Kernel {
    let leaves = (0..4).map(Node::Leaf);
    let results = [Node::Apply(Add, [1, 0, 0]), Node::Apply(Negative, [2, 0, 0]), Node::Apply(Negative, [3, 0, 0])];
    Kernel::compile(&leaves.chain(results).collect::<Vec<_>>(), &[4, 5, 6]).unwrap()
}

const SCALARS: [f64; 6] = [3.0, 1e-3, 0.9, 0.999, 1e-8, 0.01];

/// Where gradient, parameter and slots are kept (`U8` is codes with scales), and whether halves are rounded stochastically.
const STORAGE: [(&str, [Dtype; 4], bool); 6] = {
    use Dtype::{BF16, F16, F32, U8};
    [
        ("float32", [F32; 4], false),
        ("bfloat16", [BF16; 4], false),
        ("float16", [F16; 4], false),
        ("bfloat16, slots float32", [BF16, BF16, F32, F32], false),
        ("float32, slots 8bit", [F32, F32, U8, U8], false),
        ("bfloat16 stochastic", [BF16; 4], true),
    ]
};

/// Parameters, gradients and slots of some leaves.
struct Tree {
    _memory: Vec<Vec<f32>>,
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    length: usize,
}

impl Tree {
    fn new(leaves: usize, length: usize, dtypes: [Dtype; 4], stochastic: bool) -> Self {
        let mut memory = Vec::new();
        let mut allocate = |bytes: usize| {
            memory.push(vec![0.0f32; bytes.div_ceil(4)]);
            memory.last_mut().expect("one was pushed").as_mut_ptr().cast::<u8>()
        };
        let mut buffer = |k: usize| {
            let (start, dtype) = (allocate(length * dtypes[k].size()), dtypes[k]);
            if dtype == Dtype::U8 {
                let scales = allocate(length.div_ceil(BLOCK) * 4);
                return Buffer::quantized(start, scales, length, true).unwrap();
            }
            let rounding = if stochastic { Rounding::Stochastic(u32::try_from(k).unwrap()) } else { Rounding::Nearest };
            Buffer::contiguous(start, length, dtype, true).unwrap().with_rounding(rounding)
        };
        let inputs: Vec<Buffer> = (0..4 * leaves).map(|k| buffer(k % 4)).collect();
        let outputs = inputs.chunks(4).flat_map(|leaf| &leaf[1..]).cloned().collect();
        let tree = Self { _memory: memory, inputs, outputs, length };
        tree.fill();
        tree
    }

    /// Numbers of ordinary size everywhere.
    fn fill(&self) {
        let kernel = Kernel::compile(&[Node::Leaf(0)], &[0]).unwrap();
        for (k, output) in self.inputs.iter().enumerate() {
            let number = [0.1f32, 0.5, 0.2, 0.3][k % 4];
            let inputs = [Buffer::repeated((&raw const number).cast(), self.length, Dtype::F32).unwrap()];
            let leaf = Leaf { inputs: &inputs, outputs: std::slice::from_ref(output), ..leaf(self.length) };
            // SAFETY: the arrays live in `self`.
            unsafe { exec::run_one(&kernel, &[], &leaf, Isa::detect(), &mut Scratch::default()) }.unwrap();
        }
    }

    fn bytes(&self) -> usize {
        let of = |buffer: &Buffer| {
            let scales = buffer.scales().map_or(0, |scales| scales.len() * 4);
            buffer.len() * buffer.dtype().size() + scales
        };
        self.inputs.iter().chain(&self.outputs).map(of).sum()
    }

    fn step(&self, kernel: &Kernel, isa: Isa, pool: Option<&ThreadPool>) {
        let scalars = &SCALARS[..kernel.scalar_inputs()];
        let of = |(inputs, outputs)| Leaf { inputs, outputs, ..leaf(self.length) };
        let leaves: Vec<Leaf> = self.inputs.chunks(4).zip(self.outputs.chunks(3)).map(of).collect();
        // SAFETY: the arrays live in `self`, each has a memory of its own.
        unsafe { exec::run(&[Batch { kernel, scalars, leaves: &leaves }], isa, pool) }.unwrap();
    }
}

/// A leaf without arrays yet.
fn leaf<'a>(length: usize) -> Leaf<'a> {
    Leaf { inputs: &[], outputs: &[], length, dtype: Dtype::F32, scalar_set: 0, noise_key: 7 }
}

fn optimizers(criterion: &mut Criterion) {
    let (adamw, ceiling) = (shipped("AdamW"), ceiling());
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    for (leaves, length) in [(1000, 1000), (1, 50_000_000)] {
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
