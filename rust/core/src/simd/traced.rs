//! The traced lane: one number that is not known, whose operations are recorded as a list of steps. A printer of code
//! for other machines finds the meaning of an op in it: see `kernel::cuda`.
//!
//! A number is known, the result of a step, or unknown. What goes through memory, such as a function that is computed
//! element by element, is unknown, and so is what is computed from it: such a function has no traced form.
//!
//! Nothing here is hot, and every function of every op is compiled for this lane: operations are never inlined, which
//! would make them a sixth of the machine code of the library.

use std::cell::RefCell;

use super::lane::{Binary, Body, Element, Function, Lane, Rare, Simd, Unary, Wide, methods};

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A number of `f32`.
    F32,
    /// A number of `f64`.
    F64,
    /// The bits of a number of `f32`, as a whole number.
    Bits32,
    /// The bits of a number of `f64`, as a whole number.
    Bits64,
    /// A truth value.
    Truth,
}

/// An operation of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the methods of lanes")]
pub enum Primitive {
    Argument(u32),
    Add,
    Sub,
    Mul,
    Div,
    MulAdd,
    Rem,
    Neg,
    Abs,
    Sqrt,
    Floor,
    Lt,
    Le,
    Eq,
    Ne,
    Select,
    /// From `f32` to `f64`.
    Widen,
    /// From `f64` to the nearest number of `f32`.
    Narrow,
    RoundToBfloat16,
    RoundToFloat16,
    ToBits,
    FromBits,
    BitsAdd,
    BitsSub,
    BitsAnd,
    BitsOr,
    BitsUp,
    BitsDown,
    /// A copy of the operand, to which later steps may assign.
    Variable,
    /// The steps up to the end are taken where the operand is true.
    If,
    /// Assigns the second operand to the first, which is a variable.
    Assign,
    EndIf,
}

/// An operand of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// The result of an earlier step.
    Step(usize),
    /// A number of `f32`.
    F32(f32),
    /// A number of `f64`.
    F64(f64),
    /// The bits of a number of `f32`.
    Bits32(u32),
    /// The bits of a number of `f64`.
    Bits64(u64),
    /// A truth value.
    Truth(bool),
}

/// One operation: its operands, and the type of its result.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The operation.
    pub primitive: Primitive,
    /// The operands, in the order of the arguments of the lane's method.
    pub operands: Vec<Operand>,
    /// The type of the result.
    pub kind: ValueType,
}

/// The steps of one function, in the order in which they were computed.
#[derive(Debug, Default)]
pub struct Trace {
    steps: RefCell<Vec<Step>>,
}

impl Trace {
    /// An argument of the function.
    pub fn argument<T: Traceable>(&self, number: u32) -> Traced<'_, T> {
        self.push(Primitive::Argument(number), Vec::new())
    }

    /// The steps.
    #[must_use]
    pub fn into_steps(self) -> Vec<Step> {
        self.steps.into_inner()
    }

    fn push<T: Traceable>(&self, primitive: Primitive, operands: Vec<Operand>) -> Traced<'_, T> {
        let mut steps = self.steps.borrow_mut();
        steps.push(Step { primitive, operands, kind: T::KIND });
        Traced::Computed(self, steps.len() - 1)
    }
}

/// A type of values.
pub trait Traceable: Copy {
    /// Its name.
    const KIND: ValueType;
    /// A known value as an operand.
    fn operand(self) -> Operand;
}

macro_rules! traceable {
    ($($t:ty, $kind:ident;)*) => {$(
        impl Traceable for $t {
            const KIND: ValueType = ValueType::$kind;
            fn operand(self) -> Operand { Operand::$kind(self) }
        }
    )*};
}

traceable! {
    f32, F32;
    f64, F64;
    u32, Bits32;
    u64, Bits64;
    bool, Truth;
}

/// A value of a trace.
#[derive(Clone, Copy, Debug)]
pub enum Traced<'a, T> {
    /// A constant.
    Known(T),
    /// The result of a step.
    Computed(&'a Trace, usize),
    /// A value that was not traced.
    Unknown,
}

/// A value of any type, as an operand.
type Given<'a> = Traced<'a, Operand>;

impl<'a, T: Traceable> Traced<'a, T> {
    #[inline(never)]
    fn given(self) -> Given<'a> {
        match self {
            Self::Known(value) => Traced::Known(value.operand()),
            Self::Computed(trace, step) => Traced::Computed(trace, step),
            Self::Unknown => Traced::Unknown,
        }
    }

    /// The value as an operand; `None` if it is unknown.
    #[must_use]
    pub fn operand(self) -> Option<Operand> {
        match self {
            Self::Known(value) => Some(value.operand()),
            Self::Computed(_, step) => Some(Operand::Step(step)),
            Self::Unknown => None,
        }
    }

    fn unary<R: Traceable>(self, primitive: Primitive, known: impl Fn(T) -> R) -> Traced<'a, R> {
        match self {
            Self::Known(value) => Traced::Known(known(value)),
            _ => record(primitive, &[self.given()]),
        }
    }

    fn binary<R: Traceable>(self, other: Self, primitive: Primitive, known: impl Fn(T, T) -> R) -> Traced<'a, R> {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => Traced::Known(known(a, b)),
            _ => record(primitive, &[self.given(), other.given()]),
        }
    }
}

