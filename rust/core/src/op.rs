//! THE table of operations: a row an op. Nothing else in the project lists them.
//!
//! Names are the Array API standard's. An elementwise op also states its meaning, once, over [`Lane`]: the scalar lane
//! is the meaning of the op on numbers, the wide lanes run it in kernels, so that every executor gives the same bits.

use crate::simd::dispatch::{Isa, Task};
use crate::simd::{Lane, Simd, math, rounding};

/// The meaning of an op of one argument, or any other function over lanes. A trait rather than `Fn`: `call` must be
/// inlined into the loop over elements, however long it is, and a closure cannot be told.
pub trait Unary<L: Lane>: Copy + Default {
    /// The function.
    fn call(self, a: L) -> L;
}

/// As [`Unary`], of two arguments.
pub trait Binary<L: Lane>: Copy + Default {
    /// The function.
    fn call(self, a: L, b: L) -> L;
}

/// As [`Unary`], of three arguments.
pub trait Ternary<L: Lane>: Copy + Default {
    /// The function.
    fn call(self, a: L, b: L, c: L) -> L;
}

/// What is called with the meaning of one elementwise op: see [`Elementwise::visit`].
pub trait Visitor<L: Lane> {
    /// What the visit returns.
    type Output;
    /// The op takes one argument.
    fn unary(self, f: impl Unary<L>) -> Self::Output;
    /// The op takes two arguments.
    fn binary(self, f: impl Binary<L>) -> Self::Output;
    /// The op takes three arguments.
    fn ternary(self, f: impl Ternary<L>) -> Self::Output;
}

macro_rules! elementwise_ops {
    (@arity $a:ident) => { 1 };
    (@arity $a:ident $b:ident) => { 2 };
    (@arity $a:ident $b:ident $c:ident) => { 3 };
    (@visit $v:ident $variant:ident $a:ident) => { $v.unary(meaning::$variant) };
    (@visit $v:ident $variant:ident $a:ident $b:ident) => { $v.binary(meaning::$variant) };
    (@visit $v:ident $variant:ident $a:ident $b:ident $c:ident) => { $v.ternary(meaning::$variant) };
    (@meaning $op:ident $meaning:expr, $a:ident) => { elementwise_ops!(@impl Unary $op $meaning, $a); };
    (@meaning $op:ident $meaning:expr, $a:ident $b:ident) => { elementwise_ops!(@impl Binary $op $meaning, $a $b); };
    (@meaning $op:ident $meaning:expr, $a:ident $b:ident $c:ident) => {
        elementwise_ops!(@impl Ternary $op $meaning, $a $b $c);
    };
    (@impl $shape:ident $op:ident $meaning:expr, $($arg:ident)+) => {
        impl<L: Lane> $shape<L> for $op {
            #[inline(always)]
            fn call(self, $($arg: L),+) -> L { $meaning }
        }
    };
    ($($variant:ident $name:literal ($($arg:ident)+) $c:literal $kind:ident = $meaning:expr;)*) => {
        /// An op that acts on each element by itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "a row of the table says it")]
        #[repr(u8)]
        pub enum Elementwise { $($variant),* }

        /// The meaning of each elementwise op, as a type of its own: what [`Elementwise::visit`] hands on.
        pub mod meaning {
            use super::{Binary, Lane, Ternary, Unary, math, rounding};
            $(
                #[doc = concat!("The meaning of `", $name, "`.")]
                #[derive(Clone, Copy, Debug, Default)]
                pub struct $variant;
                elementwise_ops!(@meaning $variant $meaning, $($arg)+);
            )*
        }

        impl Elementwise {
            /// Every elementwise op, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The Array API standard's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// How many arguments it takes.
            #[must_use]
            pub const fn arity(self) -> usize {
                match self { $(Self::$variant => elementwise_ops!(@arity $($arg)+)),* }
            }

            /// Whether the result can be differentiated, or is a truth value or a step.
            #[must_use]
            pub const fn kind(self) -> Kind {
                match self { $(Self::$variant => Kind::$kind),* }
            }

            /// The C spelling of a call; `{0}`, `{1}`, `{2}` stand for the arguments.
            #[must_use]
            pub const fn c_spelling(self) -> &'static str {
                match self { $(Self::$variant => $c),* }
            }

            /// Calls `visitor` with the meaning of this op, so that a loop over elements holds no dispatch.
            #[inline(always)]
            pub fn visit<L: Lane, V: Visitor<L>>(self, visitor: V) -> V::Output {
                match self {
                    $(Self::$variant => elementwise_ops!(@visit visitor $variant $($arg)+)),*
                }
            }
        }
    };
}

