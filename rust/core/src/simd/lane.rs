//! The traits of lanes: vectors of floating-point numbers of one instruction set, and functions and loops over them.

use crate::array::half::{Bfloat16, Float16, Half, narrowed};
use crate::simd::noise::Draws;

/// A number in memory that a lane holds: `f32` or `f64`.
pub trait Element: Copy + Send + Sync + 'static {
    /// The binary digits after the point, of a number from 1 to 2.
    const FRACTION: u32;
    /// The number of exponents.
    const EXPONENTS: u64;
    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;
    /// The number as `f64`.
    fn to_f64(self) -> f64;
}

/// A vector of `WIDTH` floating-point numbers of one instruction set. Every method is IEEE 754, rounds to nearest even
/// and keeps subnormal numbers, so that all lanes agree bitwise (except for the payload of NaN).
#[allow(clippy::return_self_not_must_use, clippy::must_use_candidate, reason = "arithmetic, like that of `f32`")]
pub trait Lane: Copy {
    /// The result of a comparison: a truth value for each element.
    type Mask: Copy;
    /// The type of the elements.
    type Element: Element;
    /// The bits of the elements, as whole numbers.
    type Bits: Copy;
    /// The lane of `f64` of the same instruction set, in which functions are computed.
    type Wide: Wide;
    /// The instruction set.
    type Set: Simd;
    /// The number of elements.
    const WIDTH: usize;
    /// Whether `load_part` and `store_part` take whole lanes too, and are as fast.
    const MASKED: bool = false;

