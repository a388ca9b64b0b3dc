//! 4-bit codes: comparison with a search for the nearest number in `f64`, and documented properties.

use oxigrad_core::array::quantized::four::{BLOCK, BYTES, Codes, Numbers, SIGNED, UNSIGNED, ZEROS};
use oxigrad_core::array::quantized::{Coding, Four};
use oxigrad_core::simd::noise::uniform;
use proptest::prelude::*;

/// 2^-116.
const LEAST: f32 = f32::from_bits(11 << 23);

/// Codes, scale, and the decoded values.
fn round_trip(numbers: &Numbers) -> (Codes, f32, Numbers) {
    let (mut codes, mut back) = ([0; BYTES], [0.0; BLOCK]);
    let scale = Four::encode(numbers, &mut codes);
    Four::decode(&codes, scale, &mut back);
    (codes, scale, back)
}

fn code(codes: &Codes, i: usize) -> usize {
    usize::from(if i.is_multiple_of(2) { codes[i / 2] >> 4 } else { codes[i / 2] & 15 })
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Positive,
    WithZeros,
    OfEitherSign,
}

/// Numbers spread over `octaves` powers of two below `largest`.
fn block(seed: u64, largest: f64, octaves: f64, kind: Kind) -> Numbers {
    let draw = |k: u32, i: usize| f64::from(uniform(seed, k, i as u64));
    #[allow(clippy::cast_possible_truncation)]
    std::array::from_fn(|i| {
        let share = match kind {
            Kind::OfEitherSign if i == 3 || draw(1, i) < 0.5 => -1.0,
            Kind::WithZeros if i == 3 || draw(1, i) < 0.2 => 0.0,
            _ => 1.0,
        };
        (share * largest * (-draw(0, i) * octaves).exp2()) as f32
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Positive), Just(Kind::WithZeros), Just(Kind::OfEitherSign)]
}

proptest! {
    #[test]
    fn codes_are_those_of_the_nearest_numbers(
        seed in any::<u64>(), scale in -110f64..120.0, octaves in 0f64..14.0, kind in kind(),
    ) {
        let numbers = block(seed, scale.exp2(), octaves, kind);
        let (codes, scale, back) = round_trip(&numbers);
        let largest = numbers.iter().fold(LEAST, |most, x| most.max(x.abs()));
        let map = if kind == Kind::Positive { UNSIGNED } else { SIGNED };
        prop_assert_eq!(scale.to_bits(), (if kind == Kind::Positive { -largest } else { largest }).to_bits());
        for i in 0..BLOCK {
            let share = f64::from(numbers[i]) / f64::from(largest);
            let distance = |code: usize| (share - f64::from(map[code])).abs();
            let nearest = (0..16).map(distance).fold(f64::INFINITY, f64::min);
            let found = code(&codes, i);
            let is_raised = kind == Kind::WithZeros && share > 0.0 && found == 8 && distance(7) < distance(8);
            prop_assert!(distance(found) <= nearest + 1e-7 || is_raised, "{share} has the code {found}");
            prop_assert_eq!(back[i].to_bits(), (map[found] * largest).to_bits());
            let is_lost = kind == Kind::OfEitherSign && share.abs() < 0.00276;
            prop_assert!(back[i] != 0.0 || numbers[i] == 0.0 || is_lost);
            prop_assert!(back[i] == 0.0 || numbers[i] != 0.0);
            let bound = if kind == Kind::Positive { 0.0625 } else { 0.1125 };
            prop_assert!(distance(found) <= bound + 1e-6);
        }
    }

    #[test]
    fn positive_numbers_stay_positive(seed in any::<u64>(), scale in -149f64..127.0, octaves in 0f64..140.0) {
        for kind in [Kind::Positive, Kind::WithZeros] {
            let numbers = block(seed, scale.exp2(), octaves, kind);
            let (.., back) = round_trip(&numbers);
            for (x, got) in numbers.iter().zip(back) {
                prop_assert_eq!(*x > 0.0, got > 0.0, "{:e} became {:e}", x, got);
            }
        }
    }
}

#[test]
#[allow(clippy::float_cmp, reason = "exact is what is promised")]
fn between_two_numbers_the_greater_is_nearest() {
    let mut numbers = [1.0; BLOCK];
    for (k, number) in (1u8..16).zip(&mut numbers[1..]) {
        *number = (f32::from(k) + 0.5) / 16.0;
    }
    numbers[20] = 0.031; // less than half of the least
    let (codes, scale, _) = round_trip(&numbers);
    assert_eq!((scale, code(&codes, 20)), (-1.0, 0));
    assert!((1..15).all(|k| code(&codes, k) == k), "{codes:?}");
    numbers[30] = -0.1;
    for k in 0..15 {
        let half = (SIGNED[k + 1] - SIGNED[k]) * 0.5;
        numbers[k + 40] = SIGNED[k] + half;
        while numbers[k + 40] - SIGNED[k] < half {
            numbers[k + 40] = numbers[k + 40].next_up();
        }
        numbers[k + 60] = numbers[k + 40].next_down();
    }
    let (codes, scale, _) = round_trip(&numbers);
    assert_eq!(scale, 1.0);
    for k in 0..15 {
        assert_eq!(
            (code(&codes, k + 40), numbers[k + 60] - SIGNED[k] >= (SIGNED[k + 1] - SIGNED[k]) * 0.5),
            (k + 1, false)
        );
        assert_eq!(code(&codes, k + 60), k);
    }
}

#[test]
#[allow(clippy::float_cmp, reason = "exact is what is promised")]
fn zeros_are_exact() {
    for (negative, largest) in [(0.0, 1.0), (-0.0, 3.3e38), (-1e-45, 2e-35), (-0.2, 0.3)] {
        let mut numbers = [0.0; BLOCK];
        (numbers[3], numbers[7]) = (negative, largest);
        let (_, scale, back) = round_trip(&numbers);
        assert_eq!((scale, back[7]), (largest, largest));
        assert!(back.iter().enumerate().all(|(i, x)| x.to_bits() == 0 || i == 7 || i == 3));
    }
    let (codes, scale, back) = round_trip(&[0.0; BLOCK]);
    assert_eq!((codes, scale, back), ([ZEROS; BYTES], LEAST, [0.0; BLOCK]));
    let mut new = [1.0; BLOCK];
    Four::decode(&[ZEROS; BYTES], 0.0, &mut new);
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