/// What comes out of an elementwise op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that depends smoothly on the arguments, almost everywhere.
    Smooth,
    /// A number whose derivative is zero wherever it has one.
    Step,
    /// A truth value: 1 or 0 in a kernel, a plain Boolean array on values.
    Truth,
}

elementwise_ops! {
    // variant    name            args     C spelling                          kind    meaning over lanes
    Add          "add"           (a b)    "{0} + {1}"                         Smooth = a.add(b);
    Subtract     "subtract"      (a b)    "{0} - {1}"                         Smooth = a.sub(b);
    Multiply     "multiply"      (a b)    "{0} * {1}"                         Smooth = a.mul(b);
    Divide       "divide"        (a b)    "{0} / {1}"                         Smooth = a.div(b);
    Pow          "pow"           (a b)    "pow({0}, {1})"                     Smooth = math::pow(a, b);
    Remainder    "remainder"     (a b)    "({0} - floor({0} / {1}) * {1})"    Smooth = math::remainder(a, b);
    Maximum      "maximum"       (a b)    "({0} > {1} || {0} != {0} ? {0} : {1})" Smooth = math::maximum(a, b);
    Minimum      "minimum"       (a b)    "({0} < {1} || {0} != {0} ? {0} : {1})" Smooth = math::minimum(a, b);
    Atan2        "atan2"         (a b)    "atan2({0}, {1})"                   Smooth = math::atan2(a, b);
    Negative     "negative"      (a)      "-{0}"                              Smooth = a.neg();
    Positive     "positive"      (a)      "{0}"                               Smooth = a;
    Abs          "abs"           (a)      "fabs({0})"                         Smooth = a.abs();
    Square       "square"        (a)      "{0} * {0}"                         Smooth = a.mul(a);
    Sqrt         "sqrt"          (a)      "sqrt({0})"                         Smooth = a.sqrt();
    Reciprocal   "reciprocal"    (a)      "1 / {0}"                           Smooth = L::one().div(a);
    Exp          "exp"           (a)      "exp({0})"                          Smooth = math::exp(a);
    Expm1        "expm1"         (a)      "expm1({0})"                        Smooth = math::expm1(a);
    Log          "log"           (a)      "log({0})"                          Smooth = math::log(a);
    Log1p        "log1p"         (a)      "log1p({0})"                        Smooth = math::log1p(a);
    Sin          "sin"           (a)      "sin({0})"                          Smooth = math::sin(a);
    Cos          "cos"           (a)      "cos({0})"                          Smooth = math::cos(a);
    Tan          "tan"           (a)      "tan({0})"                          Smooth = math::tan(a);
    Tanh         "tanh"          (a)      "tanh({0})"                         Smooth = math::tanh(a);
    Sinh         "sinh"          (a)      "sinh({0})"                         Smooth = math::sinh(a);
    Cosh         "cosh"          (a)      "cosh({0})"                         Smooth = math::cosh(a);
    Asin         "asin"          (a)      "asin({0})"                         Smooth = math::asin(a);
    Acos         "acos"          (a)      "acos({0})"                         Smooth = math::acos(a);
    Atan         "atan"          (a)      "atan({0})"                         Smooth = math::atan(a);
    Asinh        "asinh"         (a)      "asinh({0})"                        Smooth = math::asinh(a);
    Acosh        "acosh"         (a)      "acosh({0})"                        Smooth = math::acosh(a);
    Atanh        "atanh"         (a)      "atanh({0})"                        Smooth = math::atanh(a);
    Log2         "log2"          (a)      "log2({0})"                         Smooth = math::log2(a);
    Log10        "log10"         (a)      "log10({0})"                        Smooth = math::log10(a);
    Hypot        "hypot"         (a b)    "hypot({0}, {1})"                   Smooth = math::hypot(a, b);
    LogAddExp    "logaddexp"     (a b)    "logaddexp({0}, {1})"               Smooth = math::logaddexp(a, b);
    LogAddExp2   "logaddexp2"    (a b)    "logaddexp2({0}, {1})"              Smooth = math::logaddexp2(a, b);
    Cbrt         "cbrt"          (a)      "cbrt({0})"                         Smooth = math::cbrt(a);
    Expit        "expit"         (a)      "1 / (1 + exp(-{0}))"               Smooth = L::one().div(L::one().add(math::exp(a.neg())));
    Erf          "erf"           (a)      "erf({0})"                          Smooth = math::erf(a);
    Erfc         "erfc"          (a)      "erfc({0})"                         Smooth = math::erfc(a);
    ErfInv       "erfinv"        (a)      "erfinv({0})"                       Smooth = math::erfinv(a);
    ErfcInv      "erfcinv"       (a)      "erfcinv({0})"                      Smooth = math::erfcinv(a);
    Beta         "beta"          (a b)    "beta({0}, {1})"                    Smooth = math::beta(a, b);
    BetaLn       "betaln"        (a b)    "betaln({0}, {1})"                  Smooth = math::betaln(a, b);
    Gamma        "gamma"         (a)      "tgamma({0})"                       Smooth = math::gamma(a);
    GammaLn      "gammaln"       (a)      "lgamma({0})"                       Smooth = math::gammaln(a);
    Digamma      "digamma"       (a)      "digamma({0})"                      Smooth = math::digamma(a);
    Polygamma    "polygamma"     (a b)    "polygamma({0}, {1})"               Smooth = math::polygamma(a, b);
    Jn           "jn"            (a b)    "jn({0}, {1})"                      Smooth = math::jn(a, b);
    Yn           "yn"            (a b)    "yn({0}, {1})"                      Smooth = math::yn(a, b);
    Iv           "iv"            (a b)    "iv({0}, {1})"                      Smooth = math::iv(a, b);
    GammaInc     "gammainc"      (a b)    "gammainc({0}, {1})"                Smooth = math::gammainc(a, b);
    GammaIncC    "gammaincc"     (a b)    "gammaincc({0}, {1})"               Smooth = math::gammaincc(a, b);
    GammaIncA    "gammainc_a"    (a b)    "gammainc_a({0}, {1})"              Smooth = math::gammainc_a(a, b);
    BetaInc      "betainc"       (a b c)  "betainc({0}, {1}, {2})"            Smooth = math::betainc(a, b, c);
    Where        "where"         (c a b)  "({0} != 0 ? {1} : {2})"            Smooth = L::select(c.ne(L::zero()), a, b);
    Real         "real"          (a)      "{0}"                               Smooth = a;
    Imag         "imag"          (a)      "(0 * {0})"                         Smooth = { let _ = a; L::zero() };
    Conj         "conj"          (a)      "{0}"                               Smooth = a;
    RoundToBfloat16 "round_to_bfloat16" (a)   "__bfloat162float(__float2bfloat16({0}))" Smooth = rounding::to_bfloat16(a);
    RoundToFloat16 "round_to_float16" (a)     "__half2float(__float2half({0}))"   Smooth = rounding::to_float16(a);
    Sign         "sign"          (a)      "(({0} > 0) - ({0} < 0))"           Step   = math::sign(a);
    Floor        "floor"         (a)      "floor({0})"                        Step   = a.floor();
    Ceil         "ceil"          (a)      "ceil({0})"                         Step   = a.neg().floor().neg();
    Trunc        "trunc"         (a)      "trunc({0})"                        Step   = math::trunc(a);
    Round        "round"         (a)      "rint({0})"                         Step   = math::round(a);
    FloorDivide  "floor_divide"  (a b)    "floor({0} / {1})"                  Step   = math::floor_divide(a, b);
    Less         "less"          (a b)    "({0} < {1})"                       Truth  = L::truth(a.lt(b));
    LessEqual    "less_equal"    (a b)    "({0} <= {1})"                      Truth  = L::truth(a.le(b));
    Greater      "greater"       (a b)    "({0} > {1})"                       Truth  = L::truth(b.lt(a));
    GreaterEqual "greater_equal" (a b)    "({0} >= {1})"                      Truth  = L::truth(b.le(a));
    Equal        "equal"         (a b)    "({0} == {1})"                      Truth  = L::truth(a.eq(b));
    NotEqual     "not_equal"     (a b)    "({0} != {1})"                      Truth  = L::truth(a.ne(b));
    LogicalAnd   "logical_and"   (a b)    "({0} != 0 && {1} != 0)"            Truth  = L::select(a.ne(L::zero()), L::truth(b.ne(L::zero())), L::zero());
    LogicalOr    "logical_or"    (a b)    "({0} != 0 || {1} != 0)"            Truth  = L::select(a.ne(L::zero()), L::one(), L::truth(b.ne(L::zero())));
    LogicalXor   "logical_xor"   (a b)    "(({0} != 0) != ({1} != 0))"        Truth  = L::truth(L::truth(a.ne(L::zero())).ne(L::truth(b.ne(L::zero()))));
    LogicalNot   "logical_not"   (a)      "({0} == 0)"                        Truth  = L::truth(a.eq(L::zero()));
    IsNan        "isnan"         (a)      "({0} != {0})"                      Truth  = L::truth(a.ne(a));
    IsFinite     "isfinite"      (a)      "({0} - {0} == 0)"                  Truth  = L::truth(a.sub(a).eq(L::zero()));
    IsInf        "isinf"         (a)      "(fabs({0}) == INFINITY)"           Truth  = L::truth(a.abs().eq(L::splat(f64::INFINITY)));
}

