//! Every executor against the meaning of a program, evaluated element by element.

use super::meaning::{LeafCase, Shape, check, leaf_case};
use super::random_cases;
use oxigrad_core::array::buffer::{Buffer, Dtype, Rounding};
use oxigrad_core::exec::{self, Batch, Leaf};
use oxigrad_core::kernel::{Kernel, Node, Wanted};
use oxigrad_core::op::Elementwise;
use oxigrad_core::simd::dispatch::Isa;
use proptest::prelude::*;

const INPUTS: usize = 3;
const SCALARS: usize = 2;

/// The commonest ops of update rules, pairs of which the interpreter fuses.
const MELTING: &[Elementwise] = {
    use Elementwise::{Add, Divide, Multiply, Sqrt, Subtract};
    &[Add, Subtract, Multiply, Divide, Sqrt, Multiply]
};

fn program(ops: &'static [Elementwise]) -> impl Strategy<Value = Vec<Node>> {
    let apply = (0..ops.len(), any::<[prop::sample::Index; 3]>(), 0..12u8);
    prop::collection::vec(apply, 1..14).prop_map(|steps| {
        let mut nodes = vec![Node::Leaf(0), Node::Leaf(1), Node::Leaf(2), Node::Scalar(0), Node::Scalar(1)];
        nodes.extend([Node::Constant(2.0), Node::Constant(-0.75), Node::Noise(0), Node::Noise(3)]);
        for (op, args, fate) in steps {
            let args = args.map(|arg| u32::try_from(arg.index(nodes.len())).unwrap());
            let sums = nodes.iter().filter(|node| matches!(node, Node::Sum(_) | Node::Dot(_))).count();
            nodes.push(match fate {
                0 if sums < 2 => Node::Sum(args[0]),
                1 if sums < 2 => Node::Dot([args[0], args[1]]),
                _ => Node::Apply(ops[op], args),
            });
        }
        nodes
    })
}

proptest! {
    #![proptest_config(random_cases(150))]
    #[test]
    fn every_executor_gives_the_bits_of_the_meaning(
        nodes in prop_oneof![program(Elementwise::ALL), program(MELTING)],
        leaves in prop::collection::vec(leaf_case(INPUTS, 2), 1..4),
        picks in any::<[prop::sample::Index; 2]>(),
        scalars in any::<[f64; 2 * SCALARS]>(),
    ) {
        let late = |pick: prop::sample::Index| u32::try_from(nodes.len() - 1 - pick.index(nodes.len().min(6))).unwrap();
        let outputs = [late(picks[0]), late(picks[1])];
        for isa in Isa::available() {
            for threads in [0, 1, 2, 7] {
                check(&nodes, &Wanted { outputs: &outputs, ..Wanted::default() }, &leaves, &scalars, isa, threads);
            }
        }
    }
}

/// Leaves large enough for many tasks, in several phases: `p - g * (0.1 / sqrt(sum(g * g)))`, and the sum itself.
#[test]
fn sums_and_large_leaves_are_the_same_for_any_number_of_threads() {
    use Elementwise::{Divide, Multiply, Sqrt, Subtract};
    let apply = |op, a, b| Node::Apply(op, [a, b, 0]);
    let mut nodes = vec![Node::Leaf(0), Node::Leaf(1), Node::Leaf(2), Node::Scalar(0), apply(Multiply, 1, 1)];
    nodes.extend([Node::Sum(4), apply(Sqrt, 5, 0), apply(Divide, 3, 6), apply(Multiply, 1, 7), apply(Subtract, 0, 8)]);
    let plain = |dtype| (dtype, Shape::Plain);
    let leaves: Vec<LeafCase> = [(100_000, Dtype::F32), (0, Dtype::F64), (70_001, Dtype::F64), (5, Dtype::F32)]
        .into_iter()
        .zip(0..)
        .map(|((length, dtype), seed)| LeafCase {
            length,
            dtype,
            inputs: vec![plain(dtype); INPUTS],
            outputs: vec![(Some(0), dtype, Shape::Plain), (None, dtype, Shape::Every(2))],
            rounding: Rounding::Nearest,
            seed,
            set: 0,
        })
        .collect();
    for isa in Isa::available() {
        for threads in [0, 1, 2, 7] {
            check(&nodes, &Wanted { outputs: &[9, 5], ..Wanted::default() }, &leaves, &[0.1; 4], isa, threads);
        }
    }
}