/// Records a step; unknown if an operand is. One operand or more is the result of a step.
#[inline(never)]
fn record<'a, R: Traceable>(primitive: Primitive, given: &[Given<'a>]) -> Traced<'a, R> {
    let (mut found, mut operands) = (None, Vec::with_capacity(given.len()));
    for value in given {
        operands.push(match *value {
            Traced::Known(operand) => operand,
            Traced::Computed(trace, step) => {
                found = Some(trace);
                Operand::Step(step)
            }
            Traced::Unknown => return Traced::Unknown,
        });
    }
    found.map_or(Traced::Unknown, |trace| trace.push(primitive, operands))
}

#[inline(never)]
fn called<'a>(f: impl Unary<Traced<'a, f64>>, a: Traced<'a, f64>) -> Traced<'a, f64> {
    f.call(a)
}

#[inline(never)]
fn called_on_pair<'a>(f: impl Binary<Traced<'a, f64>>, a: Traced<'a, f64>, b: Traced<'a, f64>) -> Traced<'a, f64> {
    f.call(a, b)
}

/// The lanes of a trace.
pub struct Tracing<'a>(std::marker::PhantomData<&'a Trace>);

impl<'a> Simd for Tracing<'a> {
    type F32 = Traced<'a, f32>;
    type F64 = Traced<'a, f64>;

    fn address<B: Body<A>, A>() -> unsafe fn(A) {
        super::instruction_sets::scalar::Scalar::address::<B, A>()
    }
}

impl<'a> Traced<'a, f32> {
    fn widened(self) -> Traced<'a, f64> {
        self.unary(Primitive::Widen, f64::from)
    }

    fn nearest(wide: Traced<'a, f64>) -> Self {
        wide.unary(Primitive::Narrow, f32::from_f64)
    }
}

impl Traced<'_, f64> {
    fn widened(self) -> Self {
        self
    }

    fn nearest(wide: Self) -> Self {
        wide
    }
}

