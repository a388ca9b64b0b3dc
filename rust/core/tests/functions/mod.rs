//! The functions over lanes against numbers known to more digits than `f64` has, and at their limits.

mod single;

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
use std::hint::black_box;

use oxigrad_core::op::{Attribute, Elementwise, Op};

const POINTS: &str = include_str!("../data/functions.txt");

fn op(name: &str) -> Elementwise {
    *Elementwise::ALL.iter().find(|op| op.name() == name).unwrap()
}

fn call(name: &str, x: f64) -> f64 {
    op(name).on_numbers([x, 0.0, 0.0])
}

/// The distance to the next number away from zero.
fn last_place(x: f64) -> f64 {
    let x = x.abs();
    f64::from_bits(x.to_bits() + 1) - x
}

#[test]
fn functions_are_within_their_bounds() {
    // Units in the last place; one half is the best there is.
    let bounds = [
        ("exp", 0.65),
        ("expm1", 1.0),
        ("log", 0.9),
        ("log1p", 0.9),
        ("sin", 0.8),
        ("cos", 0.8),
        ("tan", 0.95),
        ("tanh", 1.5),
    ];
    for (name, bound) in bounds {
        let (mut worst, mut count) = ((0.0, 0.0), 0);
        for line in POINTS.lines().filter(|line| line.split(' ').next() == Some(name)) {
            let mut numbers =
                line.split(' ').skip(1).map(|bits| f64::from_bits(u64::from_str_radix(bits, 16).unwrap()));
            let [x, nearest, rest] = std::array::from_fn(|_| numbers.next().unwrap());
            let error = ((call(name, x) - nearest) - rest).abs() / last_place(nearest);
            assert!(error.is_finite(), "{name}({x}) is {}, not {nearest}", call(name, x));
            // A result without all its bits is rounded twice.
            if nearest.abs() < f64::MIN_POSITIVE {
                assert!(error <= 1.0, "{name} errs by {error} units in the last place at {x:e}");
            } else if error > worst.0 {
                worst = (error, x);
            }
            count += 1;
        }
        println!("{name}: {:.3} at {:e}", worst.0, worst.1);
        assert!(count > 500, "{count} points for {name}");
        assert!(worst.0 <= bound, "{name} errs by {} units in the last place at {:e}", worst.0, worst.1);
    }
}

