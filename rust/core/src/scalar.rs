//! Scalars with a precision, and the promotion of precisions.

use std::ops::Add;

use crate::op::{Elementwise, Visitor};
use crate::simd::dispatch::{Isa, with_fma};
use crate::simd::{Binary, Code, Lane, Simd, Task, Ternary, Unary};

/// The precision of a scalar, in the order of promotion: of two, the later one is that of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    /// A number of the host language, with a *weak* dtype: it takes the precision of the other operand.
    Weak,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

/// A number and its precision. A number of binary32 is kept as the binary64 number that equals it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalar {
    /// The number.
    pub number: f64,
    /// Its precision.
    pub precision: Precision,
}

impl Scalar {
    /// A number of the host language.
    #[inline]
    #[must_use]
    pub const fn weak(number: f64) -> Self {
        Self { number, precision: Precision::Weak }
    }

    /// A number of binary32.
    #[inline]
    #[must_use]
    pub const fn f32(number: f32) -> Self {
        Self { number: number as f64, precision: Precision::F32 }
    }

    /// A number of binary64.
    #[inline]
    #[must_use]
    pub const fn f64(number: f64) -> Self {
        Self { number, precision: Precision::F64 }
    }

    /// The same number in another precision, rounded to nearest even where that is binary32.
    #[inline]
    #[must_use]
    pub fn cast(self, precision: Precision) -> Self {
        let number = match precision {
            Precision::F32 => f64::from(narrowed(self.number)),
            Precision::Weak | Precision::F64 => self.number,
        };
        Self { number, precision }
    }
}

impl Add for Scalar {
    type Output = Self;

    /// The sum in the promoted precision.
    fn add(self, other: Self) -> Self {
        // The sum of two numbers of binary32, rounded to binary64 first, is rounded to binary32 correctly.
        let sum = Self { number: self.number + other.number, precision: Precision::F64 };
        sum.cast(self.precision.max(other.precision))
    }
}

/// The nearest number of binary32.
#[allow(clippy::cast_possible_truncation, reason = "rounding is what is asked for")]
pub(crate) const fn narrowed(number: f64) -> f32 {
    number as f32
}

impl Elementwise {
    /// The op on scalars, computed in their promoted precision; arguments beyond its arity are ignored.
    ///
    /// # Panics
    /// Panics if there are more than three arguments.
    #[inline]
    #[must_use]
    pub fn on_scalars(self, args: &[Scalar]) -> Scalar {
        let precision = promoted(args);
        let mut numbers = [0.0; 3];
        for (number, arg) in numbers.iter_mut().zip(args) {
            *number = arg.number;
        }
        Scalar { number: self.in_precision(precision, numbers), precision }
    }
}

impl Elementwise {
    /// Whether an exact op with this result raised no floating-point flag, of those that NumPy's `errstate` handles. It may
    /// report a flag that is not raised.
    #[inline]
    #[must_use]
    pub fn is_quiet(self, result: Scalar, numbers: [f64; 3]) -> bool {
        let is_short = result.precision == Precision::F32;
        let smallest = if is_short { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE };
        let may_underflow = match self {
            Self::Multiply => numbers[0] != 0.0 && numbers[1] != 0.0,
            Self::Square | Self::Divide => numbers[0] != 0.0,
            Self::Reciprocal => true,
            _ => false, // sums that are subnormal are exact
        };
        result.number.is_finite() && !(may_underflow && result.number.abs() < smallest)
    }
}

/// A condition on a call, without which its caller has another result than the op, raises, or warns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Always true.
    None,
    /// The second argument is not zero.
    Divisor,
    /// No floating-point flag is raised: see [`Elementwise::is_quiet`].
    Quiet,
}

impl Condition {
    /// Whether it holds.
    #[inline(always)]
    #[must_use]
    pub fn holds(self, op: Elementwise, result: Scalar, numbers: [f64; 3]) -> bool {
        match self {
            Self::None => true,
            Self::Divisor => numbers[1] != 0.0,
            Self::Quiet => op.is_quiet(result, numbers),
        }
    }
}

/// The precision that scalars promote to.
#[inline]
#[must_use]
pub fn promoted(scalars: &[Scalar]) -> Precision {
    scalars.iter().map(|scalar| scalar.precision).max().unwrap_or(Precision::Weak)
}

/// An op on numbers of a precision.
struct OneCall(Elementwise, Precision, [f64; 3]);

impl Task for OneCall {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self) -> f64 {
        let Self(op, precision, numbers) = self;
        computed(op, precision, numbers)
    }
}

