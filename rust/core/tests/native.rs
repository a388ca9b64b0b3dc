//! The native kernels are those of the rules, and give the bits of the interpreter.

use oxigrad_core::buffer::{Buffer, Dtype};
use oxigrad_core::exec::{self, Batch, Leaf};
use oxigrad_core::kernel::Kernel;
use oxigrad_core::lane::dispatch::Isa;
use oxigrad_core::native::PROGRAMS;
use oxigrad_core::noise::uniform;
use oxigrad_core::print::print_generated;

fn shipped() -> impl Iterator<Item = (&'static str, Kernel)> {
    PROGRAMS.iter().map(|(name, nodes, wanted)| (*name, Kernel::compile_wanted(nodes, wanted).unwrap()))
}

#[test]
fn generated_code_is_what_its_programs_print() {
    let programs: Vec<_> = PROGRAMS.iter().map(|(name, nodes, wanted)| ((*name).to_owned(), *nodes, *wanted)).collect();
    let text = print_generated(&programs).unwrap();
    assert!(text == include_str!("../src/generated.rs"), "src/generated.rs is out of date: make generated");
    assert!(shipped().all(|(_, kernel)| kernel.is_native()));
}

/// Runs one step on arrays whose elements are `apart` places from each other: only one is read by native code.
fn step(kernel: &Kernel, length: usize, apart: usize, isa: Isa) -> Vec<Vec<u32>> {
    let value = |k: usize, i: usize| uniform(5, u32::try_from(k).unwrap(), i as u64) - 0.25 * f32::from(k < 3);
    let mut arrays: Vec<Vec<f32>> = (0..kernel.leaf_inputs())
        .map(|k| (0..length * apart).map(|i| if i % apart == 0 { value(k, i / apart) } else { 0.0 }).collect())
        .collect();
    let stride = isize::try_from(4 * apart).unwrap();
    let buffer = |array: &mut Vec<f32>| {
        Buffer::strided(array.as_mut_ptr().cast(), &[length], &[stride], Dtype::F32, true).unwrap()
    };
    let inputs: Vec<Buffer> = arrays.iter_mut().map(buffer).collect();
    let outputs = &inputs[1..][..kernel.outputs()];
    let leaf = Leaf { inputs: &inputs, outputs, length, dtype: Dtype::F32, scalar_set: 0, noise_key: 0 };
    let scalars = [3.0, 1e-3, 0.9, 0.999, 1e-8, 0.01, 0.5, 0.25, 0.125, 0.75, 0.875, 0.625];
    let batch = Batch { kernel, scalars: &scalars[..kernel.scalar_inputs()], leaves: &[leaf] };
    // SAFETY: the arrays are alive and apart.
    unsafe { exec::run(&[batch], isa, None) }.unwrap();
    arrays.iter().map(|array| array.iter().step_by(apart).map(|x| x.to_bits()).collect()).collect()
}

#[test]
fn native_code_gives_the_bits_of_the_interpreter() {
    for (name, kernel) in shipped() {
        for length in [1, 7, 8, 15, 16, 17, 33, 1000, 5000] {
            let expected = step(&kernel, length, 2, Isa::SCALAR);
            for isa in Isa::available() {
                assert_eq!(step(&kernel, length, 1, isa), expected, "{name}, {isa:?}, {length}");
                assert_eq!(step(&kernel, length, 2, isa), expected, "{name}, {isa:?}, {length}, strided");
            }
        }
    }
}