#[test]
fn functions_have_the_limits_of_the_standard() {
    let inf = f64::INFINITY;
    #[rustfmt::skip]
    let cases = [
        ("exp", inf, inf), ("exp", -inf, 0.0), ("exp", 0.0, 1.0), ("exp", -0.0, 1.0), ("exp", 710.0, inf),
        ("exp", -746.0, 0.0), ("exp", 1e308, inf), ("exp", -1e308, 0.0), ("exp", f64::MIN_POSITIVE, 1.0),
        ("expm1", inf, inf), ("expm1", -inf, -1.0), ("expm1", -0.0, -0.0), ("expm1", 0.0, 0.0), ("expm1", 710.0, inf),
        ("expm1", 5e-324, 5e-324), ("expm1", -1e300, -1.0), ("expm1", 1e-300, 1e-300),
        ("log", 0.0, -inf), ("log", -0.0, -inf), ("log", inf, inf), ("log", 1.0, 0.0), ("log", -1.0, f64::NAN),
        ("log", -inf, f64::NAN), ("log", -5e-324, f64::NAN),
        ("log1p", -1.0, -inf), ("log1p", inf, inf), ("log1p", -0.0, -0.0), ("log1p", 0.0, 0.0),
        ("log1p", -1.5, f64::NAN), ("log1p", -inf, f64::NAN), ("log1p", 5e-324, 5e-324),
        ("sin", -0.0, -0.0), ("sin", 0.0, 0.0), ("sin", inf, f64::NAN), ("sin", -inf, f64::NAN), ("sin", 5e-324, 5e-324),
        ("cos", 0.0, 1.0), ("cos", inf, f64::NAN), ("cos", 1e-300, 1.0), ("cos", -inf, f64::NAN),
        ("tan", -0.0, -0.0), ("tan", 0.0, 0.0), ("tan", inf, f64::NAN), ("tan", -inf, f64::NAN), ("tan", 5e-324, 5e-324),
        ("tanh", inf, 1.0), ("tanh", -inf, -1.0), ("tanh", -0.0, -0.0), ("tanh", 1e-300, 1e-300), ("tanh", 1e300, 1.0),
        ("tanh", 5e-324, 5e-324),
        ("sign", -0.0, -0.0), ("floor", -0.5, -1.0), ("ceil", -0.5, -0.0), ("trunc", -0.5, -0.0), ("round", 2.5, 2.0),
        ("isnan", f64::NAN, 1.0), ("isfinite", -inf, 0.0), ("isfinite", 1e308, 1.0), ("isinf", -inf, 1.0),
        ("expit", inf, 1.0), ("expit", -inf, 0.0), ("expit", 0.0, 0.5), ("erf", inf, 1.0), ("erf", -0.0, -0.0),
        ("erfc", inf, 0.0), ("erfc", -inf, 2.0), ("erfinv", 1.0, inf), ("erfinv", -1.0, -inf), ("erfinv", -0.0, -0.0),
        ("erfinv", 1.5, f64::NAN), ("gamma", 5.0, 24.0), ("gammaln", 1.0, 0.0), ("gammaln", -1.0, inf),
        ("gammaln", inf, inf), ("digamma", 0.0, -inf), ("digamma", -2.0, f64::NAN), ("digamma", inf, inf),
        ("asin", 1.5, f64::NAN), ("asin", -0.0, -0.0), ("asin", 5e-324, 5e-324), ("asin", -1.0, -FRAC_PI_2), ("asin", inf, f64::NAN),
        ("acos", 1.0, 0.0), ("acos", -1.0, PI), ("acos", -0.0, FRAC_PI_2), ("acos", -1.5, f64::NAN), ("acos", -inf, f64::NAN),
        ("atan", inf, FRAC_PI_2), ("atan", -inf, -FRAC_PI_2), ("atan", -0.0, -0.0), ("atan", 5e-324, 5e-324), ("atan", 1.0, FRAC_PI_4),
        ("erf", 5e-324, 5e-324), ("erf", 6.5, 1.0), ("erf", -1e300, -1.0), ("erfc", 1e300, 0.0), ("erfc", -1e300, 2.0), ("erfc", 0.0, 1.0),
        ("acosh", 0.5, f64::NAN), ("atanh", 1.0, inf), ("log2", 8.0, 3.0), ("log10", 1e3, 3.0),
        ("log2", 5e-324, -1074.0), ("log2", 0.0, -inf), ("log2", inf, inf), ("log2", -1.0, f64::NAN), ("log2", 1.0, 0.0),
        ("log10", 1e22, 22.0), ("log10", -0.0, -inf), ("log10", inf, inf), ("log10", -inf, f64::NAN),
        ("sinh", inf, inf), ("sinh", -inf, -inf), ("sinh", -0.0, -0.0), ("sinh", 5e-324, 5e-324), ("sinh", -711.0, -inf),
        ("cosh", inf, inf), ("cosh", -inf, inf), ("cosh", -0.0, 1.0), ("cosh", 1e-300, 1.0), ("cosh", 1e300, inf),
        ("asinh", inf, inf), ("asinh", -inf, -inf), ("asinh", -0.0, -0.0), ("asinh", 5e-324, 5e-324),
        ("acosh", inf, inf), ("acosh", 1.0, 0.0), ("acosh", -inf, f64::NAN), ("acosh", -2.0, f64::NAN),
        ("atanh", -1.0, -inf), ("atanh", -0.0, -0.0), ("atanh", 1.5, f64::NAN), ("atanh", -inf, f64::NAN),
        ("cbrt", inf, inf), ("cbrt", -inf, -inf), ("cbrt", -0.0, -0.0), ("cbrt", -27.0, -3.0), ("cbrt", 1e300, 1e100),
        ("trunc", inf, inf), ("trunc", -2.75, -2.0), ("trunc", 0.5, 0.0), ("trunc", -4.5e15, -4.5e15), ("trunc", 1e300, 1e300),
        ("round", -0.5, -0.0), ("round", 0.5, 0.0), ("round", 0.499_999_999_999_999_94, 0.0), ("round", -1.5, -2.0),
        ("round", 4_503_599_627_370_497.0, 4_503_599_627_370_497.0), ("round", 2_251_799_813_685_248.5, 2_251_799_813_685_248.0),
        ("round", -inf, -inf), ("round", 1e300, 1e300), ("round", 5e-324, 0.0),
    ];
    for (name, x, expected) in cases {
        let value = call(name, x);
        let same = value.to_bits() == expected.to_bits() || (value.is_nan() && expected.is_nan());
        assert!(same, "{name}({x:e}) is {value:e}, not {expected:e}");
    }
    let reads = |op: &&Elementwise| op.kind() == oxigrad_core::op::ResultKind::Smooth && **op != Elementwise::Imag;
    for op in Elementwise::ALL.iter().filter(|op| op.arity() == 1).filter(reads) {
        assert!(op.on_numbers([f64::NAN; 3]).is_nan(), "{} of NaN", op.name());
    }
}

