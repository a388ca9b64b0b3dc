//! Native kernels match the update rules and agree with their reference semantics.

use meaning::{LeafCase, Shape, check, leaf_case};
use oxigrad_core::kernel::Kernel;
use oxigrad_core::kernel::codegen::print_generated;
use oxigrad_core::kernel::native::PROGRAMS;
use oxigrad_core::simd::dispatch::Isa;
use proptest::prelude::*;

mod meaning;

fn shipped() -> impl Iterator<Item = (&'static str, Kernel)> {
    PROGRAMS.iter().map(|(name, nodes, wanted)| (*name, Kernel::compile_wanted(nodes, wanted).unwrap()))
}

#[test]
fn generated_code_is_what_its_programs_print() {
    let programs: Vec<_> = PROGRAMS.iter().map(|(name, nodes, wanted)| ((*name).to_owned(), *nodes, *wanted)).collect();
    let text = print_generated(&programs).unwrap();
    assert!(text == include_str!("../src/kernel/native/generated.rs"), "generated.rs is out of date: make generated");
    assert!(shipped().all(|(_, kernel)| kernel.is_native()));
}

/// The step, the learning rate and so on; the order differs from rule to rule, which does not matter here.
const SCALARS: [f64; 32] = [
    3.0, 1e-3, 0.9, 0.999, 1e-8, 0.01, 0.5, 0.25, 0.125, 0.75, 0.875, 0.625, 1.0, 0.1, 0.5, 0.25, 1e-3, 0.2, 2.0, 4.0,
    0.3, 0.7, 0.01, 1e-2, 0.6, 0.4, 0.8, 0.95, 0.55, 0.45, 0.35, 0.15,
];

/// A leaf, most often with all arrays of one dtype and contiguous: several in a row of those are laid out together.
fn often_plain() -> impl Strategy<Value = LeafCase> {
    (leaf_case(6, 5), prop::bool::weighted(0.8)).prop_map(|(leaf, is_plain)| {
        if !is_plain {
            return leaf;
        }
        let inputs = leaf.inputs.iter().map(|_| (leaf.dtype, Shape::Plain)).collect();
        let outputs = leaf.outputs.iter().map(|(place, ..)| (*place, leaf.dtype, Shape::Plain)).collect();
        LeafCase { inputs, outputs, ..leaf }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
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
