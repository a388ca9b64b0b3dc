//! 8-bit codes: comparison with the formula in `f64`, and documented properties.

use oxigrad_core::array::quantized::eight::{BLOCK, Codes, Numbers};
use oxigrad_core::array::quantized::{Coding, Eight};
use oxigrad_core::simd::noise::uniform;
use proptest::prelude::*;

mod four;

const LEVELS: [f64; 2] = [255.0, 127.0];
/// 2^-116.
const LEAST: f32 = f32::from_bits(11 << 23);

/// The fourth root, interpolated between the powers of two: of `2^e (1 + f)`, where `e = 4q + k`, it is
/// `2^q (1 + (k + f) / 4)`.
fn root(y: f64) -> f64 {
    if y == 0.0 {
        return 0.0;
    }
    let exponent = y.log2().floor();
    let (quotient, rest) = ((exponent / 4.0).floor(), exponent.rem_euclid(4.0));
    quotient.exp2() * (1.0 + (rest + y / exponent.exp2() - 1.0) / 4.0)
}

/// The inverse of `root`.
fn power(t: f64) -> f64 {
    if t == 0.0 {
        return 0.0;
    }
    let quotient = t.log2().floor();
    let parts = (t / quotient.exp2() - 1.0) * 4.0;
    (4.0 * quotient + parts.floor()).exp2() * (1.0 + parts - parts.floor())
}

/// Codes, scale, and the decoded values.
fn round_trip(numbers: &Numbers) -> (Codes, f32, Numbers) {
    let (mut codes, mut back) = ([0; BLOCK], [0.0; BLOCK]);
    let scale = Eight::encode(numbers, &mut codes);
    Eight::decode(&codes, scale, &mut back);
    (codes, scale, back)
}

fn has_negative(numbers: &Numbers) -> bool {
    numbers.iter().any(|x| *x < 0.0)
}

fn code(code: u8, signed: bool) -> f64 {
    if signed { f64::from(code.cast_signed()) } else { f64::from(code) }
}

/// Numbers spread over `octaves` powers of two below `largest`.
fn block(seed: u64, largest: f64, octaves: f64, signed: bool) -> Numbers {
    let draw = |k: u32, i: usize| f64::from(uniform(seed, k, i as u64));
    #[allow(clippy::cast_possible_truncation)]
    std::array::from_fn(|i| {
        let sign = if signed && draw(1, i) < 0.5 { -1.0 } else { 1.0 };
        (sign * largest * (-draw(0, i) * octaves).exp2()) as f32
    })
}

#[test]
fn the_root_is_a_fourth_root() {
    for i in 0..4000 {
        let y = (-f64::from(i) / 100.0).exp2();
        let error = root(y) / y.powf(0.25) - 1.0;
        assert!((-1e-12..0.063).contains(&error), "{y}: {error}");
        assert!((power(root(y)) / y - 1.0).abs() < 1e-9);
    }
}

proptest! {
    #[test]
    fn codes_are_those_of_the_formula(
        seed in any::<u64>(), scale in -120f64..120.0, octaves in 0f64..45.0, signed in any::<bool>(),
    ) {
        let numbers = block(seed, scale.exp2(), octaves, signed);
        let signed = has_negative(&numbers);
        let levels = LEVELS[usize::from(signed)];
        let (codes, scale, back) = round_trip(&numbers);
        let largest = numbers.iter().fold(LEAST, |most, x| most.max(x.abs()));
        prop_assert_eq!(scale.to_bits(), (if signed { largest } else { -largest }).to_bits());
        let scale = scale.abs();
        for i in 0..BLOCK {
            let (x, found) = (f64::from(numbers[i]), code(codes[i], signed));
            let exact = levels * root(x.abs() / f64::from(scale));
            // Half a code, and what the arithmetic of `f32` adds.
            let nearest = if signed || x <= 0.0 { exact } else { exact.max(1.0) };
            prop_assert!((found.abs() - nearest).abs() <= 0.5 + levels * 1e-6, "{x:e} has code {found}, not {exact}");
            let meant = f64::from(scale) * power(found.abs() / levels);
            let got = f64::from(back[i]);
            prop_assert!((got.abs() - meant).abs() <= meant * 1e-6 + 1.5e-45, "code {found} is {got:e}, not {meant:e}");
            prop_assert!(got == 0.0 || (got < 0.0) == (x < 0.0));
        }
    }

    #[test]
    fn errors_are_bounded(seed in any::<u64>(), scale in -60f64..60.0, octaves in 0f64..40.0, signed in any::<bool>()) {
        let numbers = block(seed, scale.exp2(), octaves, signed);
        let (_, scale, back) = round_trip(&numbers);
        let (signed, scale) = (has_negative(&numbers), scale.abs());
        for (x, got) in numbers.iter().zip(back).map(|(x, got)| (f64::from(*x), f64::from(got))) {
            let share = x.abs() / f64::from(scale);
            // The top four powers of two, the next four, and so on.
            let down = (-share.log2() / 4.0).ceil().max(1.0) - 1.0;
            let bound = x.abs() * 4.0 / LEVELS[usize::from(signed)] * down.exp2();
            let bound = if share < 2f64.powi(-20) { f64::from(scale) * 2f64.powi(-20) } else { bound };
            prop_assert!((got - x).abs() <= bound * (1.0 + 1e-5), "{x:e} became {got:e}, {share:e} of the scale");
        }
    }

    #[test]
    fn coding_again_changes_nothing(seed in any::<u64>(), scale in -100f64..100.0, signed in any::<bool>()) {
        let (codes, scale, back) = round_trip(&block(seed, scale.exp2(), 40.0, signed));
        let (again, same_scale, _) = round_trip(&back);
        prop_assert_eq!(codes, again);
        prop_assert_eq!(scale.to_bits(), same_scale.to_bits());
    }

    #[test]
    fn positive_numbers_stay_positive(seed in any::<u64>(), scale in -149f64..127.0, octaves in 0f64..140.0) {
        let numbers = block(seed, scale.exp2(), octaves, false);
        let (.., back) = round_trip(&numbers);
        for (x, got) in numbers.iter().zip(back) {
            prop_assert_eq!(*x > 0.0, got > 0.0, "{:e} became {:e}", x, got);
        }
    }
}

#[test]
#[allow(clippy::float_cmp, reason = "exact is what is promised")]
fn zeros_and_the_largest_are_exact() {
    for negative in [0.0, -0.0, -1e-45] {
        for largest in [1.0, 3.3e38, 2e-35, 0.3] {
            let mut numbers = [0.0; BLOCK];
            (numbers[3], numbers[7]) = (negative, largest);
            let (_, scale, back) = round_trip(&numbers);
            assert_eq!((scale.abs(), scale > 0.0, back[7]), (largest, negative < 0.0, largest));
            assert!(back.iter().enumerate().all(|(i, x)| i == 7 || *x == 0.0 || (i == 3 && negative < 0.0)));
        }
    }
    let (codes, scale, back) = round_trip(&[0.0; BLOCK]);
    assert_eq!((codes, scale, back), ([0; BLOCK], -LEAST, [0.0; BLOCK]));
    let mut new = [1.0; BLOCK];
    Eight::decode(&[0; BLOCK], 0.0, &mut new);
    assert_eq!(new, [0.0; BLOCK], "what is not begun yet is zero");
}

#[test]
fn what_is_no_number_spoils_its_block() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut numbers = [1.0; BLOCK];
        numbers[100] = bad;
        let (_, scale, back) = round_trip(&numbers);
        assert!(scale.is_nan() && back.iter().all(|x| x.is_nan()), "{bad}");
    }
}