#[test]
fn powers_one_and_two_are_exact() {
    for x in [3.1, -0.7, 1e200, -1e-170, 5e-324, f64::INFINITY] {
        let pow = |b| op("pow").on_numbers([x, b, 0.0]);
        assert_eq!((pow(1.0).to_bits(), pow(2.0).to_bits()), (x.to_bits(), (x * x).to_bits()));
    }
}

/// Annex F of the C standard, for every pair of a zero, an infinity, NaN, and finite numbers between them.
#[test]
fn powers_have_the_limits_of_the_standard() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let sizes = [0.0, 5e-324, 1e-300, 0.3, 0.5, 1.0 - 1e-16, 1.0, 1.0 + 3e-16, 1.5, 2.0, 3.0, 7.0, 1e15, 9e15];
    let large = [9_007_199_254_740_993.0, 1e19, 1e21, 1e22, 1e300, f64::MAX, inf, nan];
    let numbers: Vec<f64> = sizes.into_iter().chain(large).flat_map(|x| [x, -x]).collect();
    for a in &numbers {
        for b in &numbers {
            let (value, expected) = (op("pow").on_numbers([*a, *b, 0.0]), a.powf(*b));
            let exact =
                expected == 0.0 || expected.is_infinite() || [1.0, -1.0].contains(a) || [0.0, 1.0, 2.0].contains(b);
            // The function of the system is within one unit as well.
            let near = value.is_sign_negative() == expected.is_sign_negative()
                && value.to_bits().abs_diff(expected.to_bits()) <= 1;
            let same = if exact { value.to_bits() == expected.to_bits() } else { near };
            assert!(same || (value.is_nan() && expected.is_nan()), "{a:e} to the power {b:e} is {value:e}");
        }
    }
    for (a, b, expected) in [
        (10.0, 15.0, 1e15),
        (3.0, 33.0, 5_559_060_566_555_523.0),
        (-2.0, -1074.0, 5e-324),
        (2.0, 1023.0, 8.988_465_674_311_58e307),
    ] {
        assert_eq!(op("pow").on_numbers([a, b, 0.0]).to_bits(), f64::to_bits(expected), "{a} to the power {b}");
    }
    assert!(op("pow").on_numbers([-8.0, 1.0 / 3.0, 0.0]).is_nan());
}

/// Numbers of all exponents, and of few bits, whose remainder may be zero.
#[test]
#[allow(clippy::cast_precision_loss, reason = "any number will do")]
fn remainders_are_exact() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    };
    let limits = [0.0, -0.0, 5e-324, 1.0, -3.0, f64::MAX, -f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let pairs = limits.iter().flat_map(|a| limits.map(|b| (*a, b)));
    let mask = |bits: u64| if bits.is_multiple_of(8) { !0 << 48 } else { !0 };
    let random: Vec<_> = (0..20_000).map(|_| (next(), next(), next(), next())).collect();
    let random = random.into_iter().map(|(a, b, c, d)| {
        let b = f64::from_bits(b & mask(d));
        // A quotient of up to 2^60 for half of the pairs.
        (if c & 1 == 0 { f64::from_bits(a & mask(c >> 1)) } else { b * (a >> 4 >> (c % 60)) as f64 }, b)
    });
    for (a, b) in pairs.chain(random) {
        let r = a % b;
        let expected = if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r };
        let found = op("remainder").on_numbers([a, b, 0.0]);
        assert!(bits(found) == bits(expected), "remainder({a:e}, {b:e}) is {found:e}, not {expected:e}");
        let whole = op("floor_divide").on_numbers([a, b, 0.0]);
        let expected = if b == 0.0 { a / b } else { ((a - expected) / b).round_ties_even().abs().copysign(a / b) };
        assert!(bits(whole) == bits(expected), "floor_divide({a:e}, {b:e}) is {whole:e}, not {expected:e}");
    }
}

