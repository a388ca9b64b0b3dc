//! Native kernels match the update rules and agree with their reference semantics.

use super::meaning::programs::{PROGRAMS, program};
use super::meaning::{LeafCase, Shape, check, leaf_case};
use super::random_cases;
use oxigrad_core::array::buffer::{Dtype, Rounding};
use oxigrad_core::kernel::codegen::print_generated;
use oxigrad_core::kernel::text::{ParsedProgram, print_program};
use oxigrad_core::kernel::{Kernel, Node, Wanted};
use oxigrad_core::op::Elementwise::{Multiply, Sqrt, Subtract};
use oxigrad_core::simd::dispatch::Isa;
use proptest::prelude::*;

fn shipped() -> impl Iterator<Item = (&'static str, Kernel)> {
    PROGRAMS.iter().map(|(name, nodes, wanted)| (*name, Kernel::compile_wanted(nodes, wanted).unwrap()))
}

#[test]
fn generated_code_is_what_its_programs_print() {
    let programs: Vec<_> = PROGRAMS.iter().map(|(name, nodes, wanted)| ((*name).to_owned(), *nodes, *wanted)).collect();
    let (code, table) = print_generated(&programs).unwrap();
    assert!(code == include_str!("../src/kernel/native/generated.rs"), "generated.rs is out of date: make generated");
    assert!(
        table == include_str!("meaning/programs_table.rs"),
        "meaning/programs_table.rs is out of date: make generated"
    );
    assert!(shipped().all(|(_, kernel)| kernel.is_native()));
}

#[test]
fn every_shipped_program_is_read_back() {
    for (name, nodes, wanted) in PROGRAMS {
        let parsed = ParsedProgram::parse(&print_program(nodes, wanted)).unwrap();
        assert_eq!(parsed.nodes, *nodes, "{name}");
        assert_eq!((&parsed.outputs[..], &parsed.results[..]), (wanted.outputs, wanted.results), "{name}");
        assert_eq!(parsed.guard, wanted.guard, "{name}");
        assert!(parsed.compile().unwrap().is_native(), "{name}");
    }
}

/// The step, the learning rate and so on; the order differs from rule to rule, which does not matter here.
const SCALARS: [f64; 32] = [
    3.0, 1e-3, 0.9, 0.999, 1e-8, 0.01, 0.5, 0.25, 0.125, 0.75, 0.875, 0.625, 1.0, 0.1, 0.5, 0.25, 1e-3, 0.2, 2.0, 4.0,
    0.3, 0.7, 0.01, 1e-2, 0.6, 0.4, 0.8, 0.95, 0.55, 0.45, 0.35, 0.15,
];

/// A leaf, most often with all arrays of one dtype and contiguous: several in a row of those are laid out together.
fn often_plain() -> impl Strategy<Value = LeafCase> {
    (leaf_case(6, 6), prop::bool::weighted(0.8)).prop_map(|(leaf, is_plain)| {
        if !is_plain {
            return leaf;
        }
        let inputs = leaf.inputs.iter().map(|_| (leaf.dtype, Shape::Plain)).collect();
        let outputs = leaf.outputs.iter().map(|(place, ..)| (*place, leaf.dtype, Shape::Plain)).collect();
        LeafCase { inputs, outputs, ..leaf }
    })
}

/// A shipped program that records norms too: of the gradient, of the change of the parameter, of the parameter, or some.
fn recording(program: &[Node], wanted: &Wanted, kinds: [bool; 3]) -> (Vec<Node>, Vec<u32>) {
    let mut nodes = program.to_vec();
    let mut push = |node: Node| {
        nodes.push(node);
        u32::try_from(nodes.len() - 1).unwrap()
    };
    // A rule with master weights reads these, and not the parameter.
    let parameter = if program.contains(&Node::Leaf(1)) { 1 } else { 4 };
    let (g, p, new) = (push(Node::Leaf(0)), push(Node::Leaf(parameter)), wanted.outputs[0]);
    let mut norms = Vec::new();
    for kind in (0..3).filter(|kind| kinds[*kind]) {
        let of = [g, new, new][kind];
        let of = if kind == 1 { push(Node::Apply(Subtract, [of, p, 0])) } else { of };
        let sum = push(Node::Dot([of, of]));
        norms.push(push(Node::Apply(Sqrt, [sum, 0, 0])));
    }
    norms.extend(wanted.results);
    (nodes, norms)
}

/// The shipped programs of one phase, which may record norms.
fn whole() -> Vec<&'static (&'static str, &'static [Node], Wanted<'static>)> {
    let is_whole =
        |(_, nodes, wanted): &&(&str, &[Node], Wanted)| Kernel::compile_wanted(nodes, wanted).unwrap().phases() == 1;
    PROGRAMS.iter().filter(is_whole).collect()
}

const KINDS: [[bool; 3]; 7] = [
    [true, true, true],
    [true, false, false],
    [false, true, false],
    [false, false, true],
    [true, true, false],
    [true, false, true],
    [false, true, true],
];

