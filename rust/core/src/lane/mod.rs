//! Lanes: a handful of numbers that one instruction works on. The scalar lane is one number.

pub mod math;
mod scalar;

/// A vector of `WIDTH` floating-point numbers of one instruction set. Every method is IEEE 754, so that all lanes agree.
pub trait Lane: Copy {
    /// What a comparison gives, one truth value an element.
    type Mask: Copy;

    /// Every element zero.
    fn zero() -> Self;
    /// Every element one.
    fn one() -> Self;
    /// Sum.
    fn add(self, other: Self) -> Self;
    /// Difference.
    fn sub(self, other: Self) -> Self;
    /// Product.
    fn mul(self, other: Self) -> Self;
    /// Quotient.
    fn div(self, other: Self) -> Self;
    /// Sign flipped.
    fn neg(self) -> Self;
    /// Sign cleared.
    fn abs(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Largest whole number that is not greater.
    fn floor(self) -> Self;
    /// Less than; false where either is NaN.
    fn lt(self, other: Self) -> Self::Mask;
    /// Less than or equal; false where either is NaN.
    fn le(self, other: Self) -> Self::Mask;
    /// Equal; false where either is NaN.
    fn eq(self, other: Self) -> Self::Mask;
    /// Not equal; true where either is NaN.
    fn ne(self, other: Self) -> Self::Mask;
    /// `yes` where the mask is set, `no` elsewhere.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// One where the mask is set, zero elsewhere.
    #[inline(always)]
    fn truth(mask: Self::Mask) -> Self {
        Self::select(mask, Self::one(), Self::zero())
    }
    /// Calls a scalar function on each element: for what has no vector form.
    fn map(self, f: impl Fn(f64) -> f64) -> Self;
    /// Calls a scalar function on each pair of elements.
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self;
}