macro_rules! structured_ops {
    ($($variant:ident $name:literal $arity:expr;)*) => {
        /// An op that moves, folds or contracts whole arrays; the array library does it, the tape remembers it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "a row of the table says it")]
        #[repr(u8)]
        pub enum Structured { $($variant),* }

        impl Structured {
            /// Every structured op, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The Array API standard's name, where the standard has the function.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// How many array arguments it takes; none says any number.
            #[must_use]
            pub const fn arity(self) -> Option<usize> {
                match self { $(Self::$variant => $arity),* }
            }
        }
    };
}

structured_ops! {
    // variant       name               array arguments
    Sum             "sum"              Some(1);
    Mean            "mean"             Some(1);
    Max             "max"              Some(1);
    Min             "min"              Some(1);
    CumulativeSum   "cumulative_sum"   Some(1);
    Flip            "flip"             Some(1);
    Matmul          "matmul"           Some(2);
    Reshape         "reshape"          Some(1);
    PermuteDims     "permute_dims"     Some(1);
    ExpandDims      "expand_dims"      Some(1);
    Squeeze         "squeeze"          Some(1);
    BroadcastTo     "broadcast_to"     Some(1);
    Concat          "concat"           None;
    Stack           "stack"            None;
    Astype          "astype"           Some(1);
    TakeAlongAxis   "take_along_axis"  Some(1);
    Index           "index"            Some(1);
    ScatterAdd      "scatter_add"      Some(1);
    Call            "call"             None;
    Item            "item"             Some(1);
    Inv             "inv"              Some(1);
    Solve           "solve"            Some(2);
    Cholesky        "cholesky"         Some(1);
    Qr              "qr"               Some(1);
    Svd             "svd"              Some(1);
    Eigh            "eigh"             Some(1);
    Eig             "eig"              Some(1);
    Det             "det"              Some(1);
    Cofactor        "cofactor"         Some(1);
    Slogdet         "slogdet"          Some(1);
    Sqrtm           "sqrtm"            Some(1);
    Pinv            "pinv"             Some(1);
    VectorNorm      "vector_norm"      Some(1);
    Fftn            "fftn"             Some(1);
    Ifftn           "ifftn"            Some(1);
    Rfft            "rfft"             Some(1);
    Irfft           "irfft"            Some(1);
}

