//! The functions of `f32` beside those of `f64`: over some of the arguments on every instruction set, and over all of them
//! (`cargo test --profile fast -p oxigrad-core --lib single -- --ignored`).

use std::thread;

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::exec::{self, Leaf, Scratch};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::Elementwise;
use oxigrad_core::simd::dispatch::Isa;

/// The functions that have a formula for `f32`, and their bounds in units in the last place.
const FUNCTIONS: [(Elementwise, f64); 14] = [
    (Elementwise::Exp, 0.9),
    (Elementwise::Expm1, 1.0),
    (Elementwise::Log, 0.9),
    (Elementwise::Log1p, 1.0),
    (Elementwise::Sin, 0.9),
    (Elementwise::Cos, 0.9),
    (Elementwise::Tanh, 0.95),
    (Elementwise::Expit, 1.0),
    (Elementwise::Erf, 1.0),
    (Elementwise::Log2, 0.9),
    (Elementwise::Tan, 1.0),
    (Elementwise::Atan, 0.8),
    (Elementwise::Sinh, 0.95),
    (Elementwise::Cosh, 0.8),
];
/// The functions of two numbers, as well: that of the sum is computed in `f64`.
const OF_TWO: [(Elementwise, f64); 2] = [(Elementwise::Pow, 0.95), (Elementwise::LogAddExp, 0.51)];
/// Arguments that are computed together.
const BLOCK: usize = 1 << 12;

/// Computes a function of arrays.
struct Computer {
    kernel: Kernel,
    scratch: Scratch,
    isa: Isa,
}

impl Computer {
    fn new(op: Elementwise, isa: Isa) -> Self {
        let kernel = Kernel::compile(&[Node::Leaf(0), Node::Apply(op, [0, 0, 0])], &[1]).unwrap();
        Self { kernel, scratch: Scratch::default(), isa }
    }

    fn of_two(op: Elementwise, isa: Isa) -> Self {
        let nodes = [Node::Leaf(0), Node::Leaf(1), Node::Apply(op, [0, 1, 0])];
        Self { kernel: Kernel::compile(&nodes, &[2]).unwrap(), scratch: Scratch::default(), isa }
    }

    fn compute<T: Default + Copy>(&mut self, from: &[T], dtype: Dtype) -> Vec<T> {
        self.compute_two(from, from, dtype)
    }

    fn compute_two<T: Default + Copy>(&mut self, from: &[T], second: &[T], dtype: Dtype) -> Vec<T> {
        let mut to = vec![T::default(); from.len()];
        let of = |pointer: *const T| Buffer::contiguous(pointer.cast_mut().cast(), from.len(), dtype, true).unwrap();
        let (inputs, outputs) = ([of(from.as_ptr()), of(second.as_ptr())], [of(to.as_mut_ptr())]);
        let (inputs, outputs) = (&inputs[..self.kernel.leaf_inputs()], &outputs[..]);
        let leaf = Leaf { inputs, outputs, length: from.len(), dtype, scalar_set: 0, noise_key: 0, first: 0 };
        // SAFETY: the arrays are alive and apart, and the inputs are only read.
        unsafe { exec::run_one(&self.kernel, &[], &leaf, self.isa, &mut self.scratch) }.unwrap();
        to
    }
}

/// The distance of `value` from `exact` in units in the last place; infinite for a wrong sign, infinity or NaN.
fn error(value: f32, exact: f64) -> f64 {
    #[allow(clippy::cast_possible_truncation, reason = "rounding is the point")]
    let nearest = exact as f32;
    if exact.is_nan() || nearest.is_infinite() || !value.is_finite() {
        let same = value.to_bits() == nearest.to_bits() || (value.is_nan() && nearest.is_nan());
        return if same { 0.0 } else { f64::INFINITY };
    }
    if value.is_sign_negative() != exact.is_sign_negative() {
        return f64::INFINITY;
    }
    // The power of two that is no larger, or of the smallest normal number.
    let power = f64::from_bits(exact.abs().to_bits() & 0x7ff << 52).max(f64::from(f32::MIN_POSITIVE));
    (f64::from(value) - exact).abs() / power * f64::from(1 << 23)
}

/// The largest error of a function, and its argument.
fn worst(op: Elementwise, bits: impl Iterator<Item = u32>) -> (f64, f32) {
    let (mut single, mut double) = (Computer::new(op, Isa::detect()), Computer::new(op, Isa::detect()));
    let (mut bits, mut worst) = (bits, (0.0, 0.0));
    loop {
        let from: Vec<f32> = bits.by_ref().take(BLOCK).map(f32::from_bits).collect();
        if from.is_empty() {
            return worst;
        }
        let wide: Vec<f64> = from.iter().map(|x| f64::from(*x)).collect();
        let (found, exact) = (single.compute(&from, Dtype::F32), double.compute(&wide, Dtype::F64));
        for (x, (value, exact)) in from.iter().zip(found.iter().zip(&exact)) {
            let error = error(*value, *exact);
            if error > worst.0 {
                worst = (error, *x);
            }
        }
    }
}