    /// A lane with every element the number of this type nearest to `value`.
    fn splat(value: f64) -> Self;
    /// A lane of zeros.
    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0.0)
    }
    /// A lane of ones.
    #[inline(always)]
    fn one() -> Self {
        Self::splat(1.0)
    }

    /// Reads `WIDTH` numbers.
    ///
    /// # Safety
    /// They must lie at `from`, at any alignment.
    unsafe fn load(from: *const Self::Element) -> Self;
    /// Reads the first `count` elements; the others are zero.
    ///
    /// # Safety
    /// `count < WIDTH`, or if `MASKED` at most, and that many numbers must lie at `from`, at any alignment.
    unsafe fn load_part(from: *const Self::Element, count: usize) -> Self;
    /// Writes `WIDTH` numbers.
    ///
    /// # Safety
    /// There must be room for them at `to`, at any alignment.
    unsafe fn store(self, to: *mut Self::Element);
    /// Writes the first `count` elements and nothing else.
    ///
    /// # Safety
    /// `count < WIDTH`, or if `MASKED` at most, and there must be room for that many at `to`, at any alignment.
    unsafe fn store_part(self, to: *mut Self::Element, count: usize);

    /// Reads `WIDTH` numbers of bfloat16.
    ///
    /// # Safety
    /// They must lie at `from`, at any alignment.
    #[inline(always)]
    unsafe fn load_bf16(from: *const Bfloat16) -> Self {
        // SAFETY: the caller's promise.
        unsafe { load_halves(from) }
    }
    /// Reads `WIDTH` numbers of float16.
    ///
    /// # Safety
    /// They must lie at `from`, at any alignment.
    #[inline(always)]
    unsafe fn load_f16(from: *const Float16) -> Self {
        // SAFETY: the caller's promise.
        unsafe { load_halves(from) }
    }
    /// Writes `WIDTH` numbers as the nearest of bfloat16.
    ///
    /// # Safety
    /// There must be room for them at `to`, at any alignment.
    #[inline(always)]
    unsafe fn store_bf16(self, to: *mut Bfloat16) {
        // SAFETY: the caller's promise.
        unsafe { store_halves(self, to) };
    }
    /// Writes `WIDTH` numbers as bfloat16, rounded stochastically by the draws of as many elements.
    ///
    /// # Safety
    /// There must be room for them at `to`, at any alignment.
    #[inline(always)]
    unsafe fn store_bf16_at_random(self, to: *mut Bfloat16, draws: Draws) {
        let mut numbers = [0.0; WIDEST];
        // SAFETY: the array has room for the widest lane.
        unsafe { self.store_wide(numbers.as_mut_ptr()) };
        for (k, number) in numbers[..Self::WIDTH].iter().enumerate() {
            let half = Bfloat16::stochastic(narrowed(*number), draws.after(k).first());
            // SAFETY: the caller's promise.
            unsafe { to.add(k).write_unaligned(half) };
        }
    }
    /// Writes `WIDTH` numbers as the nearest of float16.
    ///
    /// # Safety
    /// There must be room for them at `to`, at any alignment.
    #[inline(always)]
    unsafe fn store_f16(self, to: *mut Float16) {
        // SAFETY: the caller's promise.
        unsafe { store_halves(self, to) };
    }
    /// The nearest number of bfloat16, ties to even.
    #[inline(always)]
    fn to_bfloat16(self) -> Self {
        let mut halves = [Bfloat16::from_bits(0); WIDEST];
        // SAFETY: the array has room for the widest lane.
        unsafe {
            self.store_bf16(halves.as_mut_ptr());
            Self::load_bf16(halves.as_ptr())
        }
    }
    /// The nearest number of float16, ties to even.
    #[inline(always)]
    fn to_float16(self) -> Self {
        let mut halves = [Float16::from_bits(0); WIDEST];
        // SAFETY: the array has room for the widest lane.
        unsafe {
            self.store_f16(halves.as_mut_ptr());
            Self::load_f16(halves.as_ptr())
        }
    }

    /// Sum.
    fn add(self, other: Self) -> Self;
    /// Difference.
    fn sub(self, other: Self) -> Self;
    /// Product.
    fn mul(self, other: Self) -> Self;
    /// Quotient.
    fn div(self, other: Self) -> Self;
    /// `self * factor + summand`, rounded once.
    fn mul_add(self, factor: Self, summand: Self) -> Self;
    /// The remainder of the quotient that is rounded towards zero, which is exact.
    #[inline(always)]
    fn rem(self, other: Self) -> Self {
        self.zip(other, |a, b| a % b)
    }
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
    /// Whether the mask is set anywhere.
    fn any(mask: Self::Mask) -> bool;
    /// `yes` where the mask is set, `no` elsewhere.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// `limit` where that is less, NaN where `self` is.
    #[inline(always)]
    fn at_most(self, limit: Self) -> Self {
        Self::select(limit.lt(self), limit, self)
    }
    /// `limit` where that is greater, NaN where `self` is.
    #[inline(always)]
    fn at_least(self, limit: Self) -> Self {
        Self::select(self.lt(limit), limit, self)
    }
    /// One where the mask is set, zero elsewhere.
    #[inline(always)]
    fn truth(mask: Self::Mask) -> Self {
        Self::select(mask, Self::one(), Self::zero())
    }

    /// Every element these bits, of which a lane of `f32` takes the lower half.
    fn bits(value: u64) -> Self::Bits;
    /// The bits of each element.
    fn to_bits(self) -> Self::Bits;
    /// The numbers that have these bits.
    fn from_bits(bits: Self::Bits) -> Self;
    /// Sum, without carry out.
    fn bits_add(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    /// Difference, without borrow.
    fn bits_sub(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    /// Bits set in both.
    fn bits_and(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    /// Bits set in either.
    fn bits_or(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    /// Shifted left by [`Element::FRACTION`], to the position of the exponent.
    fn bits_up(a: Self::Bits) -> Self::Bits;
    /// Shifted right by [`Element::FRACTION`], filled with zeros.
    fn bits_down(a: Self::Bits) -> Self::Bits;
    /// `self` times 2 to the power `k`, a whole number, rounded once. `self` is between 1/4 and 4.
    #[inline(always)]
    fn scaled(self, k: Self) -> Self {
        // In two steps, since the power itself may be too small or too large.
        let half = k.mul(Self::splat(0.5)).floor();
        self.mul(power_of_two(half)).mul(power_of_two(k.sub(half)))
    }
    /// `values`; where the mask is set those of `rare`, which are computed if the mask is set anywhere.
    #[inline(always)]
    fn replace_where<const N: usize>(mask: Self::Mask, values: [Self; N], rare: impl Rare<Self, N>) -> [Self; N] {
        if !Self::any(mask) {
            return values;
        }
        let found = rare.compute();
        std::array::from_fn(|k| Self::select(mask, found[k], values[k]))
    }

    /// Computes a function by its formula for numbers of this type.
    fn function<F: Function>(self) -> Self;
    /// Computes a function in `f64` and rounds the result.
    fn wide(self, f: impl Unary<Self::Wide>) -> Self;
    /// Computes a function of two lanes in `f64` and rounds the result.
    fn wide_pair(self, other: Self, f: impl Binary<Self::Wide>) -> Self;
    /// Writes `WIDTH` numbers as `f64`.
    ///
    /// # Safety
    /// There must be room for them at `to`, at any alignment.
    unsafe fn store_wide(self, to: *mut f64);
    /// Reads `WIDTH` numbers of `f64` and rounds them.
    ///
    /// # Safety
    /// They must lie at `from`, at any alignment.
    unsafe fn load_wide(from: *const f64) -> Self;
    /// Calls a scalar function on each element: for functions without a vector form.
    #[inline(always)]
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        let mut numbers = [0.0; WIDEST];
        // SAFETY: the array has room for the widest lane.
        unsafe { self.store_wide(numbers.as_mut_ptr()) };
        numbers[..Self::WIDTH].iter_mut().for_each(|number| *number = f(*number));
        // SAFETY: the array holds a lane.
        unsafe { Self::load_wide(numbers.as_ptr()) }
    }
    /// Calls a scalar function on each pair of elements.
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let (mut numbers, mut others) = ([0.0; WIDEST], [0.0; WIDEST]);
        // SAFETY: the arrays have room for the widest lane.
        unsafe { self.store_wide(numbers.as_mut_ptr()) };
        // SAFETY: as above.
        unsafe { other.store_wide(others.as_mut_ptr()) };
        numbers[..Self::WIDTH].iter_mut().zip(others).for_each(|(number, other)| *number = f(*number, other));
        // SAFETY: the array holds a lane.
        unsafe { Self::load_wide(numbers.as_ptr()) }
    }
    /// Calls a scalar function on each triple of elements.
    #[inline(always)]
    fn zip3(self, second: Self, third: Self, f: impl Fn(f64, f64, f64) -> f64) -> Self {
        let (mut numbers, mut seconds, mut thirds) = ([0.0; WIDEST], [0.0; WIDEST], [0.0; WIDEST]);
        for (lane, into) in [(self, &mut numbers), (second, &mut seconds), (third, &mut thirds)] {
            // SAFETY: the arrays have room for the widest lane.
            unsafe { lane.store_wide(into.as_mut_ptr()) };
        }
        for (number, (second, third)) in numbers[..Self::WIDTH].iter_mut().zip(seconds.into_iter().zip(thirds)) {
            *number = f(*number, second, third);
        }
        // SAFETY: the array holds a lane.
        unsafe { Self::load_wide(numbers.as_ptr()) }
    }
}

/// 1.5 * 2^[`Element::FRACTION`]: added to a smaller number, it leaves the nearest integer in the low bits.
#[inline(always)]
#[allow(clippy::cast_precision_loss, reason = "a power of two")]
pub(super) fn rounder<E: Element>() -> f64 {
    1.5 * (1u64 << E::FRACTION) as f64
}

/// 2 to the power `k`, a whole number, of a normal number; zero and infinity for the exponents beyond them.
#[inline(always)]
#[allow(clippy::cast_precision_loss, reason = "of ten bits")]
pub(super) fn power_of_two<L: Lane>(k: L) -> L {
    let bias = (<L::Element as Element>::EXPONENTS / 2 - 1) as f64;
    L::from_bits(L::bits_up(k.add(L::splat(rounder::<L::Element>() + bias)).to_bits()))
}

/// 2 to the power `c - k`, both whole numbers, as [`power_of_two`].
#[inline(always)]
#[allow(clippy::cast_precision_loss, reason = "of ten bits")]
pub(super) fn power_of_two_less<L: Lane>(c: f64, k: L) -> L {
    let bias = (<L::Element as Element>::EXPONENTS / 2 - 1) as f64;
    L::from_bits(L::bits_up(L::splat(rounder::<L::Element>() + bias + c).sub(k).to_bits()))
}

/// A function with a formula for each type of numbers, as [`Unary`].
pub trait Function: Copy + Default {
    /// The function of numbers of `f32`.
    fn single<L: Lane<Element = f32>>(a: L) -> L;
    /// The function of numbers of `f64`.
    fn double<W: Wide>(a: W) -> W;
}

/// The largest [`Lane::WIDTH`] of any lane.
pub(super) const WIDEST: usize = 16;

/// A lane of halves, where no instruction reads one.
///
/// # Safety
/// `WIDTH` of them must lie at `from`.
#[inline(always)]
unsafe fn load_halves<L: Lane, H: Half>(from: *const H) -> L {
    let mut numbers = [0.0; WIDEST];
    for (k, number) in numbers[..L::WIDTH].iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *number = f64::from(unsafe { from.add(k).read_unaligned() }.to_f32());
    }
    // SAFETY: the array holds a lane.
    unsafe { L::load_wide(numbers.as_ptr()) }
}