/// An operation: what an entry of a tape did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Each element by itself: has a scalar meaning and runs in kernels.
    Elementwise(Elementwise),
    /// Whole arrays: done by the array library.
    Structured(Structured),
}

impl Op {
    /// The Array API standard's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Elementwise(op) => op.name(),
            Self::Structured(op) => op.name(),
        }
    }

    /// The op of this name, if the table has it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let structured = || Structured::from_name(name).map(Self::Structured);
        Elementwise::from_name(name).map(Self::Elementwise).or_else(structured)
    }

    /// Every op, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        let elementwise = Elementwise::ALL.iter().map(|op| Self::Elementwise(*op));
        elementwise.chain(Structured::ALL.iter().map(|op| Self::Structured(*op)))
    }

    /// Where the op stands in the table, as an index from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Elementwise(op) => op as usize,
            Self::Structured(op) => Elementwise::ALL.len() + op as usize,
        }
    }
}

struct OneCall<L>(Elementwise, [L; 3]);

impl<L: Lane> Task for OneCall<L> {
    type Output = L;

    #[inline(always)]
    fn run<S: Simd>(self) -> L {
        self.0.visit(OnNumbers(self.1))
    }
}

struct OnNumbers<L>([L; 3]);

impl<L: Lane> Visitor<L> for OnNumbers<L> {
    type Output = L;

    #[inline(always)]
    fn unary(self, f: impl Unary<L>) -> L {
        f.call(self.0[0])
    }

    #[inline(always)]
    fn binary(self, f: impl Binary<L>) -> L {
        f.call(self.0[0], self.0[1])
    }

    #[inline(always)]
    fn ternary(self, f: impl Ternary<L>) -> L {
        f.call(self.0[0], self.0[1], self.0[2])
    }
}

impl Elementwise {
    /// The meaning of the op on numbers; arguments beyond its arity are ignored.
    #[must_use]
    pub fn on_numbers(self, args: [f64; 3]) -> f64 {
        Isa::SCALAR.run(OneCall(self, args))
    }

    /// The same in binary32: the bits that a kernel of that precision gives.
    pub(crate) fn on_f32(self, args: [f32; 3]) -> f32 {
        Isa::SCALAR.run(OneCall(self, args))
    }
}
