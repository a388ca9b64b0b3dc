//! Leaves of more elements than 32 bits can count.

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::array::half::{Bfloat16, Half};
use oxigrad_core::array::quantized::Codec;
use oxigrad_core::exec::{self, Batch, Leaf};
use oxigrad_core::kernel::{Kernel, Node, Wanted};
use oxigrad_core::op::Elementwise::Add;
use oxigrad_core::simd::dispatch::Isa;
use rayon::ThreadPoolBuilder;

const LENGTH: usize = (1 << 32) + 4097;

/// Of an array that is one row, repeated: no memory to speak of.
#[test]
#[ignore = "takes 40 s unoptimized"]
fn a_sum_over_more_than_2_to_the_32_elements() {
    let nodes = [Node::Leaf(0), Node::Sum(0)];
    let kernel = Kernel::compile_wanted(&nodes, &Wanted { results: &[1], ..Wanted::default() }).unwrap();
    let mut row: Vec<f32> = (0..8192).map(|i| if i % 2 == 0 { 1.0 } else { 3.0 }).collect();
    let (start, rows) = (row.as_mut_ptr().cast(), LENGTH.div_ceil(row.len()));
    let inputs = [Buffer::strided(start, &[rows, row.len()], &[0, 4], Dtype::F32, false).unwrap()];
    let length = inputs[0].len();
    assert!(length > 1 << 32);
    let leaf = Leaf { inputs: &inputs, outputs: &[], length, dtype: Dtype::F32, scalar_set: 0, noise_key: 0, first: 0 };
    let batch = Batch { kernel: &kernel, scalars: &[], leaves: &[leaf] };
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    // SAFETY: the array is alive, and nothing is written.
    let results = unsafe { exec::run(&[batch], Isa::detect(), Some(&pool)) }.unwrap();
    #[allow(clippy::cast_precision_loss, reason = "less than 2^53")]
    let expected = 2.0 * length as f64;
    assert_eq!(results, Some(vec![vec![expected]]));
}

/// Every element of a large array is written, to the last: eleven gigabytes.
#[test]
#[ignore = "takes 13 GB of memory"]
fn every_element_of_a_large_array_is_written() {
    let nodes = [Node::Leaf(0), Node::Leaf(1), Node::Apply(Add, [0, 1, 0])];
    let kernel = Kernel::compile(&nodes, &[2, 2]).unwrap();
    let (mut p, mut codes) = (vec![0u16; LENGTH], vec![0u8; LENGTH]);
    let mut scales = vec![0f32; LENGTH.div_ceil(256)];
    let one = 1.0f32;
    let inputs = [
        Buffer::contiguous(p.as_mut_ptr().cast(), LENGTH, Dtype::BF16, true).unwrap(),
        Buffer::repeated((&raw const one).cast(), LENGTH, Dtype::F32).unwrap(),
    ];
    let moments =
        Buffer::quantized(Codec::Eight, codes.as_mut_ptr(), scales.as_mut_ptr().cast(), LENGTH, true).unwrap();
    let outputs = [inputs[0].clone(), moments];
    let leaf = Leaf {
        inputs: &inputs,
        outputs: &outputs,
        length: LENGTH,
        dtype: Dtype::F32,
        scalar_set: 0,
        noise_key: 0,
        first: 0,
    };
    let batch = Batch { kernel: &kernel, scalars: &[], leaves: &[leaf] };
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    // SAFETY: the arrays are alive and apart.
    unsafe { exec::run(&[batch], Isa::detect(), Some(&pool)) }.unwrap();
    let expected = Bfloat16::nearest(1.0).to_bits();
    assert!(p.iter().all(|bits| *bits == expected));
    assert!(codes.iter().all(|code| *code == 255));
    assert!(scales.iter().all(|scale| scale.to_bits() == (-1.0f32).to_bits()));
}
