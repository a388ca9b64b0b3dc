//! Logarithms.

use super::parts::{LN2, Single};
use crate::simd::functions::parts::{Parted, log_limits, log_parts, parted, polynomial};
use crate::simd::lane::power_of_two;

/// 1 / ln 2, and the rest of it.
const LOG2_E: [f64; 2] = [1.442_695_021_629_333_5, 1.925_963_033_500_117_2e-8];

/// `(log(1 + f) - f + f^2 / 2) / f^3`, by the error of the logarithm: 2^-27.2 of it. All coefficients are rounded at once.
#[inline(always)]
fn log_series<L: Single>(f: L) -> L {
    polynomial(
        f,
        [
            3.333_333_135e-1,
            -2.500_081_956e-1,
            2.000_122_666e-1,
            -1.662_335_843e-1,
            1.420_176_029e-1,
            -1.316_018_105e-1,
            1.276_156_455e-1,
            -7.634_486_258e-2,
        ],
    )
}

/// k ln 2 + log(1 + f) + c, where `c` is small.
#[inline(always)]
fn log_sum<L: Single>(k: L, f: L, c: L) -> L {
    let square = f.mul(f);
    let half_square = square.mul(L::splat(0.5));
    let rest = f.mul(square).mul_add(log_series(f), k.mul_add(L::splat(LN2[1]), c));
    k.mul_add(L::splat(LN2[0]), f.sub(half_square.sub(rest)))
}

/// Natural logarithm.
#[inline(always)]
pub fn log<L: Single>(x: L) -> L {
    let (k, f) = log_parts(x);
    log_limits(x, log_sum(k, f, L::zero()))
}

/// Natural logarithm of one plus `x`.
#[inline(always)]
pub fn log1p<L: Single>(x: L) -> L {
    let sum = x.add(L::one());
    let Parted { k, exponent, .. } = parted(sum);
    // 2^-k (1 + x) - 1 and what it lost, of which `x` rather than its rounded sum is the source.
    let scaled = L::from_bits(L::bits_sub(x.to_bits(), exponent));
    let less = power_of_two(k.neg().at_least(L::splat(-126.0))).sub(L::one());
    let f = scaled.add(less);
    let log = log_sum(k, f, scaled.sub(f.sub(less)));
    L::select(x.abs().lt(L::splat(1e-9)), x, log_limits(sum, log))
}

/// Logarithm to base 2.
#[inline(always)]
pub fn log2<L: Single>(x: L) -> L {
    let (k, f) = log_parts(x);
    // The product of `f` and 1 / ln 2 and that of the square, what they lost, and the rest of the series.
    let [factor, more] = LOG2_E.map(|part| L::splat(part));
    let (square, half) = (f.mul(f), L::splat(-0.5 * std::f64::consts::LOG2_E));
    let product = f.mul(factor);
    let lost = f.mul_add(more, f.mul_add(factor, product.neg()));
    let near = square.mul_add(half, product);
    let lost = square.mul_add(half, product.sub(near)).add(lost);
    let rest = f.mul(square).mul_add(log_series(f).mul(factor), lost);
    let sum = k.add(near);
    log_limits(x, sum.add(k.sub(sum).add(near).add(rest)))
}