#[test]
fn what_no_kernel_can_do_is_an_error() {
    use oxigrad_core::error::Error;
    let square = [Node::Leaf(0), Node::Apply(Elementwise::Multiply, [0, 0, 0])];
    assert!(matches!(Kernel::compile(&[Node::Apply(Elementwise::Sqrt, [0, 0, 0])], &[0]), Err(Error::Rule(_))));
    assert!(matches!(Kernel::compile(&square, &[2]), Err(Error::Rule(_))));

    let kernel = Kernel::compile(&square, &[1]).unwrap();
    let mut memory = [0.0f64; 9];
    let start = memory.as_mut_ptr();
    let at = |first: usize, dtype, writable| {
        Buffer::contiguous(start.wrapping_add(first).cast(), 4, dtype, writable).unwrap()
    };
    let run = |input: Buffer, output: Buffer, length, dtype| {
        let (inputs, outputs) = ([input], [output]);
        let leaf = Leaf { inputs: &inputs, outputs: &outputs, length, dtype, scalar_set: 0, noise_key: 0, first: 0 };
        let batch = Batch { kernel: &kernel, scalars: &[], leaves: &[leaf] };
        // SAFETY: the array is alive and used by nobody else.
        unsafe { exec::run(&[batch], Isa::detect(), None) }.map(|results| assert_eq!(results, Some(vec![vec![]])))
    };
    let f64_at = |first| at(first, Dtype::F64, true);
    assert!(matches!(run(f64_at(0), f64_at(4), 4, Dtype::I64), Err(Error::Dtype(_))));
    assert!(matches!(run(f64_at(0), at(4, Dtype::I64, true), 4, Dtype::F64), Err(Error::Dtype(_))));
    assert!(matches!(run(f64_at(0), at(4, Dtype::F64, false), 4, Dtype::F64), Err(Error::Memory(_))));
    assert!(matches!(run(f64_at(0), f64_at(4), 3, Dtype::F64), Err(Error::Shape(_))));
    assert!(matches!(run(f64_at(0), f64_at(1), 4, Dtype::F64), Err(Error::Alias(_))));
    assert!(matches!(run(f64_at(0), at(0, Dtype::F32, true), 4, Dtype::F64), Err(Error::Alias(_))));
    assert_eq!(run(f64_at(0), f64_at(4), 4, Dtype::F64), Ok(()));
}

#[test]
fn programs_are_simplified() {
    let apply = |op, a, b| Node::Apply(op, [a, b, 0]);
    let mut nodes = vec![Node::Leaf(0), Node::Leaf(1), Node::Scalar(0), Node::Constant(2.0)];
    nodes.push(apply(Elementwise::Pow, 0, 3));
    nodes.push(apply(Elementwise::Multiply, 0, 0));
    nodes.push(apply(Elementwise::Add, 4, 5));
    nodes.push(apply(Elementwise::Multiply, 2, 3));
    nodes.push(apply(Elementwise::Multiply, 7, 6));
    nodes.push(apply(Elementwise::Exp, 1, 0));
    let kernel = Kernel::compile(&nodes, &[8]).unwrap();
    let listing = "s0 = scalar0\ns1 = 2.0\ns2 = multiply(s0, s1)\nphase 0: 1 registers\n  r0 = multiply(in0, in0)\n  \
                   r0 = add(r0, r0)\n  out0 = multiply(s2, r0)\n";
    assert_eq!(kernel.to_string(), listing);
    assert_eq!((kernel.leaf_inputs(), kernel.scalar_inputs()), (1, 1));
}

/// Rows of few and of many elements, with steps of any sign, that start and end anywhere in a block.
#[test]
fn arrays_of_any_steps_are_read_in_order() {
    let kernel = Kernel::compile(&[Node::Leaf(0), Node::Apply(Elementwise::Positive, [0, 0, 0])], &[1]).unwrap();
    let wide: Vec<f64> = (0..40_000).map(|k| f64::from(k) + 0.5).collect();
    let narrow: Vec<f32> = (0..40_000u16).map(|k| f32::from(k) + 0.5).collect();
    let middle = 20_000;
    for (dtype, size, start) in [
        (Dtype::F64, 8, wide.as_ptr().cast::<u8>().wrapping_add(8 * middle)),
        (Dtype::F32, 4, narrow.as_ptr().cast::<u8>().wrapping_add(4 * middle)),
    ] {
        for extents in [[3, 150, 2], [2, 70, 9], [5, 2, 60], [7, 3, 1], [1, 300, 3], [4, 1, 8]] {
            for steps in [[0, 3, 1], [400, 0, 1], [1, 2, 0], [-900, -4, -1], [1, 3, 7], [0, 0, 5], [600, -2, 1]] {
                let strides = steps.map(|step: isize| step * size);
                let length = extents.iter().product();
                let input = [Buffer::strided(start.cast_mut(), &extents, &strides, dtype, false).unwrap()];
                let mut found = vec![0.0f64; length];
                let output = [Buffer::contiguous(found.as_mut_ptr().cast(), length, Dtype::F64, true).unwrap()];
                let leaf = Leaf {
                    inputs: &input,
                    outputs: &output,
                    length,
                    dtype: Dtype::F64,
                    scalar_set: 0,
                    noise_key: 0,
                    first: 0,
                };
                let batch = [Batch { kernel: &kernel, scalars: &[], leaves: &[leaf] }];
                // SAFETY: the vectors outlive the call, and nobody else uses `found`.
                unsafe { exec::run(&batch, Isa::detect(), None) }.unwrap();
                let expected = (0..length).map(|index| {
                    let [rows, columns] = [extents[1], extents[2]];
                    let at = [index / (rows * columns), index / columns % rows, index % columns];
                    let offset: isize = at.iter().zip(steps).map(|(at, step)| at.cast_signed() * step).sum();
                    wide[middle.checked_add_signed(offset).unwrap()]
                });
                assert!(expected.eq(found.iter().copied()), "{dtype:?} {extents:?} {steps:?}");
            }
        }
    }
}
