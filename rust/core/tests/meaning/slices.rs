//! Steps over slices of leaves: the bits are those of the meaning of the program over whole leaves.

use super::super::random_cases;
use super::{LeafCase, Shape, SliceOf, check_run, leaf_case};
use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::error::Error;
use oxigrad_core::exec::{self, Batch, CHUNK, Leaf, Measured, Partials};
use oxigrad_core::kernel::{Kernel, Node, Wanted};
use oxigrad_core::op::Elementwise;
use oxigrad_core::simd::dispatch::Isa;
use proptest::prelude::*;

/// The elements of codes of any kind that share no scale with others.
const BLOCK: usize = 256;

/// Programs with sums over a leaf, and totals of these.
fn program() -> impl Strategy<Value = Vec<Node>> {
    use Elementwise::{Add, Divide, Exp, Multiply, Sqrt, Subtract};
    let ops = [Add, Subtract, Multiply, Divide, Sqrt, Exp];
    prop::collection::vec((prop::sample::select(ops.to_vec()), any::<[prop::sample::Index; 3]>(), 0..9u8), 1..14)
        .prop_map(|steps| {
            let mut nodes = vec![Node::Leaf(0), Node::Leaf(1), Node::Leaf(2), Node::Scalar(0), Node::Scalar(1)];
            nodes.extend([Node::Constant(2.0), Node::Noise(0), Node::Noise(3)]);
            let (mut sums, mut totals) = (Vec::new(), 0);
            for (op, args, fate) in steps {
                let args = args.map(|arg| u32::try_from(arg.index(nodes.len())).unwrap());
                let here = u32::try_from(nodes.len()).unwrap();
                nodes.push(match (fate, sums.last()) {
                    (0, _) if sums.len() < 3 => Node::Sum(args[0]),
                    (1, _) if sums.len() < 3 => Node::Dot([args[0], args[1]]),
                    (2, Some(sum)) if totals < 2 => Node::Total(*sum, totals),
                    _ => Node::Apply(op, args),
                });
                match nodes.last() {
                    Some(Node::Sum(_) | Node::Dot(_)) => sums.push(here),
                    Some(Node::Total(..)) => totals += 1,
                    _ => {}
                }
            }
            nodes
        })
}

/// Steps slices of all leaves: the slice of a worker ends where that of the next one begins. Workers measure and write in
/// the order of their `ranks`.
fn run_slices(
    batch: &Batch,
    slice: SliceOf,
    cuts: &[prop::sample::Index],
    unit: usize,
    isa: Isa,
    threads: usize,
) -> Option<Vec<f64>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let bounds = |length: usize| {
        let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut.index(length / unit + 1) * unit).collect();
        bounds.extend([0, length]);
        bounds.sort_unstable();
        bounds
    };
    let bounds: Vec<Vec<usize>> = batch.leaves.iter().map(|leaf| bounds(leaf.length)).collect();
    let part = |worker: usize, leaf: usize| (bounds[leaf][worker], bounds[leaf][worker + 1] - bounds[leaf][worker]);
    let buffers = |worker: usize| {
        let of_leaf = |(number, leaf): (usize, &Leaf)| {
            let (first, length) = part(worker, number);
            let array = |at| slice(number, at, first, length);
            let outputs = leaf.inputs.len()..leaf.inputs.len() + leaf.outputs.len();
            (first, length, (0..leaf.inputs.len()).map(array).collect(), outputs.map(array).collect())
        };
        batch.leaves.iter().enumerate().map(of_leaf).collect::<Vec<(usize, usize, Vec<Buffer>, Vec<Buffer>)>>()
    };
    let mut workers: Vec<usize> = (0..=cuts.len()).collect();
    let held: Vec<_> = workers.iter().map(|worker| buffers(*worker)).collect();
    let leaves: Vec<Vec<Leaf>> = held
        .iter()
        .map(|buffers| {
            let whole = buffers.iter().zip(batch.leaves);
            whole
                .map(|((first, length, inputs, outputs), leaf)| Leaf {
                    inputs,
                    outputs,
                    length: *length,
                    first: *first,
                    ..*leaf
                })
                .collect()
        })
        .collect();
    workers.reverse();
    let count = workers.len();
    workers.rotate_left(cuts.first().map_or(0, |cut| cut.index(count)));
    let batches = |worker: usize| [Batch { leaves: &leaves[worker], ..*batch }];
    let mut measured = Measured::default();
    for _ in 0..Measured::phases(&[*batch]) {
        let mut all: Vec<Partials> = vec![Vec::new(); workers.len()];
        for worker in &workers {
            exec::check(&batches(*worker)).unwrap();
            // SAFETY: the arrays are alive and apart.
            all[*worker] = unsafe { exec::measure(&batches(*worker), &measured, isa, Some(&pool)) }.unwrap();
        }
        let mut partials: Partials = vec![vec![Vec::new(); batch.leaves.len()]];
        for of_worker in all {
            partials[0].iter_mut().zip(&of_worker[0]).for_each(|(all, own)| all.extend(own));
        }
        measured.fold(&[*batch], &partials).unwrap();
    }
    let mut results = None;
    for worker in &workers {
        // SAFETY: the arrays are alive and apart.
        results = unsafe { exec::apply(&batches(*worker), &measured, isa, Some(&pool)) }.unwrap();
    }
    results.map(|mut results| results.remove(0))
}