#[test]
fn programs_that_record_norms_keep_their_native_code() {
    for (name, nodes, wanted) in whole() {
        for kinds in KINDS {
            let (nodes, results) = recording(nodes, wanted, kinds);
            let kernel = Kernel::compile_wanted(&nodes, &Wanted { results: &results, ..*wanted }).unwrap();
            assert!(kernel.is_native(), "{name}, {kinds:?}\n{kernel}");
        }
    }
}

#[test]
fn sums_that_outputs_or_other_sums_need_leave_no_native_code() {
    let (nodes, wanted) = program("AdamW");
    let (mut nodes, results) = recording(nodes, &wanted, [true, false, false]);
    let next = u32::try_from(nodes.len()).unwrap();
    let mut outputs = wanted.outputs.to_vec();
    // The parameter times the norm of the gradient.
    nodes.push(Node::Apply(Multiply, [outputs[0], results[0], 0]));
    outputs[0] = next;
    let is_native = |nodes: &[Node], wanted: &Wanted| Kernel::compile_wanted(nodes, wanted).unwrap().is_native();
    assert!(!is_native(&nodes, &Wanted { outputs: &outputs, ..wanted }));
    // The sum of a product with the norm of the gradient.
    nodes.push(Node::Sum(next));
    assert!(!is_native(&nodes, &Wanted { results: &[next + 1], ..wanted }));
}

proptest! {
    #![proptest_config(random_cases(75))]
    #[test]
    fn native_code_with_norms_gives_the_bits_of_the_meaning(
        which in any::<prop::sample::Index>(),
        kinds in prop::sample::select(KINDS.to_vec()),
        leaves in prop::collection::vec(often_plain(), 1..7),
    ) {
        let whole = whole();
        let (_, nodes, wanted) = whole[which.index(whole.len())];
        let (nodes, results) = recording(nodes, wanted, kinds);
        for isa in Isa::available() {
            for threads in [1, 2] {
                check(&nodes, &Wanted { results: &results, ..*wanted }, &leaves, &SCALARS, isa, threads);
            }
        }
    }
}

proptest! {
    #![proptest_config(random_cases(300))]
    #[test]
    fn native_code_gives_the_bits_of_the_meaning(
        which in any::<prop::sample::Index>(),
        leaves in prop::collection::vec(often_plain(), 1..7),
    ) {
        let (_, nodes, wanted) = &PROGRAMS[which.index(PROGRAMS.len())];
        for isa in Isa::available() {
            for threads in [0, 2] {
                check(nodes, wanted, &leaves, &SCALARS, isa, threads);
            }
        }
    }
}

/// A leaf with all arrays of one dtype and contiguous, the outputs in place of the inputs after the first.
fn plain(length: usize, dtype: Dtype, stored: Dtype, seed: u64) -> LeafCase {
    LeafCase {
        length,
        dtype,
        inputs: vec![(stored, Shape::Plain); 6],
        outputs: vec![(Some(1), stored, Shape::Plain); 6],
        rounding: Rounding::Nearest,
        seed,
        set: usize::try_from(seed % 2).unwrap(),
    }
}

/// Programs with sums, totals or random numbers, which are added up and drawn in blocks.
fn with_sums_or_noise() -> impl Iterator<Item = &'static (&'static str, &'static [Node], Wanted<'static>)> {
    let is_blockwise = |node: &Node| matches!(node, Node::Sum(_) | Node::Dot(_) | Node::Noise(_));
    PROGRAMS.iter().filter(move |(_, nodes, _)| nodes.iter().any(is_blockwise))
}

/// Lengths around lanes, blocks and chunks, of every dtype.
#[test]
fn sums_and_noise_in_native_code_give_the_bits_of_the_meaning_at_the_ends_of_blocks() {
    let dtypes =
        [(Dtype::F32, Dtype::F32), (Dtype::F64, Dtype::F64), (Dtype::F32, Dtype::BF16), (Dtype::F32, Dtype::F16)];
    let lengths = [0, 1, 7, 8, 9, 15, 16, 17, 63, 65, 255, 257, 511, 512, 513, 1025, 4095, 4096, 4097, 8197];
    let mut programs = 0;
    for (_, nodes, wanted) in with_sums_or_noise() {
        programs += 1;
        for (dtype, stored) in dtypes {
            let leaves: Vec<LeafCase> =
                lengths.iter().zip(0..).map(|(length, seed)| plain(*length, dtype, stored, seed)).collect();
            for isa in Isa::available() {
                check(nodes, wanted, &leaves, &SCALARS, isa, 2);
            }
        }
    }
    assert!(programs >= 8);
}

/// Leaves of several tasks, on several threads.
#[test]
fn sums_and_noise_in_native_code_are_the_same_on_any_number_of_threads() {
    let leaves: Vec<LeafCase> = [(66_001, 0), (3, 1), (70_000, 2)]
        .into_iter()
        .map(|(length, seed)| plain(length, Dtype::F32, Dtype::F32, seed))
        .collect();
    for (_, nodes, wanted) in with_sums_or_noise() {
        for threads in 1..=4 {
            check(nodes, wanted, &leaves, &SCALARS, Isa::detect(), threads);
        }
    }
}
