//! Steps of an optimizer, as the benchmarks take them: a kernel, and arrays in memory for it.

use oxigrad_core::array::buffer::{Buffer, Dtype, Rounding};
use oxigrad_core::array::quantized::Codec;
use oxigrad_core::exec::{self, Batch, Leaf, Scratch};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::simd::dispatch::Isa;
use rayon::ThreadPool;

#[path = "../../tests/meaning/programs.rs"]
pub mod programs;

/// The kernel of a rule that has native code.
pub fn shipped(name: &str) -> Kernel {
    let (nodes, wanted) = programs::program(name);
    Kernel::compile_wanted(nodes, &wanted).unwrap()
}

const SCALARS: [f64; 6] = [3.0, 1e-3, 0.9, 0.999, 1e-8, 0.01];

/// The dtypes of gradient, parameter and slots (`U8`: codes with scales), and whether rounding of halves is stochastic.
pub const STORAGE: [(&str, [Dtype; 4], bool); 6] = {
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
pub struct Tree {
    _memory: Vec<Vec<f32>>,
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    length: usize,
}

impl Tree {
    pub fn new(leaves: usize, length: usize, dtypes: [Dtype; 4], stochastic: bool) -> Self {
        let mut memory = Vec::new();
        let mut allocate = |bytes: usize| {
            memory.push(vec![0.0f32; bytes.div_ceil(4)]);
            memory.last_mut().expect("one was pushed").as_mut_ptr().cast::<u8>()
        };
        let mut buffer = |k: usize| {
            let (start, dtype) = (allocate(length * dtypes[k].size()), dtypes[k]);
            if dtype == Dtype::U8 {
                let scales = allocate(length.div_ceil(Codec::Eight.block()) * 4);
                return Buffer::quantized(Codec::Eight, start, scales, length, true).unwrap();
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

    pub fn bytes(&self) -> usize {
        let of = |buffer: &Buffer| {
            let scales = buffer.scales().map_or(0, |scales| scales.len() * 4);
            buffer.len() * buffer.dtype().size() + scales
        };
        self.inputs.iter().chain(&self.outputs).map(of).sum()
    }

    pub fn step(&self, kernel: &Kernel, isa: Isa, pool: Option<&ThreadPool>) {
        let scalars = &SCALARS[..kernel.scalar_inputs()];
        let of = |(inputs, outputs)| Leaf { inputs, outputs, ..leaf(self.length) };
        let leaves: Vec<Leaf> = self.inputs.chunks(4).zip(self.outputs.chunks(3)).map(of).collect();
        // SAFETY: the arrays live in `self`, each has a memory of its own.
        unsafe { exec::run(&[Batch { kernel, scalars, leaves: &leaves }], isa, pool) }.unwrap();
    }
}

/// A leaf without arrays yet.
pub fn leaf<'a>(length: usize) -> Leaf<'a> {
    Leaf { inputs: &[], outputs: &[], length, dtype: Dtype::F32, scalar_set: 0, noise_key: 7, first: 0 }
}
