//! Totals over all leaves, results of each leaf, and guards, on every instruction set and number of threads.

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::error::Error;
use oxigrad_core::exec::{self, Batch, Leaf};
use oxigrad_core::kernel::{Kernel, Node, Wanted};
use oxigrad_core::op::Elementwise::{self, Add, Divide, Multiply, Sqrt, Subtract};
use oxigrad_core::simd::dispatch::Isa;

const fn apply(op: Elementwise, a: u32, b: u32) -> Node {
    Node::Apply(op, [a, b, 0])
}

/// `p - scale * g / norm` where `norm` is that of the gradients of all leaves; hands back `sum(g) + scale`.
fn program() -> Vec<Node> {
    vec![
        Node::Leaf(0), // g
        Node::Leaf(1), // p
        Node::Scalar(0),
        apply(Multiply, 0, 0),
        Node::Sum(3),
        Node::Total(4, 0),
        apply(Sqrt, 5, 0),
        apply(Divide, 2, 6),
        apply(Multiply, 7, 0),
        apply(Subtract, 1, 8),
        Node::Sum(0),
        apply(Add, 10, 2),
    ]
}

struct Arrays {
    g: Vec<f64>,
    p: Vec<f64>,
}

fn arrays(lengths: &[usize]) -> Vec<Arrays> {
    let value = |i: usize, n: usize| f64::from(u32::try_from((i * 37 + n * 11) % 101).unwrap()) / 50.0 - 1.0;
    let column = |n: usize, salt: usize| (0..n).map(|i| value(i, n + salt)).collect::<Vec<_>>();
    lengths.iter().map(|n| Arrays { g: column(*n, 0), p: column(*n, 5) }).collect()
}

fn buffers(arrays: &mut [Arrays]) -> Vec<[Buffer; 2]> {
    let of =
        |values: &mut Vec<f64>| Buffer::contiguous(values.as_mut_ptr().cast(), values.len(), Dtype::F64, true).unwrap();
    arrays.iter_mut().map(|Arrays { g, p }| [of(g), of(p)]).collect()
}

fn leaves(buffers: &[[Buffer; 2]]) -> Vec<Leaf<'_>> {
    let leaf = |(set, both): (usize, &'_ [Buffer; 2])| -> (usize, usize) { (set, both[0].len()) };
    let sizes: Vec<(usize, usize)> = buffers.iter().enumerate().map(leaf).collect();
    sizes
        .into_iter()
        .zip(buffers)
        .map(|((scalar_set, length), both)| Leaf {
            inputs: both,
            outputs: &both[1..],
            length,
            dtype: Dtype::F64,
            scalar_set,
            noise_key: 0,
            first: 0,
        })
        .collect()
}

#[test]
fn a_total_is_over_the_leaves_of_all_batches() {
    let nodes = program();
    let kernel = Kernel::compile_wanted(&nodes, &Wanted { outputs: &[9], results: &[11], guard: None }).unwrap();
    assert_eq!(kernel.phases(), 2);
    let (lengths, scales) = ([5000, 3, 0, 70_000], [0.5, 2.0, 1.0, 0.25]);
    let norm = arrays(&lengths).iter().flat_map(|leaf| &leaf.g).map(|g| g * g).sum::<f64>().sqrt();
    let mut first: Option<Vec<Vec<f64>>> = None;
    for isa in Isa::available() {
        for threads in [1, 2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut memory = arrays(&lengths);
            let held = buffers(&mut memory);
            let all = leaves(&held);
            let batches = [
                Batch { kernel: &kernel, scalars: &scales, leaves: &all[..2] },
                Batch { kernel: &kernel, scalars: &scales, leaves: &all[2..] },
            ];
            // SAFETY: the arrays are alive and apart.
            let results = unsafe { exec::run(&batches, isa, Some(&pool)) }.unwrap().unwrap();
            let results: Vec<f64> = results.into_iter().flatten().collect();
            for (k, before) in arrays(&lengths).iter().enumerate() {
                let scale = scales[k];
                let sum = before.g.iter().sum::<f64>() + scale;
                assert!((results[k] - sum).abs() < 1e-9 * sum.abs().max(1.0), "{} is not {sum}", results[k]);
                for ((p, was), g) in memory[k].p.iter().zip(&before.p).zip(&before.g) {
                    assert!((p - (was - scale / norm * g)).abs() < 1e-12);
                }
            }
            let written: Vec<Vec<f64>> = memory.into_iter().map(|leaf| leaf.p).collect();
            assert_eq!(*first.get_or_insert(written.clone()), written, "{isa:?}, {threads} threads");
        }
    }
}

#[test]
fn a_guard_stops_everything_before_a_write() {
    let mut nodes = program();
    // Stops unless the total of `g - g`, which is zero for finite numbers only, is zero.
    nodes.extend([apply(Subtract, 0, 0), Node::Sum(12), Node::Total(13, 1), Node::Constant(0.0)]);
    nodes.push(apply(Elementwise::Equal, 14, 15));
    let wanted = Wanted { outputs: &[9], results: &[11], guard: Some(16) };
    let kernel = Kernel::compile_wanted(&nodes, &wanted).unwrap();
    assert_eq!(kernel.phases(), 2, "{kernel}");
    for bad in [None, Some(f64::NAN), Some(f64::INFINITY)] {
        let mut memory = arrays(&[10, 6000]);
        if let Some(bad) = bad {
            memory[1].g[5999] = bad;
        }
        let before: Vec<Vec<f64>> = memory.iter().map(|leaf| leaf.p.clone()).collect();
        let held = buffers(&mut memory);
        let batch = Batch { kernel: &kernel, scalars: &[1.0, 1.0], leaves: &leaves(&held) };
        // SAFETY: the arrays are alive and apart.
        let results = unsafe { exec::run(&[batch], Isa::detect(), None) }.unwrap();
        let after: Vec<Vec<f64>> = memory.into_iter().map(|leaf| leaf.p).collect();
        assert_eq!(results.is_none(), bad.is_some());
        assert_eq!(after == before, bad.is_some());
    }
}

#[test]
fn kernels_with_other_totals_do_not_run_together() {
    let nodes = program();
    let total = Kernel::compile(&nodes, &[9]).unwrap();
    let plain = Kernel::compile(&nodes, &[1]).unwrap();
    let mut memory = arrays(&[3, 3]);
    let before: Vec<Vec<f64>> = memory.iter().map(|leaf| leaf.p.clone()).collect();
    let held = buffers(&mut memory);
    let all = leaves(&held);
    let batches = [
        Batch { kernel: &total, scalars: &[1.0, 1.0], leaves: &all[..1] },
        Batch { kernel: &plain, scalars: &[], leaves: &all[1..] },
    ];
    // SAFETY: the arrays are alive and apart.
    assert!(matches!(unsafe { exec::run(&batches, Isa::detect(), None) }, Err(Error::Rule(_))));
    assert_eq!(memory.into_iter().map(|leaf| leaf.p).collect::<Vec<_>>(), before);
}

#[test]
fn an_array_is_no_number() {
    let nodes = program();
    for wanted in
        [Wanted { outputs: &[9], results: &[8], guard: None }, Wanted { outputs: &[9], results: &[], guard: Some(0) }]
    {
        assert!(matches!(Kernel::compile_wanted(&nodes, &wanted), Err(Error::Rule(_))));
    }
    let of_array = [Node::Leaf(0), Node::Total(0, 0)];
    assert!(matches!(Kernel::compile(&of_array, &[1]), Err(Error::Rule(_))));
}
