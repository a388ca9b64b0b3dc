//! The table of operations, one row for each op, and the only list of them. Properties of some ops are [`Attribute`]s
//! in the table. Names are those of the Array API standard. An elementwise op defines its meaning once, over [`Lane`]:
//! the scalar lane computes the op on numbers, the wide lanes run it in kernels, so that every executor gives the same
//! bits.

#[macro_use]
mod columns;

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
    /// The same as [`Attribute::Vectorized`] where the first argument is a number of Python.
    VectorizedOfNumber = 512,
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

elementwise_ops! {
    // variant       name                args     kind   operator     attributes              meaning over lanes
    /// The sum of each pair of elements: ``x1 + x2``.
    Add             "add"               (a b)    Smooth Add          [Exact Commutative]     = a.add(b);
    /// The difference of each pair of elements: ``x1 - x2``.
    Subtract        "subtract"          (a b)    Smooth Subtract     [Exact]                 = a.sub(b);
    /// The product of each pair of elements: ``x1 * x2``.
    Multiply        "multiply"          (a b)    Smooth Multiply     [Exact Commutative]     = a.mul(b);
    /// The quotient of each pair of elements: ``x1 / x2``.
    Divide          "divide"            (a b)    Smooth Divide       [Exact]                 = a.div(b);
    /// Each element of ``x1`` to the power of that of ``x2``: ``x1 ** x2``.
    Pow             "pow"               (a b)    Smooth Power        [Long VectorizedOfNumber] = math::pow(a, b);
    /// The remainder of the division of each pair of elements, with the sign of ``x2``: ``x1 % x2``.
    Remainder       "remainder"         (a b)    Smooth Remainder    [Wide]                  = math::remainder(a, b);
    /// The larger of each pair of elements; equal elements share the gradient evenly.
    Maximum         "maximum"           (a b)    Smooth -            []                      = math::maximum(a, b);
    /// The smaller of each pair of elements; equal elements share the gradient evenly.
    Minimum         "minimum"           (a b)    Smooth -            []                      = math::minimum(a, b);
    /// The angle in radians, between -pi and pi, of each point with the ordinate ``x1`` and the abscissa ``x2``.
    Atan2           "atan2"             (a b)    Smooth -            [Wide]                  = math::atan2(a, b);
    /// The negative of each element: ``-x``.
    Negative        "negative"          (a)      Smooth Negative     [Exact]                 = a.neg();
    /// Each element itself: ``+x``.
    Positive        "positive"          (a)      Smooth Positive     [Identity]              = a;
    /// The absolute value of each element; its gradient at zero is zero.
    Abs             "abs"               (a)      Smooth Abs          []                      = a.abs();
    /// The square of each element.
    Square          "square"            (a)      Smooth -            [Exact]                 = a.mul(a);
    /// The square root of each element.
    Sqrt            "sqrt"              (a)      Smooth -            [Exact]                 = a.sqrt();
    /// The reciprocal of each element: ``1 / x``.
    Reciprocal      "reciprocal"        (a)      Smooth -            [Exact]                 = L::one().div(a);
    /// The exponential function of each element.
    Exp             "exp"               (a)      Smooth -            [Vectorized]            = math::exp(a);
    /// ``exp(x) - 1`` of each element, accurate near zero.
    Expm1           "expm1"             (a)      Smooth -            [Vectorized]            = math::expm1(a);
    /// The natural logarithm of each element.
    Log             "log"               (a)      Smooth -            [Vectorized]            = math::log(a);
    /// ``log(1 + x)`` of each element, accurate near zero.
    Log1p           "log1p"             (a)      Smooth -            [Vectorized]            = math::log1p(a);
    /// The sine of each element, an angle in radians.
    Sin             "sin"               (a)      Smooth -            [Vectorized]            = math::sin(a);
    /// The cosine of each element, an angle in radians.
    Cos             "cos"               (a)      Smooth -            [Vectorized]            = math::cos(a);
    /// The tangent of each element, an angle in radians.
    Tan             "tan"               (a)      Smooth -            [Vectorized]            = math::tan(a);
    /// The hyperbolic tangent of each element.
    Tanh            "tanh"              (a)      Smooth -            [Vectorized]            = math::tanh(a);
    /// The hyperbolic sine of each element.
    Sinh            "sinh"              (a)      Smooth -            [Vectorized]            = math::sinh(a);
    /// The hyperbolic cosine of each element.
    Cosh            "cosh"              (a)      Smooth -            [Vectorized]            = math::cosh(a);
    /// The inverse sine of each element, between -pi/2 and pi/2.
    Asin            "asin"              (a)      Smooth -            [Wide]                  = math::asin(a);
    /// The inverse cosine of each element, between 0 and pi.
    Acos            "acos"              (a)      Smooth -            [Wide]                  = math::acos(a);
    /// The inverse tangent of each element, between -pi/2 and pi/2.
    Atan            "atan"              (a)      Smooth -            [Vectorized]            = math::atan(a);
    /// The inverse hyperbolic sine of each element.
    Asinh           "asinh"             (a)      Smooth -            [Wide]                  = math::asinh(a);
    /// The inverse hyperbolic cosine of each element.
    Acosh           "acosh"             (a)      Smooth -            [Wide]                  = math::acosh(a);
    /// The inverse hyperbolic tangent of each element.
    Atanh           "atanh"             (a)      Smooth -            [Wide]                  = math::atanh(a);
    /// The logarithm to base 2 of each element.
    Log2            "log2"              (a)      Smooth -            [Vectorized]            = math::log2(a);
    /// The logarithm to base 10 of each element.
    Log10           "log10"             (a)      Smooth -            [Wide]                  = math::log10(a);
    /// ``sqrt(x1**2 + x2**2)`` of each pair of elements, without overflow.
    Hypot           "hypot"             (a b)    Smooth -            [Wide]                  = math::hypot(a, b);
    /// ``log(exp(x1) + exp(x2))`` of each pair of elements, without overflow.
    LogAddExp       "logaddexp"         (a b)    Smooth -            [Precise Long]          = math::logaddexp(a, b);
    /// ``log2(2**x1 + 2**x2)`` of each pair of elements, without overflow.
    LogAddExp2      "logaddexp2"        (a b)    Smooth -            [Precise Wide]          = math::logaddexp2(a, b);
    /// The square root of each element, of which the derivative at zero is zero.
    RootOrZero      "root_or_zero"      (a)      Smooth -            [Exact]                 = a.sqrt();
    /// ``x1 * x2 / x3`` of each triple of elements, zero where ``x3`` is zero.
    ModulusSlope    "modulus_slope"     (a b c)  Smooth -            []                      = a.mul(L::select(c.eq(L::zero()), L::zero(), b.div(c)));
    /// The cube root of each element.
    Cbrt            "cbrt"              (a)      Smooth -            [Wide]                  = math::cbrt(a);
    /// The logistic function ``1 / (1 + exp(-x))`` of each element.
    Expit           "expit"             (a)      Smooth -            [Vectorized]            = math::expit(a);
    /// The error function of each element.
    Erf             "erf"               (a)      Smooth -            [Vectorized]            = math::erf(a);
    /// The complementary error function ``1 - erf(x)`` of each element.
    Erfc            "erfc"              (a)      Smooth -            [Wide]                  = math::erfc(a);
    /// The inverse of the error function of each element.
    ErfInv          "erfinv"            (a)      Smooth -            [Wide]                  = math::erfinv(a);
    /// The inverse of the complementary error function of each element.
    ErfcInv         "erfcinv"           (a)      Smooth -            [Wide]                  = math::erfcinv(a);
    /// The beta function of each pair of elements.
    Beta            "beta"              (a b)    Smooth -            [Wide]                  = math::beta(a, b);
    /// The logarithm of the beta function of each pair of elements.
    BetaLn          "betaln"            (a b)    Smooth -            [Wide]                  = math::betaln(a, b);
    /// The gamma function of each element.
    Gamma           "gamma"             (a)      Smooth -            [Wide]                  = math::gamma(a);
    /// The logarithm of the absolute value of the gamma function of each element.
    GammaLn         "gammaln"           (a)      Smooth -            [Wide]                  = math::gammaln(a);
    /// The derivative of the logarithm of the gamma function at each element.
    Digamma         "digamma"           (a)      Smooth -            [Wide]                  = math::digamma(a);
    /// The derivative of order ``x1`` of the digamma function at each element of ``x2``.
    Polygamma       "polygamma"         (a b)    Smooth -            [Wide]                  = math::polygamma(a, b);
    /// The Bessel function of the first kind of integer order ``x1`` at each element of ``x2``.
    Jn              "jn"                (a b)    Smooth -            [Wide]                  = math::jn(a, b);
    /// The Bessel function of the second kind of integer order ``x1`` at each element of ``x2``.
    Yn              "yn"                (a b)    Smooth -            [Wide]                  = math::yn(a, b);
    /// The modified Bessel function of the first kind of order ``x1`` at each element of ``x2``.
    Iv              "iv"                (a b)    Smooth -            [Wide]                  = math::iv(a, b);
    /// The regularized lower incomplete gamma function with the parameter ``x1``, from 0 to ``x2``.
    GammaInc        "gammainc"          (a b)    Smooth -            [Wide]                  = math::gammainc(a, b);
    /// The regularized upper incomplete gamma function with the parameter ``x1``, from ``x2`` to infinity.
    GammaIncC       "gammaincc"         (a b)    Smooth -            [Wide]                  = math::gammaincc(a, b);
    /// The derivative of ``gammainc`` with respect to its parameter.
    GammaIncA       "gammainc_a"        (a b)    Smooth -            [Wide]                  = math::gammainc_a(a, b);
    /// The regularized incomplete beta function of parameters ``x1`` and ``x2`` at ``x3``.
    BetaInc         "betainc"           (a b c)  Smooth -            [Wide]                  = math::betainc(a, b, c);
    /// The derivative of ``betainc`` with respect to its first parameter.
    BetaIncA        "betainc_a"         (a b c)  Smooth -            [Wide]                  = math::betainc_a(a, b, c);
    /// The derivative of ``betainc`` with respect to its second parameter.
    BetaIncB        "betainc_b"         (a b c)  Smooth -            [Wide]                  = math::betainc_b(a, b, c);
    /// The second derivative of ``betainc`` with respect to its first parameter.
    BetaIncAA       "betainc_aa"        (a b c)  Smooth -            [Wide]                  = math::betainc_aa(a, b, c);
    /// The second derivative of ``betainc`` with respect to both parameters.
    BetaIncAB       "betainc_ab"        (a b c)  Smooth -            [Wide]                  = math::betainc_ab(a, b, c);
    /// The second derivative of ``betainc`` with respect to its second parameter.
    BetaIncBB       "betainc_bb"        (a b c)  Smooth -            [Wide]                  = math::betainc_bb(a, b, c);
    /// The element of ``x1`` where the condition is true, of ``x2`` elsewhere.
    Where           "where"             (c a b)  Smooth -            []                      = L::select(c.ne(L::zero()), a, b);
    /// The real part of each element.
    Real            "real"              (a)      Smooth -            [Identity View]         = a;
    /// The imaginary part of each element.
    Imag            "imag"              (a)      Smooth -            [View]                  = { let _ = a; L::zero() };
    /// The complex conjugate of each element.
    Conj            "conj"              (a)      Smooth -            [Identity View]         = a;
    /// Each element rounded to the nearest number of bfloat16.
    RoundToBfloat16 "round_to_bfloat16" (a)      Smooth -            []                      = a.to_bfloat16();
    /// Each element rounded to the nearest number of float16.
    RoundToFloat16  "round_to_float16"  (a)      Smooth -            []                      = a.to_float16();
    /// The sign of each element, -1, 0 or 1; ``x / abs(x)`` of complex numbers.
    Sign            "sign"              (a)      Step   -            []                      = math::sign(a);
    /// The largest integer that is not above each element.
    Floor           "floor"             (a)      Step   -            []                      = a.floor();
    /// The smallest integer that is not below each element.
    Ceil            "ceil"              (a)      Step   -            []                      = a.neg().floor().neg();
    /// Each element rounded to an integer towards zero.
    Trunc           "trunc"             (a)      Step   -            []                      = math::trunc(a);
    /// Each element rounded to the nearest integer, halves to even ones.
    Round           "round"             (a)      Step   -            []                      = math::round(a);
    /// The largest integer that is not above the quotient of each pair of elements: ``x1 // x2``.
    FloorDivide     "floor_divide"      (a b)    Step   FloorDivide  [Wide]                  = math::floor_divide(a, b);
    /// Whether ``x1 < x2``, for each pair of elements.
    Less            "less"              (a b)    Truth  Less         []                      = L::truth(a.lt(b));
    /// Whether ``x1 <= x2``, for each pair of elements.
    LessEqual       "less_equal"        (a b)    Truth  LessEqual    []                      = L::truth(a.le(b));
    /// Whether ``x1 > x2``, for each pair of elements.
    Greater         "greater"           (a b)    Truth  Greater      []                      = L::truth(b.lt(a));
    /// Whether ``x1 >= x2``, for each pair of elements.
    GreaterEqual    "greater_equal"     (a b)    Truth  GreaterEqual []                      = L::truth(b.le(a));
    /// Whether ``x1 == x2``, for each pair of elements.
    Equal           "equal"             (a b)    Truth  Equal        [Commutative AnyObject] = L::truth(a.eq(b));
    /// Whether ``x1 != x2``, for each pair of elements.
    NotEqual        "not_equal"         (a b)    Truth  NotEqual     [Commutative AnyObject] = L::truth(a.ne(b));
    /// Whether both elements of each pair are true.
    LogicalAnd      "logical_and"       (a b)    Truth  -            [Commutative]           = L::select(a.ne(L::zero()), L::truth(b.ne(L::zero())), L::zero());
    /// Whether at least one element of each pair is true.
    LogicalOr       "logical_or"        (a b)    Truth  -            [Commutative]           = L::select(a.ne(L::zero()), L::one(), L::truth(b.ne(L::zero())));
    /// Whether exactly one element of each pair is true.
    LogicalXor      "logical_xor"       (a b)    Truth  -            [Commutative]           = L::truth(L::truth(a.ne(L::zero())).ne(L::truth(b.ne(L::zero()))));
    /// Whether each element is false.
    LogicalNot      "logical_not"       (a)      Truth  -            []                      = L::truth(a.eq(L::zero()));
    /// Whether each element is NaN.
    IsNan           "isnan"             (a)      Truth  -            []                      = L::truth(a.ne(a));
    /// Whether each element is finite: neither NaN nor infinite.
    IsFinite        "isfinite"          (a)      Truth  -            []                      = L::truth(a.sub(a).eq(L::zero()));
    /// Whether each element is infinite.
    IsInf           "isinf"             (a)      Truth  -            []                      = L::truth(a.abs().eq(L::splat(f64::INFINITY)));
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
