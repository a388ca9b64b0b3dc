//! Kernels do not mind what other libraries did to the processor's floating-point settings, and leave them as they are.

#![cfg(target_arch = "x86_64")]
#![allow(clippy::cast_possible_truncation, reason = "takes the lower bits of what was drawn")]

use std::arch::asm;

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::exec::{self, Batch, Leaf};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::Elementwise::{Divide, Exp, Multiply};
use oxigrad_core::simd::dispatch::Isa;
use rayon::ThreadPoolBuilder;

/// Rounding towards zero, subnormal results made zero, subnormal arguments taken for zero.
const HOSTILE: u32 = 0x1f80 | 0x6000 | 0x8000 | 0x0040;
static STANDARD: u32 = 0x1f80;
/// The exception flags of MXCSR.
const FLAGS: u32 = 0x3f;

fn settings() -> u32 {
    let mut word = 0u32;
    // SAFETY: writes the four bytes of `word`.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word) };
    word & !FLAGS
}

/// Calls `f` under other settings. What `f` does itself must not depend on them.
fn under<T>(word: u32, f: impl FnOnce() -> T) -> T {
    // SAFETY: the word has only known bits, and traps nothing.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word) };
    let result = f();
    assert_eq!(settings(), word, "the settings were changed");
    // SAFETY: as above.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const STANDARD) };
    result
}

/// `exp(a / b * s)`, `a / b` and `a * s`, with numbers that are subnormal or become so, and a scalar `s` that is.
fn compute(dtype: Dtype, isa: Isa, threads: usize) -> Vec<Vec<u8>> {
    let apply = |op, a, b| Node::Apply(op, [a, b, 0]);
    let mut nodes = vec![Node::Leaf(0), Node::Leaf(1), Node::Scalar(0), Node::Scalar(1), apply(Multiply, 2, 3)];
    nodes.extend([apply(Divide, 0, 1), apply(Multiply, 5, 4), apply(Exp, 6, 0), apply(Multiply, 0, 4)]);
    let kernel = Kernel::compile(&nodes, &[5, 7, 8]).unwrap();
    let length = 200_000;
    let mut inputs = [vec![0u8; length * 8], vec![0u8; length * 8]];
    for (k, bytes) in inputs.iter_mut().enumerate() {
        for (i, element) in bytes.chunks_exact_mut(dtype.size()).enumerate() {
            // Bits of all sizes, most of them of subnormal numbers.
            let bits = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(if k == 0 { 0 } else { 7 });
            match dtype {
                Dtype::F64 => element.copy_from_slice(&(bits >> (10 + i % 3)).to_ne_bytes()),
                Dtype::F32 => element.copy_from_slice(&(bits as u32 >> (7 + i % 3)).to_ne_bytes()),
                _ => element.copy_from_slice(&(bits as u16 >> (4 + i % 3)).to_ne_bytes()),
            }
        }
    }
    let mut outputs = vec![vec![0u8; length * 8]; 3];
    let of = |bytes: &mut Vec<u8>| Buffer::contiguous(bytes.as_mut_ptr(), length, dtype, true).unwrap();
    let (read, write): (Vec<Buffer>, Vec<Buffer>) =
        (inputs.iter_mut().map(of).collect(), outputs.iter_mut().map(of).collect());
    let leaf = Leaf {
        inputs: &read,
        outputs: &write,
        length,
        dtype: dtype.computed_in(),
        scalar_set: 0,
        noise_key: 0,
        first: 0,
    };
    let batch = Batch { kernel: &kernel, scalars: &[1e-200, 1e-120], leaves: &[leaf] };
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    // SAFETY: the arrays are alive and apart.
    unsafe { exec::run(&[batch], isa, Some(&pool)) }.unwrap();
    outputs
}

#[test]
fn settings_of_the_caller_change_no_bits() {
    for dtype in [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16] {
        for isa in Isa::available() {
            for threads in [1, 3] {
                let expected = compute(dtype, isa, threads);
                // The threads of the pool start with the settings of the thread that makes it.
                let found = under(HOSTILE, || compute(dtype, isa, threads));
                assert!(found == expected, "{dtype:?}, {isa:?}, {threads} threads");
                assert!(expected[0].iter().any(|byte| *byte != 0));
            }
        }
    }
}

#[test]
fn numbers_are_computed_under_the_standard_settings() {
    let (tiny, op) = (f64::MIN_POSITIVE, Multiply);
    let expected = op.on_numbers([tiny, 0.3, 0.0]);
    assert!(expected > 0.0 && expected < tiny);
    let found = under(HOSTILE, || op.on_numbers([tiny, 0.3, 0.0]));
    assert_eq!(found.to_bits(), expected.to_bits());
}