/// # Safety
/// There must be room for `WIDTH` halves at `to`.
#[inline(always)]
unsafe fn store_halves<L: Lane, H: Half>(lane: L, to: *mut H) {
    let mut numbers = [0.0; WIDEST];
    // SAFETY: the array has room for the widest lane.
    unsafe { lane.store_wide(numbers.as_mut_ptr()) };
    for (k, number) in numbers[..L::WIDTH].iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { to.add(k).write_unaligned(H::nearest(narrowed(*number))) };
    }
}

/// A lane of `f64`, in which functions are computed.
pub trait Wide: Lane<Element = f64, Wide = Self> {}

/// Values that few elements need: see [`Lane::replace_where`]. A trait rather than a closure, as [`Unary`].
pub trait Rare<W, const N: usize> {
    /// The values.
    fn compute(self) -> [W; N];
}

/// The code of a function over lanes: how much it is, and where it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A few instructions, so that it matters how arguments are read.
    Short,
    /// Many instructions, which a loop has once.
    Long,
    /// As `Long`, computed in `f64`: numbers of `f32` go through its loop.
    Wide,
}

impl Code {
    /// Whether it computes in `f64`.
    #[must_use]
    pub const fn is_wide(self) -> bool {
        matches!(self, Self::Wide)
    }
}

