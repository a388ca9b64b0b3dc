//! The native kernels are those of the rules, and compute what they mean.

use meaning::{check, leaf_case};
use oxigrad_core::kernel::Kernel;
use oxigrad_core::lane::dispatch::Isa;
use oxigrad_core::native::PROGRAMS;
use oxigrad_core::print::print_generated;
use proptest::prelude::*;

mod meaning;

fn shipped() -> impl Iterator<Item = (&'static str, Kernel)> {
    PROGRAMS.iter().map(|(name, nodes, outputs)| (*name, Kernel::compile(nodes, outputs).unwrap()))
}

#[test]
fn generated_code_is_what_its_programs_print() {
    let programs: Vec<_> =
        PROGRAMS.iter().map(|(name, nodes, outputs)| ((*name).to_owned(), *nodes, *outputs)).collect();
    let text = print_generated(&programs).unwrap();
    assert!(text == include_str!("../src/generated.rs"), "src/generated.rs is out of date: make generated");
    assert!(shipped().all(|(_, kernel)| kernel.is_native()));
}

/// The step, the learning rate and so on; the order differs from rule to rule, which does not matter here.
const SCALARS: [f64; 12] = [3.0, 1e-3, 0.9, 0.999, 1e-8, 0.01, 1.0, 0.1, 0.5, 0.25, 1e-3, 0.2];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn native_code_gives_the_bits_of_the_meaning(leaves in prop::collection::vec(leaf_case(4, 3), 1..4)) {
        for (_, nodes, outputs) in PROGRAMS {
            for isa in Isa::available() {
                for threads in [0, 2] {
                    check(nodes, outputs, &leaves, &SCALARS, isa, threads);
                }
            }
        }
    }
}
