//! The docstrings of the elementwise ops.

use oxigrad_core::op::Elementwise;

/// The docstring of an elementwise op: a sentence.
pub const fn description(op: Elementwise) -> &'static str {
    match op {
        Elementwise::Add => "The sum of each pair of elements: ``x1 + x2``.",
        Elementwise::Subtract => "The difference of each pair of elements: ``x1 - x2``.",
        Elementwise::Multiply => "The product of each pair of elements: ``x1 * x2``.",
        Elementwise::Divide => "The quotient of each pair of elements: ``x1 / x2``.",
        Elementwise::Pow => "Each element of ``x1`` to the power of that of ``x2``: ``x1 ** x2``.",
        Elementwise::Remainder => {
            "The remainder of the division of each pair of elements, with the sign of ``x2``: ``x1 % x2``."
        }
        Elementwise::Maximum => "The larger of each pair of elements; equal elements share the gradient evenly.",
        Elementwise::Minimum => "The smaller of each pair of elements; equal elements share the gradient evenly.",
        Elementwise::Atan2 => {
            "The angle in radians, between -pi and pi, of each point with the ordinate ``x1`` and the abscissa ``x2``."
        }
        Elementwise::Negative => "The negative of each element: ``-x``.",
        Elementwise::Positive => "Each element itself: ``+x``.",
        Elementwise::Abs => "The absolute value of each element; its gradient at zero is zero.",
        Elementwise::Square => "The square of each element.",
        Elementwise::Sqrt => "The square root of each element.",
        Elementwise::Reciprocal => "The reciprocal of each element: ``1 / x``.",
        Elementwise::Exp => "The exponential function of each element.",
        Elementwise::Expm1 => "``exp(x) - 1`` of each element, accurate near zero.",
        Elementwise::Log => "The natural logarithm of each element.",
        Elementwise::Log1p => "``log(1 + x)`` of each element, accurate near zero.",
        Elementwise::Sin => "The sine of each element, an angle in radians.",
        Elementwise::Cos => "The cosine of each element, an angle in radians.",
        Elementwise::Tan => "The tangent of each element, an angle in radians.",
        Elementwise::Tanh => "The hyperbolic tangent of each element.",
        Elementwise::Sinh => "The hyperbolic sine of each element.",
        Elementwise::Cosh => "The hyperbolic cosine of each element.",
        Elementwise::Asin => "The inverse sine of each element, between -pi/2 and pi/2.",
        Elementwise::Acos => "The inverse cosine of each element, between 0 and pi.",
        Elementwise::Atan => "The inverse tangent of each element, between -pi/2 and pi/2.",
        Elementwise::Asinh => "The inverse hyperbolic sine of each element.",
        Elementwise::Acosh => "The inverse hyperbolic cosine of each element.",
        Elementwise::Atanh => "The inverse hyperbolic tangent of each element.",
        Elementwise::Log2 => "The logarithm to base 2 of each element.",
        Elementwise::Log10 => "The logarithm to base 10 of each element.",
        Elementwise::Hypot => "``sqrt(x1**2 + x2**2)`` of each pair of elements, without overflow.",
        Elementwise::RootOrZero => "The square root of each element, of which the derivative at zero is zero.",
        Elementwise::ModulusSlope => "``x1 * x2 / x3`` of each triple of elements, zero where ``x3`` is zero.",
        Elementwise::LogAddExp => "``log(exp(x1) + exp(x2))`` of each pair of elements, without overflow.",
        Elementwise::LogAddExp2 => "``log2(2**x1 + 2**x2)`` of each pair of elements, without overflow.",
        Elementwise::Cbrt => "The cube root of each element.",
        Elementwise::Expit => "The logistic function ``1 / (1 + exp(-x))`` of each element.",
        Elementwise::Erf => "The error function of each element.",
        Elementwise::Erfc => "The complementary error function ``1 - erf(x)`` of each element.",
        Elementwise::ErfInv => "The inverse of the error function of each element.",
        Elementwise::ErfcInv => "The inverse of the complementary error function of each element.",
        Elementwise::Beta => "The beta function of each pair of elements.",
        Elementwise::BetaLn => "The logarithm of the beta function of each pair of elements.",
        Elementwise::Gamma => "The gamma function of each element.",
        Elementwise::GammaLn => "The logarithm of the absolute value of the gamma function of each element.",
        Elementwise::Digamma => "The derivative of the logarithm of the gamma function at each element.",
        Elementwise::Polygamma => "The derivative of order ``x1`` of the digamma function at each element of ``x2``.",
        Elementwise::Jn => "The Bessel function of the first kind of integer order ``x1`` at each element of ``x2``.",
        Elementwise::Yn => "The Bessel function of the second kind of integer order ``x1`` at each element of ``x2``.",
        Elementwise::Iv => "The modified Bessel function of the first kind of order ``x1`` at each element of ``x2``.",
        Elementwise::GammaInc => {
            "The regularized lower incomplete gamma function with the parameter ``x1``, from 0 to ``x2``."
        }
        Elementwise::GammaIncC => {
            "The regularized upper incomplete gamma function with the parameter ``x1``, from ``x2`` to infinity."
        }
        Elementwise::GammaIncA => "The derivative of ``gammainc`` with respect to its parameter.",
        Elementwise::BetaInc => "The regularized incomplete beta function of parameters ``x1`` and ``x2`` at ``x3``.",
        Elementwise::BetaIncA => "The derivative of ``betainc`` with respect to its first parameter.",
        Elementwise::BetaIncB => "The derivative of ``betainc`` with respect to its second parameter.",
        Elementwise::BetaIncAA => "The second derivative of ``betainc`` with respect to its first parameter.",
        Elementwise::BetaIncAB => "The second derivative of ``betainc`` with respect to both parameters.",
        Elementwise::BetaIncBB => "The second derivative of ``betainc`` with respect to its second parameter.",
        Elementwise::Where => "The element of ``x1`` where the condition is true, of ``x2`` elsewhere.",
        Elementwise::Real => "The real part of each element.",
        Elementwise::Imag => "The imaginary part of each element.",
        Elementwise::Conj => "The complex conjugate of each element.",
        Elementwise::RoundToBfloat16 => "Each element rounded to the nearest number of bfloat16.",
        Elementwise::RoundToFloat16 => "Each element rounded to the nearest number of float16.",
        Elementwise::Sign => "The sign of each element, -1, 0 or 1; ``x / abs(x)`` of complex numbers.",
        Elementwise::Floor => "The largest integer that is not above each element.",
        Elementwise::Ceil => "The smallest integer that is not below each element.",
        Elementwise::Trunc => "Each element rounded to an integer towards zero.",
        Elementwise::Round => "Each element rounded to the nearest integer, halves to even ones.",
        Elementwise::FloorDivide => {
            "The largest integer that is not above the quotient of each pair of elements: ``x1 // x2``."
        }
        Elementwise::Less => "Whether ``x1 < x2``, for each pair of elements.",
        Elementwise::LessEqual => "Whether ``x1 <= x2``, for each pair of elements.",
        Elementwise::Greater => "Whether ``x1 > x2``, for each pair of elements.",
        Elementwise::GreaterEqual => "Whether ``x1 >= x2``, for each pair of elements.",
        Elementwise::Equal => "Whether ``x1 == x2``, for each pair of elements.",
        Elementwise::NotEqual => "Whether ``x1 != x2``, for each pair of elements.",
        Elementwise::LogicalAnd => "Whether both elements of each pair are true.",
        Elementwise::LogicalOr => "Whether at least one element of each pair is true.",
        Elementwise::LogicalXor => "Whether exactly one element of each pair is true.",
        Elementwise::LogicalNot => "Whether each element is false.",
        Elementwise::IsNan => "Whether each element is NaN.",
        Elementwise::IsFinite => "Whether each element is finite: neither NaN nor infinite.",
        Elementwise::IsInf => "Whether each element is infinite.",
    }
}
