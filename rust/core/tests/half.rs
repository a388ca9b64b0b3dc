//! Conversions to and from halves, against the `half` crate and against arithmetic.

use half::{bf16, f16};
use oxigrad_core::array::half::{Bfloat16, Float16, Half, narrowed};
use oxigrad_core::op::Elementwise;
use oxigrad_core::simd::dispatch::Isa;
use oxigrad_core::simd::noise::{NUMBER, bits};
use oxigrad_core::simd::{Lane, Simd, Task};

/// Numbers of `f32` of all kinds: every upper half, with lower halves around ties and at random.
fn numbers() -> impl Iterator<Item = f32> {
    let lower = [0, 1, 0x0fff, 0x1000, 0x1001, 0x2000, 0x7fff, 0x8000, 0x8001, 0xffff];
    (0..=u16::MAX).flat_map(move |upper| {
        let random = bits::<NUMBER>(3, 0, u64::from(upper)) & 0xffff;
        lower.into_iter().chain([random]).map(move |lower| f32::from_bits(u32::from(upper) << 16 | lower))
    })
}

fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// Rounded to `digits` significant bits, but to no finer spacing than `2^least`; infinite beyond `largest`. (The `half`
/// crate rounds a double twice on its way to subnormal numbers of bfloat16.)
fn arithmetic(x: f64, digits: i32, least: i32, largest: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let exponent = i32::try_from(x.to_bits() >> 52 & 0x7ff).unwrap() - 1023;
    let spacing = f64::from((exponent + 1 - digits).max(least)).exp2();
    let near = (x / spacing).round_ties_even() * spacing;
    if near.abs() > largest { near.signum() * f64::INFINITY } else { near.copysign(x) }
}

fn float16(x: f64) -> f64 {
    arithmetic(x, 11, -24, 65504.0)
}

fn bfloat16(x: f64) -> f64 {
    arithmetic(x, 8, -133, 255.0 * 2f64.powi(120))
}

#[allow(clippy::float_cmp, reason = "the bits are what is meant")]
fn same_double(a: f64, b: f64) -> bool {
    (a == b && a.is_sign_negative() == b.is_sign_negative()) || (a.is_nan() && b.is_nan())
}

#[test]
fn every_half_is_the_number_that_it_is() {
    for word in 0..=u16::MAX {
        assert!(same(Float16::from_bits(word).to_f32(), f16::from_bits(word).to_f32()), "float16 {word:x}");
        assert!(same(Bfloat16::from_bits(word).to_f32(), bf16::from_bits(word).to_f32()), "bfloat16 {word:x}");
        assert_eq!((Float16::from_bits(word).to_bits(), Bfloat16::from_bits(word).to_bits()), (word, word));
    }
}

#[test]
fn the_nearest_half_is_that_of_the_half_crate() {
    for x in numbers() {
        assert!(same_double(float16(x.into()), f16::from_f32(x).into()), "the oracles differ");
        assert!(same_double(bfloat16(x.into()), bf16::from_f32(x).into()), "the oracles differ");
        let (ours, theirs) = (Float16::nearest(x).to_f32(), f16::from_f32(x).to_f32());
        assert!(same(ours, theirs), "float16 of {x:e} ({:x}): {ours:e} is not {theirs:e}", x.to_bits());
        let (ours, theirs) = (Bfloat16::nearest(x).to_f32(), bf16::from_f32(x).to_f32());
        assert!(same(ours, theirs), "bfloat16 of {x:e} ({:x}): {ours:e} is not {theirs:e}", x.to_bits());
    }
}

#[test]
fn a_double_is_rounded_once() {
    let near_ties = numbers().step_by(7).flat_map(|x| {
        let x = f64::from(x);
        [x, x * (1.0 + f64::EPSILON), x * (1.0 - f64::EPSILON), x + 1e-300]
    });
    for x in near_ties.chain([f64::MAX, -1e300, 1e-300, f64::INFINITY, f64::NAN, 65520.0, 3.4e38, f64::MIN_POSITIVE]) {
        let (ours, theirs) = (f64::from(Float16::nearest(narrowed(x)).to_f32()), float16(x));
        assert!(same_double(ours, theirs), "float16 of {x:e}: {ours:e} is not {theirs:e}");
        let (ours, theirs) = (f64::from(Bfloat16::nearest(narrowed(x)).to_f32()), bfloat16(x));
        assert!(same_double(ours, theirs), "bfloat16 of {x:e}: {ours:e} is not {theirs:e}");
    }
}

#[test]
fn the_ops_round_as_memory_does() {
    let op = |op: Elementwise, x: f64| op.on_numbers([x, 0.0, 0.0]);
    for x in numbers().map(f64::from).chain([1e300, -1e300, 1e-300, -1e-300, f64::MAX]) {
        let (ours, theirs) = (op(Elementwise::RoundToFloat16, x), float16(x));
        assert!(same_double(ours, theirs), "float16 of {x:e}: {ours:e} is not {theirs:e}");
        let (ours, theirs) = (op(Elementwise::RoundToBfloat16, x), bfloat16(x));
        assert!(same_double(ours, theirs), "bfloat16 of {x:e}: {ours:e} is not {theirs:e}");
    }
}