#[test]
fn the_incomplete_beta_function_has_its_limits() {
    let betainc = |a, b, x| op("betainc").on_numbers([a, b, x]);
    assert_eq!((betainc(2.0, 3.0, 0.0), betainc(2.0, 3.0, 1.0), betainc(1.0, 1.0, 0.25)), (0.0, 1.0, 0.25));
    assert_eq!((betainc(0.0, 1.0, 0.5), betainc(1.0, 0.0, 0.5)), (1.0, 0.0));
    assert_eq!((betainc(1.0, f64::INFINITY, 0.5), betainc(f64::INFINITY, 1.0, 0.5)), (1.0, 0.0));
    for [a, b, x] in [[0.0, 0.0, 0.5], [1.0, -1.0, 0.5], [1.0, 1.0, 1.5], [1.0, 1.0, -0.5], [1.0, f64::NAN, 0.5]] {
        assert!(betainc(a, b, x).is_nan(), "betainc({a}, {b}, {x})");
    }
    assert!((betainc(0.5, 0.5, 0.5) - 0.5).abs() < 1e-15);
}

#[test]
fn functions_of_two_numbers_have_their_limits() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    #[rustfmt::skip]
    let cases = [
        ("floor_divide", 7.0, 2.0, 3.0), ("floor_divide", -7.0, 2.0, -4.0), ("floor_divide", 0.5, -1.0, -1.0),
        ("floor_divide", 1.0, 0.1, 9.0), ("floor_divide", 1.0, 0.0, inf), ("floor_divide", -0.0, 1.0, -0.0),
        ("hypot", 3.0, 4.0, 5.0), ("hypot", 1e300, 0.0, 1e300), ("hypot", inf, nan, inf), ("hypot", nan, -inf, inf), ("hypot", nan, 1.0, nan), ("hypot", 1.0, nan, nan), ("hypot", 0.0, -0.0, 0.0),
        ("atan2", 0.0, 0.0, 0.0), ("atan2", -0.0, 0.0, -0.0), ("atan2", 0.0, -0.0, PI), ("atan2", -0.0, -0.0, -PI), ("atan2", -0.0, -1.0, -PI),
        ("atan2", 1.0, -0.0, FRAC_PI_2), ("atan2", inf, inf, FRAC_PI_4), ("atan2", -inf, -inf, -3.0 * FRAC_PI_4), ("atan2", inf, -1.0, FRAC_PI_2),
        ("atan2", 1.0, inf, 0.0), ("atan2", -1.0, inf, -0.0), ("atan2", 1.0, -inf, PI), ("atan2", nan, 1.0, nan), ("atan2", inf, nan, nan),
        ("atan2", 5e-324, 1.0, 5e-324), ("atan2", 5e-324, -1.0, PI), ("atan2", f64::MAX, 5e-324, FRAC_PI_2),
        ("logaddexp", nan, -inf, nan), ("logaddexp", 1.0, nan, nan), ("logaddexp", -1e300, -1e300, -1e300), ("logaddexp2", 3.0, 3.0, 4.0),
        ("logaddexp2", -1075.0, -1075.0, -1074.0), ("logaddexp2", 0.0, -inf, 0.0), ("logaddexp2", -1.0, -1.0, 0.0),
        ("logaddexp", -inf, -inf, -inf), ("logaddexp", inf, -inf, inf), ("logaddexp", 1e300, 0.0, 1e300),
        ("polygamma", 0.0, inf, inf), ("polygamma", 0.5, 1.0, nan), ("polygamma", -1.0, 1.0, nan), ("polygamma", 1.0, nan, nan),
        ("jn", 0.0, 0.0, 1.0), ("jn", 0.5, 1.0, nan), ("yn", 0.0, 0.0, -inf), ("iv", 0.0, 0.0, 1.0), ("iv", 1.0, 1e4, inf),
        ("gammainc", 0.0, 1.0, 1.0), ("gammainc", 2.0, 0.0, 0.0), ("gammainc", 2.0, inf, 1.0), ("gammainc", -1.0, 1.0, nan),
        ("gammainc", 0.0, 0.0, nan), ("gammainc", inf, 3.0, 0.0), ("gammainc", inf, inf, nan), ("gammainc", nan, 1.0, nan),
        ("gammaincc", 0.0, 1.0, 0.0), ("gammaincc", 2.0, 0.0, 1.0), ("gammaincc", 2.0, inf, 0.0), ("gammaincc", 2.0, -1.0, nan),
        ("gammainc_a", 2.0, 0.0, 0.0), ("gammainc_a", 2.0, inf, 0.0), ("gammainc_a", 0.0, 1.0, nan),
        ("logical_xor", 2.0, 0.0, 1.0), ("logical_xor", 2.0, 3.0, 0.0),
    ];
    for (name, a, b, expected) in cases {
        let value = op(name).on_numbers([a, b, 0.0]);
        let same = value.to_bits() == expected.to_bits() || (value.is_nan() && expected.is_nan());
        assert!(same, "{name}({a:e}, {b:e}) is {value:e}, not {expected:e}");
    }
}