proptest! {
    #![proptest_config(random_cases(150))]
    #[test]
    fn slices_have_the_bits_of_whole_leaves(
        nodes in program(),
        leaves in prop::collection::vec(leaf_case(3, 2), 1..4),
        picks in any::<[prop::sample::Index; 2]>(),
        guard in any::<Option<prop::sample::Index>>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        scalars in any::<[f64; 4]>(),
    ) {
        let late = |pick: prop::sample::Index| u32::try_from(nodes.len() - 1 - pick.index(nodes.len().min(6))).unwrap();
        let ids = |is_wanted: fn(&Node) -> bool| {
            let numbered = nodes.iter().zip(0u32..).filter(move |(node, _)| is_wanted(node));
            numbered.map(|(_, id)| id).collect::<Vec<_>>()
        };
        let sums = ids(|node| matches!(node, Node::Sum(_) | Node::Dot(_)));
        let totals = ids(|node| matches!(node, Node::Total(..)));
        let guard = guard.and_then(|guard| (!totals.is_empty()).then(|| totals[guard.index(totals.len())]));
        let outputs = [late(picks[0]), late(picks[1])];
        let wanted = |results| Wanted { outputs: &outputs, results, guard };
        let is_done = |wanted: &Wanted| Kernel::compile_wanted(&nodes, wanted).unwrap().is_done_by_writing();
        let wanted = if is_done(&wanted(&sums)) { wanted(&sums) } else { wanted(&[]) };
        let plain = |leaf: LeafCase| LeafCase {
            inputs: leaf.inputs.into_iter().map(|(dtype, shape)| (dtype, in_one_row(shape))).collect(),
            outputs: leaf.outputs.into_iter().map(|(place, dtype, shape)| (place, dtype, in_one_row(shape))).collect(),
            ..leaf
        };
        let leaves: Vec<LeafCase> = leaves.into_iter().map(plain).collect();
        let are_codes = leaves.iter().any(|leaf| {
            let dtypes = leaf.inputs.iter().map(|(dtype, _)| dtype).chain(leaf.outputs.iter().map(|(_, dtype, _)| dtype));
            dtypes.into_iter().any(|dtype| matches!(dtype, Dtype::U8 | Dtype::I8))
        });
        let has_sums = Kernel::compile_wanted(&nodes, &wanted).unwrap().has_sums();
        let unit = if has_sums { CHUNK } else if are_codes { BLOCK } else { 1 };
        for isa in Isa::available() {
            for threads in [1, 3] {
                let how = format!("{isa:?}, {threads} threads, slices of {unit}");
                check_run(&nodes, &wanted, &leaves, &scalars, &how, |batch, slice| {
                    run_slices(batch, slice, &cuts, unit, isa, threads)
                });
            }
        }
    }
}

fn in_one_row(shape: Shape) -> Shape {
    if shape == Shape::Rows { Shape::Plain } else { shape }
}

#[test]
fn partial_sums_of_other_leaves_are_refused() {
    let nodes = [Node::Leaf(0), Node::Sum(0), Node::Apply(Elementwise::Multiply, [0, 1, 0])];
    let kernel = Kernel::compile(&nodes, &[2]).unwrap();
    let batch = Batch { kernel: &kernel, scalars: &[], leaves: &[] };
    assert_eq!(Measured::phases(&[batch]), 1);
    let error = Measured::default().fold(&[batch], &vec![vec![vec![1.0]]]);
    assert!(matches!(error, Err(Error::Shape(_))));
}

#[test]
fn a_total_of_what_is_written_is_refused() {
    let nodes = [Node::Leaf(0), Node::Sum(0), Node::Total(1, 0)];
    let kernel = Kernel::compile_wanted(&nodes, &Wanted { outputs: &[0], results: &[2], guard: None }).unwrap();
    assert!(!kernel.is_done_by_writing());
    let batch = Batch { kernel: &kernel, scalars: &[], leaves: &[] };
    // SAFETY: there are no leaves.
    let error = unsafe { exec::apply(&[batch], &Measured::default(), Isa::detect(), None) };
    assert!(matches!(error, Err(Error::Rule(_))));
}