/// A lane of each instruction set reads and writes halves as the scalar functions do.
struct Lanes<'a>(&'a [f32]);

impl Task for Lanes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self) {
        let width = S::F32::WIDTH;
        for numbers in self.0.chunks_exact(width) {
            let (mut short, mut brain) = ([Float16::from_bits(0); 16], [Bfloat16::from_bits(0); 16]);
            let (mut from_short, mut from_brain) = ([0f32; 16], [0f32; 16]);
            // SAFETY: the arrays have room for the widest lane, the chunk holds one.
            unsafe {
                let lane = S::F32::load(numbers.as_ptr());
                lane.store_f16(short.as_mut_ptr());
                lane.store_bf16(brain.as_mut_ptr());
                S::F32::load_f16(short.as_ptr()).store(from_short.as_mut_ptr());
                S::F32::load_bf16(brain.as_ptr()).store(from_brain.as_mut_ptr());
            }
            for (k, x) in numbers.iter().enumerate() {
                assert!(same(from_short[k], Float16::nearest(*x).to_f32()), "float16 of {x:e}: {:e}", from_short[k]);
                assert!(same(short[k].to_f32(), Float16::nearest(*x).to_f32()), "float16 of {x:e}: {:?}", short[k]);
                assert!(same(from_brain[k], Bfloat16::nearest(*x).to_f32()), "bfloat16 of {x:e}: {:e}", from_brain[k]);
                assert!(same(brain[k].to_f32(), Bfloat16::nearest(*x).to_f32()), "bfloat16 of {x:e}: {:?}", brain[k]);
            }
        }
    }
}

#[test]
fn lanes_convert_as_numbers_do() {
    let numbers: Vec<f32> = numbers().collect();
    for isa in Isa::available() {
        isa.run(Lanes(&numbers));
    }
}

/// The number of times that `x` is rounded to each of its neighbours, over all values of sixteen random bits.
fn neighbours<H: Half + PartialEq>(x: f32) -> Vec<(f64, u32)> {
    let mut counts: Vec<(f64, u32)> = Vec::new();
    for random in 0..=u16::MAX {
        let to = f64::from(H::stochastic(x, random).to_f32());
        match counts.iter_mut().find(|(value, _)| value.to_bits() == to.to_bits()) {
            Some((_, count)) => *count += 1,
            None => counts.push((to, 1)),
        }
    }
    counts
}

/// The mean over all random bits is the number itself, to `within` of the distance of its neighbours.
fn assert_unbiased<H: Half + PartialEq>(x: f32, spacing: f64, within: f64) {
    let counts = neighbours::<H>(x);
    assert!(counts.len() <= 2, "{x:e} is rounded to {counts:?}");
    assert!(counts.iter().all(|(to, _)| (to - f64::from(x)).abs() < spacing), "{x:e} is rounded to {counts:?}");
    let mean: f64 = counts.iter().map(|(to, count)| to * f64::from(*count) / 65536.0).sum();
    assert!((mean - f64::from(x)).abs() <= within * spacing, "{x:e} becomes {mean:e} on average: {counts:?}");
}

fn spacing(x: f32, digits: i32, least: i32) -> f64 {
    let exponent = f64::from(x).abs().log2().floor();
    exponent.max(f64::from(least + digits - 1)).exp2() * f64::from(1 - digits).exp2()
}

#[test]
fn stochastic_rounding_is_unbiased() {
    let sizes = [1.0, 1.3, 65000.0, 3e-3, 6.2e-5, 6.0e-5, 3.1e-6, 5.9e-8, 4e-8, 1.1e-9, 7e-12, 1e-20, 1e-39, 3e38];
    for (k, size) in sizes.into_iter().enumerate() {
        for draw in 0..4 {
            let jitter = f32::from_bits(0x3f80_0000 | bits::<NUMBER>(11, draw, k as u64) >> 9);
            for x in [size * jitter, -size * jitter, size] {
                if x.abs() < 3.3e38 {
                    assert_unbiased::<Bfloat16>(x, spacing(x, 8, -133), if x.abs() < 1e-38 { 2e-5 } else { 0.0 });
                }
                if x.abs() < 65504.0 {
                    let is_normal = x.abs() >= 6.103_515_625e-5;
                    assert_unbiased::<Float16>(x, spacing(x, 11, -24), if is_normal { 0.0 } else { 2f64.powi(-16) });
                }
            }
        }
    }
}

#[test]
fn stochastic_rounding_keeps_what_is_exact_infinite_or_no_number() {
    for word in (0..=u16::MAX).step_by(3) {
        let (short, brain) = (Float16::from_bits(word), Bfloat16::from_bits(word));
        for random in [0, 1, 0x7fff, 0xffff] {
            assert!(same(Float16::stochastic(short.to_f32(), random).to_f32(), short.to_f32()), "float16 {word:x}");
            assert!(same(Bfloat16::stochastic(brain.to_f32(), random).to_f32(), brain.to_f32()), "bfloat16 {word:x}");
        }
    }
}