/// `(e/2 x/n)^n` falls below all numbers long before `x` is `n`, and with it J; Y rises above them.
#[test]
fn bessel_functions_of_high_order_have_their_limits() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    #[rustfmt::skip]
    let cases = [
        ("jn", 2e9, 1.0, 0.0), ("jn", 2e9, -1.0, 0.0), ("jn", 2_000_001.0, -1.0, -0.0), ("jn", -2_000_001.0, 1.0, -0.0),
        ("jn", -2_000_001.0, -1.0, 0.0), ("jn", 1e300, 1e200, 0.0), ("jn", 2e9, 1.99e9, 0.0), ("jn", 2e9, 0.0, 0.0),
        ("jn", 2e9, 2e9, nan), ("jn", 2e9, 1e10, nan), ("jn", 1e300, 1e300, nan), ("jn", 2e9, nan, nan), ("jn", inf, 1.0, nan),
        ("jn", 2_000_000.5, 1.0, nan), ("jn", 2e9, inf, 0.0),
        ("yn", 2e9, 1.0, -inf), ("yn", -2e9, 1.0, -inf), ("yn", -2_000_001.0, 1.0, inf), ("yn", 2e9, 0.0, -inf),
        ("yn", 2e9, -1.0, nan), ("yn", 2e9, 2e9, nan), ("yn", 2e9, inf, 0.0), ("yn", 1e300, 1e200, -inf),
    ];
    for (name, order, x, expected) in cases {
        let value = op(name).on_numbers([order, x, 0.0]);
        assert!(
            value.to_bits() == f64::to_bits(expected) || (value.is_nan() && expected.is_nan()),
            "{name}({order}, {x}) is {value}, not {expected}"
        );
    }
}

/// No number keeps an op busy for long, whatever its other arguments are: training would seem to hang. So would this test,
/// were there an op whose steps count up to one of these.
#[test]
fn no_numbers_take_long() {
    let small = [0.0, 5e-324, 1e-300, 1e-9, 0.3, 1.0, 1.5, 7.0, 170.0, 1e3, 9_999.5, 1e5, 1e6, 1e9];
    let large = [2_147_483_646.0, 1e10, 1e18, 1e19, 1e91, 1e155, 1e300, f64::MAX, f64::INFINITY, f64::NAN];
    let numbers: Vec<f64> = small.into_iter().chain(large).flat_map(|x| [x, -x, x + 0.5, -x - 0.5]).collect();
    let few = [-1.0, 1e-9, 0.3, 0.5, 1.0, 1e3, 1e9, 1e18, f64::MAX];
    let of = |is_argument, numbers: &[f64]| if is_argument { numbers.to_vec() } else { vec![0.0] };
    for op in Elementwise::ALL {
        let numbers = if op.arity() == 3 { &few[..] } else { &numbers };
        for a in numbers {
            for b in of(op.arity() > 1, numbers) {
                for c in of(op.arity() > 2, numbers) {
                    black_box(op.on_numbers(black_box([*a, b, c])));
                }
            }
        }
    }
}

const SPECIAL: [f64; 9] = [0.0, -0.0, 1.0, -2.5, 0.75, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

/// The bits of a number; one NaN is as good as another.
fn bits(x: f64) -> u64 {
    if x.is_nan() { u64::MAX } else { x.to_bits() }
}

#[test]
fn attributes_of_ops_hold_for_their_meaning() {
    for op in Elementwise::ALL {
        assert!(!op.has(Attribute::Commutative) || op.arity() == 2, "{op:?}");
        assert!(!op.has(Attribute::Identity) || op.arity() == 1, "{op:?}");
        for a in SPECIAL {
            let call = |a, b| bits(op.on_numbers([a, b, 0.0]));
            assert!(!op.has(Attribute::Identity) || call(a, 0.0) == bits(a), "{op:?} of {a}");
            for b in SPECIAL {
                assert!(!op.has(Attribute::Commutative) || call(a, b) == call(b, a), "{op:?} of {a} and {b}");
            }
        }
    }
}

#[test]
fn each_operator_and_name_is_that_of_one_op() {
    let ops: Vec<Op> = Op::all().collect();
    for (number, op) in ops.iter().enumerate() {
        assert_eq!((op.index(), Op::from_name(op.name())), (number, Some(*op)));
        let is_same = |other: &&Op| op.operator().is_some() && other.operator() == op.operator();
        assert_eq!(ops.iter().filter(is_same).count(), usize::from(op.operator().is_some()), "{op:?}");
    }
}