/// A function of one lane: the meaning of an op, or any other. A trait rather than `Fn`, since `call` must be inlined
/// into the loop over elements, however long it is, and a closure cannot be marked so.
pub trait Unary<L: Lane>: Copy + Default {
    /// Its code.
    const CODE: Code = Code::Short;
    /// The function.
    fn call(self, a: L) -> L;
}

/// A function of two lanes: see [`Unary`].
pub trait Binary<L: Lane>: Copy + Default {
    /// Its code.
    const CODE: Code = Code::Short;
    /// The function.
    fn call(self, a: L, b: L) -> L;
}

/// A function of three lanes: see [`Unary`].
pub trait Ternary<L: Lane>: Copy + Default {
    /// Its code.
    const CODE: Code = Code::Short;
    /// The function.
    fn call(self, a: L, b: L, c: L) -> L;
}

/// An instruction set: its lane of each type.
pub trait Simd {
    /// The lane of `f32`.
    type F32: Lane<Element = f32>;
    /// The lane of `f64`.
    type F64: Wide;
    /// The address of a function compiled for this instruction set. A function called by its address is not inlined
    /// into its caller: for loops, which together would be too large for one function.
    fn address<B: Body<A>, A>() -> unsafe fn(A);
}

/// Work that runs on any instruction set: see `Isa::run` of `dispatch`. Mark `run` `#[inline(always)]`, and all that
/// it calls in a loop.
pub trait Task {
    /// The result of `run`.
    type Output;
    /// Does the work on the lanes of one instruction set.
    fn run<S: Simd>(self) -> Self::Output;
}

/// Work that runs on an instruction set and is called by its address: see [`Simd::address`]. As of [`Task`], mark
/// `call` `#[inline(always)]`.
pub trait Body<A> {
    /// Does the work on the lanes of one instruction set.
    fn call<S: Simd>(argument: A);
}

/// Methods of a lane that are expressions, all of one attribute.
macro_rules! methods {
    (#[$attribute:meta] $(fn $name:ident($($arg:ident: $t:ty),*) -> $r:ty = $e:expr;)*) => {$(
        #[$attribute]
        fn $name($($arg: $t),*) -> $r { $e }
    )*};
}

pub(super) use methods;