#[test]
#[ignore = "takes minutes"]
fn all_arguments_are_within_the_bound() {
    let halves = [0..=u32::MAX / 2, u32::MAX / 2 + 1..=u32::MAX];
    for (op, bound) in FUNCTIONS {
        let found: Vec<(f64, f32)> = thread::scope(|scope| {
            let started = halves.clone().map(|half| scope.spawn(move || worst(op, half)));
            started.into_iter().map(|half| half.join().unwrap()).collect()
        });
        println!("{}: {:.4} at {:e}, {:.4} at {:e}", op.name(), found[0].0, found[0].1, found[1].0, found[1].1);
        for (error, x) in found {
            assert!(error <= bound, "{} errs by {error} units in the last place at {x:e}", op.name());
        }
    }
}

/// Limits, exponents that are whole, numbers near roots, and numbers between, each with each; and random ones, so that a power is finite.
fn pairs() -> (Vec<f32>, Vec<f32>) {
    let limits = [0.0, 1e-45, 1e-38, 0.5, 0.999_999_94, 1.0, 1.000_000_1, 2.0, 3.0, 24.0, 127.0, 8_388_609.0, 3e38];
    let limits = limits.into_iter().chain([f32::INFINITY, f32::NAN]).flat_map(|x| [x, -x]);
    let near_root = (0..40u16).map(|k| -std::f32::consts::LN_2 + (f32::from(k) - 20.0) / 8_388_608.0);
    let numbers: Vec<f32> = limits.chain(near_root).chain((0..400u16).map(|k| f32::from(k) / 7.0 - 20.0)).collect();
    let mut state = 1_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 1
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "any number will do")]
    let of_any_size = (0..600_000).map(|k| {
        let bits = random();
        // A third of them near one.
        let a = f32::from_bits(if k % 3 == 0 { 0x3f7f_0000 + bits % 0x0001_8000 } else { bits % 0x7f80_0000 });
        let log = f64::from(a).log2().abs().max(1e-9);
        (a, ((f64::from(random()) / f64::from(1_u32 << 30) - 1.0) * 150.0 / log) as f32)
    });
    let each = numbers.iter().flat_map(|a| numbers.iter().map(|b| (*a, *b)));
    each.chain(of_any_size).unzip()
}

/// Functions of two numbers of `f32` beside those of `f64`.
#[test]
fn functions_of_two_numbers_are_within_the_bound() {
    let (a, b) = pairs();
    let wide = |numbers: &[f32]| numbers.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
    for (op, bound) in OF_TWO {
        let (mut single, mut double) = (Computer::of_two(op, Isa::detect()), Computer::of_two(op, Isa::detect()));
        let found = single.compute_two(&a, &b, Dtype::F32);
        let exact = double.compute_two(&wide(&a), &wide(&b), Dtype::F64);
        for ((a, b), (value, exact)) in a.iter().zip(&b).zip(found.iter().zip(&exact)) {
            let error = error(*value, *exact);
            assert!(error <= bound, "{} of {a:e} and {b:e} errs by {error} units in the last place", op.name());
        }
    }
}

/// Bits that are spread evenly over all numbers, zeros, infinities, NaN, and numbers next to the ends of ranges.
fn some() -> impl Iterator<Item = u32> {
    let ends = [0.0, 1e-9, 0.35, 0.625, 0.96, 1.0, 3.95, 10.0, 88.72, 89.0, 103.97, 104.0, 1e5, 3e38, f32::INFINITY];
    let near = |x: f32| (0..64).map(move |k| x.to_bits().saturating_add(k).saturating_sub(32));
    let near = ends.into_iter().flat_map(near).flat_map(|bits| [bits, bits | 1 << 31]);
    near.chain([0, 1 << 31, f32::NAN.to_bits()]).chain((0..=u32::MAX).step_by(20_011))
}

#[test]
fn some_arguments_are_within_the_bound() {
    for (op, bound) in FUNCTIONS {
        let (error, x) = worst(op, some());
        assert!(error <= bound, "{} errs by {error} units in the last place at {x:e}", op.name());
    }
}

#[test]
fn every_instruction_set_and_the_scalars_give_the_same_bits() {
    let bits = |x: &f32| if x.is_nan() { u32::MAX } else { x.to_bits() };
    let from: Vec<f32> = some().map(f32::from_bits).collect();
    let (a, b) = pairs();
    let of_one = FUNCTIONS.map(|(op, _)| (op, Computer::new as fn(_, _) -> Computer, &from, &from));
    let of_two = OF_TWO.map(|(op, _)| (op, Computer::of_two as fn(_, _) -> Computer, &a, &b));
    for (op, computer, a, b) in of_one.into_iter().chain(of_two) {
        let expected: Vec<u32> = computer(op, Isa::SCALAR).compute_two(a, b, Dtype::F32).iter().map(bits).collect();
        for isa in Isa::available() {
            let found = computer(op, isa).compute_two(a, b, Dtype::F32);
            for ((a, b), (found, expected)) in a.iter().zip(b).zip(found.iter().zip(&expected)) {
                assert_eq!(bits(found), *expected, "{} of {a:e} and {b:e} on {isa:?}", op.name());
            }
        }
    }
}
