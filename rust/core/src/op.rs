//! The table of operations, one row for each op, and the only list of them. Properties of some ops are [`Attribute`]s
//! in the table. Names are those of the Array API standard. An elementwise op defines its meaning once, over [`Lane`]:
//! the scalar lane computes the op on numbers, the wide lanes run it in kernels, so that every executor gives the same
//! bits.

use crate::simd::{Binary, Code, Lane, Ternary, Unary, math};

/// A function generic over the meanings of ops: see [`Elementwise::visit`].
pub trait Visitor<L: Lane> {
    /// The result of the visit.
    type Output;
    /// The op takes one argument.
    fn unary(self, f: impl Unary<L>) -> Self::Output;
    /// The op takes two arguments.
    fn binary(self, f: impl Binary<L>) -> Self::Output;
    /// The op takes three arguments.
    fn ternary(self, f: impl Ternary<L>) -> Self::Output;
}

/// The kind of result of an elementwise op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// A number that depends smoothly on the arguments, almost everywhere.
    Smooth,
    /// A number whose derivative is zero wherever it has one.
    Step,
    /// A truth value: 1 or 0 in a kernel, a boolean array otherwise.
    Truth,
}

/// A column of the table: a property of some ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Attribute {
    /// The processor rounds the result correctly, so that all array libraries give the same bits.
    Exact = 1,
    /// [`math`] has vector code for the function, which may be faster than that of an array library.
    Vectorized = 2,
    /// The result is more accurate than NumPy's near the roots of the function.
    Precise = 4,
    /// Swapping the arguments gives the same bits.
    Commutative = 8,
    /// The result is the argument, if that is a real number.
    Identity = 16,
    /// An array library may give a view of the memory of the first argument. Whether [`Structured::Index`] does depends
    /// on its key.
    View = 32,
    /// Arguments may be objects that are not arrays, such as lists and None.
    AnyObject = 64,
    /// Numbers of binary32 are widened to binary64, in which the function is computed, and the result is rounded.
    Wide = 128,
    /// Numbers of binary32 are computed by a formula of many instructions.
    Long = 256,
}