/// The op on numbers, computed in a precision: code that computes in binary64 is there once for both.
#[inline(always)]
pub(crate) fn computed(op: Elementwise, precision: Precision, numbers: [f64; 3]) -> f64 {
    let is_short = precision == Precision::F32;
    if is_short && !op.code().is_wide() {
        return f64::from(op.visit(OnNumbers(numbers.map(narrowed))));
    }
    let number = op.visit(OnNumbers(numbers));
    if is_short { f64::from(narrowed(number)) } else { number }
}

/// The visitor that computes an op on numbers; of binary32, not by code that computes in binary64.
struct OnNumbers<L>([L; 3]);

impl<L: Lane> Visitor<L> for OnNumbers<L> {
    type Output = L;

    #[inline(always)]
    fn unary(self, f: impl Unary<L>) -> L {
        self.by_one(f)
    }

    #[inline(always)]
    fn binary(self, f: impl Binary<L>) -> L {
        self.by_two(f)
    }

    #[inline(always)]
    fn ternary(self, f: impl Ternary<L>) -> L {
        self.by_three(f)
    }
}

impl<L: Lane> OnNumbers<L> {
    #[inline(always)]
    fn has(code: Code) -> bool {
        size_of::<L::Element>() == size_of::<f64>() || !code.is_wide()
    }

    #[inline(always)]
    fn by_one<F: Unary<L>>(self, f: F) -> L {
        if Self::has(F::CODE) { f.call(self.0[0]) } else { L::zero() }
    }

    #[inline(always)]
    fn by_two<F: Binary<L>>(self, f: F) -> L {
        if Self::has(F::CODE) { f.call(self.0[0], self.0[1]) } else { L::zero() }
    }

    #[inline(always)]
    fn by_three<F: Ternary<L>>(self, f: F) -> L {
        if Self::has(F::CODE) { f.call(self.0[0], self.0[1], self.0[2]) } else { L::zero() }
    }
}

impl Elementwise {
    /// The meaning of the op on numbers; arguments beyond its arity are ignored.
    #[must_use]
    pub fn on_numbers(self, args: [f64; 3]) -> f64 {
        self.in_precision(Precision::F64, args)
    }

    /// The op on numbers, computed in a precision.
    pub(crate) fn in_precision(self, precision: Precision, numbers: [f64; 3]) -> f64 {
        with_fma(OneCall(self, precision, numbers)).unwrap_or_else(|task| Isa::SCALAR.run(task))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THIRD: f32 = 1.0 / 3.0;

    #[test]
    fn a_weak_number_takes_the_precision_of_the_other() {
        let product = Elementwise::Multiply.on_scalars(&[Scalar::f32(THIRD), Scalar::weak(0.1)]);
        assert_eq!(product, Scalar::f32(THIRD * 0.1));
        let product = Elementwise::Multiply.on_scalars(&[Scalar::weak(0.1), Scalar::f64(3.0)]);
        assert_eq!(product, Scalar::f64(0.1 * 3.0));
        assert_eq!(Elementwise::Negative.on_scalars(&[Scalar::weak(0.1)]), Scalar::weak(-0.1));
    }

    #[test]
    fn binary32_and_binary64_promote_to_binary64() {
        let sum = Elementwise::Add.on_scalars(&[Scalar::f32(THIRD), Scalar::f64(0.1)]);
        assert_eq!(sum, Scalar::f64(f64::from(THIRD) + 0.1));
        assert_eq!(sum, Scalar::f32(THIRD) + Scalar::f64(0.1));
    }

    #[test]
    fn binary32_is_rounded_once() {
        for (a, b) in [(16_777_217.0_f32, 0.3_f32), (THIRD, -1e-8), (3e38, 3e38), (1e-38, 1e-7)] {
            let (x, y) = (Scalar::f32(a), Scalar::f32(b));
            assert_eq!(x + y, Scalar::f32(a + b));
            assert_eq!(Elementwise::Divide.on_scalars(&[x, y]), Scalar::f32(a / b));
            assert_eq!(Elementwise::Multiply.on_scalars(&[x, y]), Scalar::f32(a * b));
        }
    }

    #[test]
    fn a_cast_to_binary32_rounds_and_any_other_keeps_the_number() {
        assert_eq!(Scalar::f64(0.1).cast(Precision::F32), Scalar::f32(0.1));
        assert_eq!(Scalar::f32(0.1).cast(Precision::Weak), Scalar::weak(f64::from(0.1_f32)));
        assert_eq!(Scalar::weak(0.1).cast(Precision::F64), Scalar::f64(0.1));
    }
}