macro_rules! traced_lane {
    ($($t:ident $bits:ident $formula:ident;)*) => {$(
        #[allow(clippy::cast_possible_truncation, reason = "the lower half of the bits is the point")]
        #[allow(clippy::float_cmp, reason = "exact comparisons of IEEE 754 are intended")]
        impl<'a> Lane for Traced<'a, $t> {
            type Mask = Traced<'a, bool>;
            type Element = $t;
            type Wide = Traced<'a, f64>;
            type Bits = Traced<'a, $bits>;
            type Set = Tracing<'a>;
            const WIDTH: usize = 1;

            fn splat(value: f64) -> Self { Self::Known(<$t>::from_f64(value)) }
            methods! {
                #[inline(never)]
                fn add(self: Self, other: Self) -> Self = self.binary(other, Primitive::Add, |a, b| a + b);
                fn sub(self: Self, other: Self) -> Self = self.binary(other, Primitive::Sub, |a, b| a - b);
                fn mul(self: Self, other: Self) -> Self = self.binary(other, Primitive::Mul, |a, b| a * b);
                fn div(self: Self, other: Self) -> Self = self.binary(other, Primitive::Div, |a, b| a / b);
            }
            #[inline(never)]
            fn mul_add(self, factor: Self, summand: Self) -> Self {
                match (self, factor, summand) {
                    (Self::Known(a), Self::Known(b), Self::Known(c)) => Self::Known(a.mul_add(b, c)),
                    _ => record(Primitive::MulAdd, &[self.given(), factor.given(), summand.given()]),
                }
            }
            methods! {
                #[inline(never)]
                fn rem(self: Self, other: Self) -> Self = self.binary(other, Primitive::Rem, |a, b| a % b);
                fn neg(self: Self) -> Self = self.unary(Primitive::Neg, |a| -a);
                fn abs(self: Self) -> Self = self.unary(Primitive::Abs, <$t>::abs);
                fn sqrt(self: Self) -> Self = self.unary(Primitive::Sqrt, <$t>::sqrt);
                fn floor(self: Self) -> Self = self.unary(Primitive::Floor, <$t>::floor);
                fn lt(self: Self, other: Self) -> Self::Mask = self.binary(other, Primitive::Lt, |a, b| a < b);
                fn le(self: Self, other: Self) -> Self::Mask = self.binary(other, Primitive::Le, |a, b| a <= b);
                fn eq(self: Self, other: Self) -> Self::Mask = self.binary(other, Primitive::Eq, |a, b| a == b);
                fn ne(self: Self, other: Self) -> Self::Mask = self.binary(other, Primitive::Ne, |a, b| a != b);
            }
            /// True of a mask that is not known: a lane computes the same where another element of it has the mask set.
            fn any(mask: Self::Mask) -> bool { !matches!(mask, Traced::Known(false)) }
            #[inline(never)]
            fn select(mask: Self::Mask, yes: Self, no: Self) -> Self {
                match mask {
                    Traced::Known(mask) => if mask { yes } else { no },
                    _ => record(Primitive::Select, &[mask.given(), yes.given(), no.given()]),
                }
            }
            #[inline(never)]
            fn to_bfloat16(self) -> Self { self.unary(Primitive::RoundToBfloat16, Lane::to_bfloat16) }
            #[inline(never)]
            fn to_float16(self) -> Self { self.unary(Primitive::RoundToFloat16, Lane::to_float16) }
            fn bits(value: u64) -> Self::Bits { Traced::Known(value as $bits) }
            methods! {
                #[inline(never)]
                fn to_bits(self: Self) -> Self::Bits = self.unary(Primitive::ToBits, <$t>::to_bits);
                fn from_bits(bits: Self::Bits) -> Self = bits.unary(Primitive::FromBits, <$t>::from_bits);
                fn bits_add(a: Self::Bits, b: Self::Bits) -> Self::Bits = a.binary(b, Primitive::BitsAdd, <$bits>::wrapping_add);
                fn bits_sub(a: Self::Bits, b: Self::Bits) -> Self::Bits = a.binary(b, Primitive::BitsSub, <$bits>::wrapping_sub);
                fn bits_and(a: Self::Bits, b: Self::Bits) -> Self::Bits = a.binary(b, Primitive::BitsAnd, |a, b| a & b);
                fn bits_or(a: Self::Bits, b: Self::Bits) -> Self::Bits = a.binary(b, Primitive::BitsOr, |a, b| a | b);
                fn bits_up(a: Self::Bits) -> Self::Bits = a.unary(Primitive::BitsUp, |a| a << <$t>::FRACTION);
                fn bits_down(a: Self::Bits) -> Self::Bits = a.unary(Primitive::BitsDown, |a| a >> <$t>::FRACTION);
            }
            fn replace_where<const N: usize>(mask: Self::Mask, values: [Self; N], rare: impl Rare<Self, N>) -> [Self; N] {
                let trace = match mask {
                    Traced::Known(true) => return rare.compute(),
                    Traced::Known(false) => return values,
                    Traced::Unknown => return [Traced::Unknown; N],
                    Traced::Computed(trace, _) => trace,
                };
                let declared = values.map(|value| {
                    value.operand().map_or(Traced::Unknown, |operand| trace.push(Primitive::Variable, vec![operand]))
                });
                _ = record::<f64>(Primitive::If, &[mask.given()]);
                let found = rare.compute();
                let mut replaced = declared;
                for (variable, value) in replaced.iter_mut().zip(found) {
                    if let Traced::Unknown = record::<f64>(Primitive::Assign, &[variable.given(), value.given()]) {
                        *variable = Traced::Unknown;
                    }
                }
                trace.push::<f64>(Primitive::EndIf, Vec::new());
                replaced
            }
            fn function<F: Function>(self) -> Self { F::$formula(self) }
            fn wide(self, f: impl Unary<Self::Wide>) -> Self { Self::nearest(called(f, self.widened())) }
            fn wide_pair(self, other: Self, f: impl Binary<Self::Wide>) -> Self {
                Self::nearest(called_on_pair(f, self.widened(), other.widened()))
            }
            fn map(self, f: impl Fn(f64) -> f64) -> Self {
                match self {
                    Self::Known(a) => Self::splat(f(a.to_f64())),
                    _ => Self::Unknown,
                }
            }
            fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
                match (self, other) {
                    (Self::Known(a), Self::Known(b)) => Self::splat(f(a.to_f64(), b.to_f64())),
                    _ => Self::Unknown,
                }
            }
            fn zip3(self, second: Self, third: Self, f: impl Fn(f64, f64, f64) -> f64) -> Self {
                match (self, second, third) {
                    (Self::Known(a), Self::Known(b), Self::Known(c)) => {
                        Self::splat(f(a.to_f64(), b.to_f64(), c.to_f64()))
                    }
                    _ => Self::Unknown,
                }
            }

            // No value is in memory: nothing is written, and what is read is unknown.
            unsafe fn load(_: *const $t) -> Self { Self::Unknown }
            unsafe fn load_part(_: *const $t, _: usize) -> Self { Self::Unknown }
            unsafe fn store(self, _: *mut $t) {}
            unsafe fn store_part(self, _: *mut $t, _: usize) {}
            unsafe fn load_wide(_: *const f64) -> Self { Self::Unknown }
            unsafe fn store_wide(self, _: *mut f64) {}
        }
    )*};
}

traced_lane! {
    f32 u32 single;
    f64 u64 double;
}

impl Wide for Traced<'_, f64> {}