macro_rules! operators {
    ($($variant:ident $name:literal;)*) => {
        /// The Python operator of an op.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "a row of the table says it")]
        pub enum Operator { $($variant),* }

        impl Operator {
            /// The name in Python's module `operator`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

operators! {
    Add "add";
    Subtract "sub";
    Multiply "mul";
    Divide "truediv";
    FloorDivide "floordiv";
    Remainder "mod";
    Power "pow";
    MatrixMultiply "matmul";
    Negative "neg";
    Positive "pos";
    Abs "abs";
    Less "lt";
    LessEqual "le";
    Greater "gt";
    GreaterEqual "ge";
    Equal "eq";
    NotEqual "ne";
}

macro_rules! operator {
    (-) => {
        None
    };
    ($operator:ident) => {
        Some(Operator::$operator)
    };
}

/// An enum of ops, with the columns that both tables have.
macro_rules! ops {
    ($(#[$doc:meta])* $ops:ident { $($variant:ident $name:literal $operator:tt [$($attribute:ident)*];)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "a row of the table says it")]
        #[repr(u8)]
        pub enum $ops { $($variant),* }

        impl $ops {
            /// Every op, in the order of the table.
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

            /// The Python operator of the op.
            #[must_use]
            pub const fn operator(self) -> Option<Operator> {
                match self { $(Self::$variant => operator!($operator)),* }
            }

            /// Whether the op has an attribute.
            #[must_use]
            pub const fn has(self, attribute: Attribute) -> bool {
                let attributes = match self { $(Self::$variant => 0 $(| Attribute::$attribute as u16)*),* };
                attributes & attribute as u16 != 0
            }
        }
    };
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
            const CODE: Code = Elementwise::$op.code();
            #[inline(always)]
            fn call(self, $($arg: L),+) -> L { $meaning }
        }
    };
    ($($variant:ident $name:literal ($($arg:ident)+) $kind:ident $operator:tt [$($attribute:ident)*] = $meaning:expr;)*) => {
        ops! {
            /// An elementwise op.
            Elementwise { $($variant $name $operator [$($attribute)*];)* }
        }

        /// The meaning of each elementwise op, as a type: the argument of the visitor of [`Elementwise::visit`].
        pub mod meaning {
            use super::{Binary, Code, Elementwise, Lane, Ternary, Unary, math};
            $(
                #[doc = concat!("The meaning of `", $name, "`.")]
                #[derive(Clone, Copy, Debug, Default)]
                pub struct $variant;
                elementwise_ops!(@meaning $variant $meaning, $($arg)+);
            )*
        }

        impl Elementwise {
            /// The number of arguments.
            #[must_use]
            pub const fn arity(self) -> usize {
                match self { $(Self::$variant => elementwise_ops!(@arity $($arg)+)),* }
            }

            /// The kind of result.
            #[must_use]
            pub const fn kind(self) -> ResultKind {
                match self { $(Self::$variant => ResultKind::$kind),* }
            }

            /// The code of its meaning.
            #[must_use]
            pub const fn code(self) -> Code {
                if self.has(Attribute::Wide) {
                    Code::Wide
                } else if self.has(Attribute::Long) || self.has(Attribute::Vectorized) {
                    Code::Long
                } else {
                    Code::Short
                }
            }

            /// Calls `visitor` with the meaning of this op, so that a loop over elements contains no dispatch.
            #[inline(always)]
            pub fn visit<L: Lane, V: Visitor<L>>(self, visitor: V) -> V::Output {
                match self {
                    $(Self::$variant => elementwise_ops!(@visit visitor $variant $($arg)+)),*
                }
            }
        }
    };
}

elementwise_ops! {
    // variant       name                args     kind   operator     attributes              meaning over lanes
    Add             "add"               (a b)    Smooth Add          [Exact Commutative]     = a.add(b);
    Subtract        "subtract"          (a b)    Smooth Subtract     [Exact]                 = a.sub(b);
    Multiply        "multiply"          (a b)    Smooth Multiply     [Exact Commutative]     = a.mul(b);
    Divide          "divide"            (a b)    Smooth Divide       [Exact]                 = a.div(b);
    Pow             "pow"               (a b)    Smooth Power        [Long]                  = math::pow(a, b);
    Remainder       "remainder"         (a b)    Smooth Remainder    [Wide]                  = math::remainder(a, b);
    Maximum         "maximum"           (a b)    Smooth -            []                      = math::maximum(a, b);
    Minimum         "minimum"           (a b)    Smooth -            []                      = math::minimum(a, b);
    Atan2           "atan2"             (a b)    Smooth -            [Wide]                  = math::atan2(a, b);
    Negative        "negative"          (a)      Smooth Negative     [Exact]                 = a.neg();
    Positive        "positive"          (a)      Smooth Positive     [Identity]              = a;
    Abs             "abs"               (a)      Smooth Abs          []                      = a.abs();
    Square          "square"            (a)      Smooth -            [Exact]                 = a.mul(a);
    Sqrt            "sqrt"              (a)      Smooth -            [Exact]                 = a.sqrt();
    Reciprocal      "reciprocal"        (a)      Smooth -            [Exact]                 = L::one().div(a);
    Exp             "exp"               (a)      Smooth -            [Vectorized]            = math::exp(a);
    Expm1           "expm1"             (a)      Smooth -            [Vectorized]            = math::expm1(a);
    Log             "log"               (a)      Smooth -            [Vectorized]            = math::log(a);
    Log1p           "log1p"             (a)      Smooth -            [Vectorized]            = math::log1p(a);
    Sin             "sin"               (a)      Smooth -            [Vectorized]            = math::sin(a);
    Cos             "cos"               (a)      Smooth -            [Vectorized]            = math::cos(a);
    Tan             "tan"               (a)      Smooth -            [Vectorized]            = math::tan(a);
    Tanh            "tanh"              (a)      Smooth -            [Vectorized]            = math::tanh(a);
    Sinh            "sinh"              (a)      Smooth -            [Vectorized]            = math::sinh(a);
    Cosh            "cosh"              (a)      Smooth -            [Vectorized]            = math::cosh(a);
    Asin            "asin"              (a)      Smooth -            [Wide]                  = math::asin(a);
    Acos            "acos"              (a)      Smooth -            [Wide]                  = math::acos(a);
    Atan            "atan"              (a)      Smooth -            [Vectorized]            = math::atan(a);
    Asinh           "asinh"             (a)      Smooth -            [Wide]                  = math::asinh(a);
    Acosh           "acosh"             (a)      Smooth -            [Wide]                  = math::acosh(a);
    Atanh           "atanh"             (a)      Smooth -            [Wide]                  = math::atanh(a);
    Log2            "log2"              (a)      Smooth -            [Vectorized]            = math::log2(a);
    Log10           "log10"             (a)      Smooth -            [Wide]                  = math::log10(a);
    Hypot           "hypot"             (a b)    Smooth -            [Wide]                  = math::hypot(a, b);
    LogAddExp       "logaddexp"         (a b)    Smooth -            [Precise Long]          = math::logaddexp(a, b);
    LogAddExp2      "logaddexp2"        (a b)    Smooth -            [Precise Wide]          = math::logaddexp2(a, b);
    RootOrZero      "root_or_zero"      (a)      Smooth -            [Exact]                 = a.sqrt();
    ModulusSlope    "modulus_slope"     (a b c)  Smooth -            []                      = a.mul(L::select(c.eq(L::zero()), L::zero(), b.div(c)));
    Cbrt            "cbrt"              (a)      Smooth -            [Wide]                  = math::cbrt(a);
    Expit           "expit"             (a)      Smooth -            [Vectorized]            = math::expit(a);
    Erf             "erf"               (a)      Smooth -            [Vectorized]            = math::erf(a);
    Erfc            "erfc"              (a)      Smooth -            [Wide]                  = math::erfc(a);
    ErfInv          "erfinv"            (a)      Smooth -            [Wide]                  = math::erfinv(a);
    ErfcInv         "erfcinv"           (a)      Smooth -            [Wide]                  = math::erfcinv(a);
    Beta            "beta"              (a b)    Smooth -            [Wide]                  = math::beta(a, b);
    BetaLn          "betaln"            (a b)    Smooth -            [Wide]                  = math::betaln(a, b);
    Gamma           "gamma"             (a)      Smooth -            [Wide]                  = math::gamma(a);
    GammaLn         "gammaln"           (a)      Smooth -            [Wide]                  = math::gammaln(a);
    Digamma         "digamma"           (a)      Smooth -            [Wide]                  = math::digamma(a);
    Polygamma       "polygamma"         (a b)    Smooth -            [Wide]                  = math::polygamma(a, b);
    Jn              "jn"                (a b)    Smooth -            [Wide]                  = math::jn(a, b);
    Yn              "yn"                (a b)    Smooth -            [Wide]                  = math::yn(a, b);
    Iv              "iv"                (a b)    Smooth -            [Wide]                  = math::iv(a, b);
    GammaInc        "gammainc"          (a b)    Smooth -            [Wide]                  = math::gammainc(a, b);
    GammaIncC       "gammaincc"         (a b)    Smooth -            [Wide]                  = math::gammaincc(a, b);
    GammaIncA       "gammainc_a"        (a b)    Smooth -            [Wide]                  = math::gammainc_a(a, b);
    BetaInc         "betainc"           (a b c)  Smooth -            [Wide]                  = math::betainc(a, b, c);
    BetaIncA        "betainc_a"         (a b c)  Smooth -            [Wide]                  = math::betainc_a(a, b, c);
    BetaIncB        "betainc_b"         (a b c)  Smooth -            [Wide]                  = math::betainc_b(a, b, c);
    BetaIncAA       "betainc_aa"        (a b c)  Smooth -            [Wide]                  = math::betainc_aa(a, b, c);
    BetaIncAB       "betainc_ab"        (a b c)  Smooth -            [Wide]                  = math::betainc_ab(a, b, c);
    BetaIncBB       "betainc_bb"        (a b c)  Smooth -            [Wide]                  = math::betainc_bb(a, b, c);
    Where           "where"             (c a b)  Smooth -            []                      = L::select(c.ne(L::zero()), a, b);
    Real            "real"              (a)      Smooth -            [Identity View]         = a;
    Imag            "imag"              (a)      Smooth -            [View]                  = { let _ = a; L::zero() };
    Conj            "conj"              (a)      Smooth -            [Identity View]         = a;
    RoundToBfloat16 "round_to_bfloat16" (a)      Smooth -            []                      = a.to_bfloat16();
    RoundToFloat16  "round_to_float16"  (a)      Smooth -            []                      = a.to_float16();
    Sign            "sign"              (a)      Step   -            []                      = math::sign(a);
    Floor           "floor"             (a)      Step   -            []                      = a.floor();
    Ceil            "ceil"              (a)      Step   -            []                      = a.neg().floor().neg();
    Trunc           "trunc"             (a)      Step   -            []                      = math::trunc(a);
    Round           "round"             (a)      Step   -            []                      = math::round(a);
    FloorDivide     "floor_divide"      (a b)    Step   FloorDivide  [Wide]                  = math::floor_divide(a, b);
    Less            "less"              (a b)    Truth  Less         []                      = L::truth(a.lt(b));
    LessEqual       "less_equal"        (a b)    Truth  LessEqual    []                      = L::truth(a.le(b));
    Greater         "greater"           (a b)    Truth  Greater      []                      = L::truth(b.lt(a));
    GreaterEqual    "greater_equal"     (a b)    Truth  GreaterEqual []                      = L::truth(b.le(a));
    Equal           "equal"             (a b)    Truth  Equal        [Commutative AnyObject] = L::truth(a.eq(b));
    NotEqual        "not_equal"         (a b)    Truth  NotEqual     [Commutative AnyObject] = L::truth(a.ne(b));
    LogicalAnd      "logical_and"       (a b)    Truth  -            [Commutative]           = L::select(a.ne(L::zero()), L::truth(b.ne(L::zero())), L::zero());
    LogicalOr       "logical_or"        (a b)    Truth  -            [Commutative]           = L::select(a.ne(L::zero()), L::one(), L::truth(b.ne(L::zero())));
    LogicalXor      "logical_xor"       (a b)    Truth  -            [Commutative]           = L::truth(L::truth(a.ne(L::zero())).ne(L::truth(b.ne(L::zero()))));
    LogicalNot      "logical_not"       (a)      Truth  -            []                      = L::truth(a.eq(L::zero()));
    IsNan           "isnan"             (a)      Truth  -            []                      = L::truth(a.ne(a));
    IsFinite        "isfinite"          (a)      Truth  -            []                      = L::truth(a.sub(a).eq(L::zero()));
    IsInf           "isinf"             (a)      Truth  -            []                      = L::truth(a.abs().eq(L::splat(f64::INFINITY)));
}

macro_rules! structured_ops {
    ($($variant:ident $name:literal [$arity:expr] $operator:tt [$($attribute:ident)*];)*) => {
        ops! {
            /// An op that moves, reduces or contracts whole arrays, computed by the array library.
            Structured { $($variant $name $operator [$($attribute)*];)* }
        }

        impl Structured {
            /// The number of array arguments; `None` for any number.
            #[must_use]
            pub const fn arity(self) -> Option<usize> {
                match self { $(Self::$variant => $arity),* }
            }
        }
    };
}

structured_ops! {
    // variant       name               arguments  operator        attributes
    Sum             "sum"               [Some(1)]  -               [];
    Mean            "mean"              [Some(1)]  -               [];
    Max             "max"               [Some(1)]  -               [];
    Min             "min"               [Some(1)]  -               [];
    CumulativeSum   "cumulative_sum"    [Some(1)]  -               [];
    Flip            "flip"              [Some(1)]  -               [View];
    Matmul          "matmul"            [Some(2)]  MatrixMultiply  [];
    Reshape         "reshape"           [Some(1)]  -               [View];
    PermuteDims     "permute_dims"      [Some(1)]  -               [View];
    ExpandDims      "expand_dims"       [Some(1)]  -               [View];
    Squeeze         "squeeze"           [Some(1)]  -               [View];
    BroadcastTo     "broadcast_to"      [Some(1)]  -               [View];
    Concat          "concat"            [None]     -               [];
    Stack           "stack"             [None]     -               [];
    Astype          "astype"            [Some(1)]  -               [];
    TakeAlongAxis   "take_along_axis"   [Some(1)]  -               [];
    Index           "index"             [Some(1)]  -               [View];
    ScatterAdd      "scatter_add"       [Some(1)]  -               [];
    Call            "call"              [None]     -               [AnyObject];
    Item            "item"              [Some(1)]  -               [AnyObject];
    Inv             "inv"               [Some(1)]  -               [];
    Solve           "solve"             [Some(2)]  -               [];
    Cholesky        "cholesky"          [Some(1)]  -               [];
    Qr              "qr"                [Some(1)]  -               [];
    Svd             "svd"               [Some(1)]  -               [];
    Eigh            "eigh"              [Some(1)]  -               [];
    Eig             "eig"               [Some(1)]  -               [];
    Det             "det"               [Some(1)]  -               [];
    Cofactor        "cofactor"          [None]     -               [];
    Slogdet         "slogdet"           [Some(1)]  -               [];
    Sqrtm           "sqrtm"             [Some(1)]  -               [];
    Pinv            "pinv"              [Some(1)]  -               [];
    VectorNorm      "vector_norm"       [Some(1)]  -               [];
    Kink            "kink"              [Some(1)]  -               [];
    Fftn            "fftn"              [Some(1)]  -               [];
    Ifftn           "ifftn"             [Some(1)]  -               [];
    Rfft            "rfft"              [Some(1)]  -               [];
    Irfft           "irfft"             [Some(1)]  -               [];
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// An elementwise op, which has a scalar meaning and runs in kernels.
    Elementwise(Elementwise),
    /// A structured op, which the array library computes.
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

    /// The number of array arguments; `None` for any number.
    #[must_use]
    pub const fn arity(self) -> Option<usize> {
        match self {
            Self::Elementwise(op) => Some(op.arity()),
            Self::Structured(op) => op.arity(),
        }
    }

    /// The Python operator of the op.
    #[must_use]
    pub const fn operator(self) -> Option<Operator> {
        match self {
            Self::Elementwise(op) => op.operator(),
            Self::Structured(op) => op.operator(),
        }
    }

    /// Whether the op has an attribute.
    #[must_use]
    pub const fn has(self, attribute: Attribute) -> bool {
        match self {
            Self::Elementwise(op) => op.has(attribute),
            Self::Structured(op) => op.has(attribute),
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

    /// The index of the op in the table.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Elementwise(op) => op as usize,
            Self::Structured(op) => Elementwise::ALL.len() + op as usize,
        }
    }
}
