//! Sums along axes and of rows by their indices, and products of narrow matrices: comparison with plain loops, and reproducible bits.

use super::random_cases;
use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::array::matmul::{Factor, Product};
use oxigrad_core::array::scatter::Scatter;
use oxigrad_core::array::sum::{self, Axes};
use oxigrad_core::error::Error;
use oxigrad_core::simd::Element;
use oxigrad_core::simd::dispatch::Isa;
use oxigrad_core::simd::noise::uniform;
use proptest::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Numbers without a pattern, in (-1, 1).
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let number = |i: usize| 2.0 * f64::from(uniform(seed, 0, i as u64)) - 1.0;
    (0..count).map(number).collect()
}

fn bytes(dtype: Dtype, numbers: &[f64]) -> Vec<u8> {
    let single = |number: &f64| <f32 as Element>::from_f64(*number).to_ne_bytes().to_vec();
    let double = |number: &f64| number.to_ne_bytes().to_vec();
    numbers.iter().flat_map(|number| if dtype == Dtype::F32 { single(number) } else { double(number) }).collect()
}

fn read(dtype: Dtype, bytes: &[u8]) -> Vec<f64> {
    let number = |chunk: &[u8]| match dtype {
        Dtype::F32 => f64::from(f32::from_ne_bytes(chunk.try_into().expect("four bytes"))),
        _ => f64::from_ne_bytes(chunk.try_into().expect("eight bytes")),
    };
    bytes.chunks_exact(dtype.size()).map(number).collect()
}

fn buffer(bytes: &mut [u8], dtype: Dtype) -> Buffer {
    Buffer::contiguous(bytes.as_mut_ptr(), bytes.len() / dtype.size(), dtype, true).expect("it lies in memory")
}

fn pool() -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(3).build().expect("threads can be made")
}

fn sums(from: &mut [u8], dtype: Dtype, axes: Axes, divisor: f64, isa: Isa, pool: Option<&ThreadPool>) -> Vec<u8> {
    let mut to = vec![0xff; axes.outer * axes.inner * dtype.size()];
    // SAFETY: both lie in memory of ours, apart.
    unsafe { sum::sum(&buffer(from, dtype), &buffer(&mut to, dtype), axes, divisor, isa, pool) }.expect("they fit");
    to
}

proptest! {
    #![proptest_config(random_cases(200))]

    #[test]
    fn sums_are_those_of_a_loop_and_the_same_bits_on_any_instruction_set(
        outer in 0usize..5, count in 0usize..200, inner in 0usize..150, single: bool, seed: u64,
    ) {
        let axes = Axes { outer, count, inner };
        let dtype = if single { Dtype::F32 } else { Dtype::F64 };
        let mut from = bytes(dtype, &numbers(outer * count * inner, seed));
        let given = read(dtype, &from);
        let first = sums(&mut from, dtype, axes, 4.0, Isa::SCALAR, None);
        for isa in Isa::available() {
            prop_assert_eq!(&sums(&mut from, dtype, axes, 4.0, isa, None), &first);
        }
        for (at, sum) in read(dtype, &first).into_iter().enumerate() {
            let term = |k: usize| given[(at / inner * count + k) * inner + at % inner];
            let expected = (0..count).map(term).sum::<f64>() / 4.0;
            let tolerance = if single { 1e-6 * (1.0 + expected.abs()) } else { 1e-11 };
            prop_assert!((sum - expected).abs() <= tolerance, "{} is not {}", sum, expected);
        }
    }

    #[test]
    fn rows_are_added_in_the_order_of_their_indices_or_none_is(
        outer in 0usize..4, extents in prop::collection::vec(1usize..5, 1..4), inner in 0usize..4, count in 0usize..9,
        wrong in 0usize..12, seed: u64,
    ) {
        let total: usize = extents.iter().product();
        let index = |axis: usize, at: usize, extent: usize| {
            let extent = i64::try_from(extent).expect("it is small");
            let drawn = i64::from((uniform(seed, u32::try_from(axis).expect("it is small"), at as u64) * 1e6).to_bits() >> 3);
            if axis == 0 && at == wrong { extent } else { drawn % (2 * extent) - extent }
        };
        let indices: Vec<Vec<i64>> =
            extents.iter().enumerate().map(|(axis, extent)| (0..count).map(|at| index(axis, at, *extent)).collect()).collect();
        let mut memory: Vec<Vec<u8>> =
            indices.iter().map(|axis| axis.iter().flat_map(|index| index.to_ne_bytes()).collect()).collect();
        let buffers: Vec<Buffer> = memory.iter_mut().map(|axis| buffer(axis, Dtype::I64)).collect();
        let (terms, mut expected) = (numbers(outer * count * inner, seed), numbers(outer * total * inner, !seed));
        let (mut from, mut to) = (bytes(Dtype::F64, &terms), bytes(Dtype::F64, &expected));
        let scatter = Scatter { outer, extents: &extents, inner, indices: &buffers };
        // SAFETY: all lie in memory of ours, apart.
        let is_done = unsafe { scatter.add(&buffer(&mut from, Dtype::F64), &buffer(&mut to, Dtype::F64)) }.expect("they fit");
        prop_assert_eq!(is_done, wrong >= count);
        for (place, term) in terms.iter().enumerate().filter(|_| is_done) {
            let (before, at, after) = (place / (count * inner), place / inner % count, place % inner);
            let row = indices.iter().zip(&extents).fold(0, |row, (axis, extent)| {
                row * extent + usize::try_from(axis[at].rem_euclid(i64::try_from(*extent).expect("it is small"))).expect("it is positive")
            });
            expected[(before * total + row) * inner + after] += term;
        }
        prop_assert_eq!(read(Dtype::F64, &to), expected);
    }

    #[test]
    fn products_are_those_of_a_loop_and_the_same_bits_on_any_instruction_set(
        stack in 0usize..4, rows in 0usize..40, inner in 0usize..20, columns in 0usize..33,
        single: bool, left_turned: bool, right_turned: bool, right_once: bool, seed: u64,
    ) {
        let dtype = if single { Dtype::F32 } else { Dtype::F64 };
        let size = dtype.size().cast_signed();
        let (mut left, mut right) =
            (bytes(dtype, &numbers(stack * rows * inner, seed)), bytes(dtype, &numbers(stack * inner * columns, !seed)));
        let factor = |memory: &mut [u8], rows: usize, columns: usize, turned: bool, stride: &'static mut [isize]| {
            let (row, column) = if turned { (1, rows.cast_signed()) } else { (columns.cast_signed(), 1) };
            Factor { pointer: memory.as_mut_ptr(), stack: stride, row: row * size, column: column * size }
        };
        let leak = |stride: usize| vec![stride.cast_signed() * size].leak();
        let extents = [stack];
        let product = Product {
            stack: &extents, rows, inner, columns, dtype,
            left: factor(&mut left, rows, inner, left_turned, leak(rows * inner)),
            right: factor(&mut right, inner, columns, right_turned, leak(if right_once { 0 } else { inner * columns })),
        };
        let compute = |isa| {
            let mut to = vec![0xff; stack * rows * columns * dtype.size()];
            // SAFETY: all lie in memory of ours, apart.
            unsafe { product.compute(&buffer(&mut to, dtype), isa, None) }.expect("they fit");
            to
        };
        let first = compute(Isa::SCALAR);
        for isa in Isa::available() {
            prop_assert_eq!(&compute(isa), &first);
        }
        let (a, b) = (read(dtype, &left), read(dtype, &right));
        for (at, found) in read(dtype, &first).into_iter().enumerate() {
            let (place, row, column) = (at / (rows * columns), at / columns % rows, at % columns);
            let term = |k: usize| {
                let x = place * rows * inner + if left_turned { k * rows + row } else { row * inner + k };
                let y = if right_once { 0 } else { place * inner * columns };
                a[x] * b[y + if right_turned { column * inner + k } else { k * columns + column }]
            };
            let expected: f64 = (0..inner).map(term).sum();
            let tolerance = if single { 1e-5 } else { 1e-13 };
            prop_assert!((found - expected).abs() <= tolerance, "{} is not {}", found, expected);
        }
    }
}

#[test]
fn long_sums_are_the_same_bits_with_any_number_of_threads() {
    let pool = pool();
    for (outer, count, inner) in [(1, 1_000_003, 1), (3, 100_000, 1), (50_000, 9, 1), (1, 30_000, 7), (4, 90, 700)] {
        let axes = Axes { outer, count, inner };
        for dtype in [Dtype::F32, Dtype::F64] {
            let mut from = bytes(dtype, &numbers(outer * count * inner, 7));
            let alone = sums(&mut from, dtype, axes, 1.0, Isa::SCALAR, None);
            for isa in Isa::available() {
                assert!(sums(&mut from, dtype, axes, 1.0, isa, Some(&pool)) == alone, "{axes:?} {dtype:?} {isa:?}");
            }
            let exact: f64 = read(dtype, &from[..count * inner * dtype.size()]).iter().step_by(inner).sum();
            assert!((read(dtype, &alone)[0] - exact).abs() < 1e-4, "{axes:?}");
        }
    }
}

#[test]
fn large_products_are_the_same_bits_with_any_number_of_threads() {
    let pool = pool();
    let (stack, rows, inner, columns) = (3, 1000, 20, 20);
    let (left, right) = (numbers(stack * rows * inner, 1), numbers(stack * inner * columns, 2));
    let factor = |numbers: &[f64], stack, row: usize| Factor {
        pointer: numbers.as_ptr().cast(),
        stack,
        row: row.cast_signed() * 8,
        column: 8,
    };
    let product = Product {
        stack: &[stack],
        rows,
        inner,
        columns,
        dtype: Dtype::F64,
        left: factor(&left, &[1000 * 20 * 8], inner),
        right: factor(&right, &[20 * 20 * 8], columns),
    };
    assert!(product.is_narrow());
    let compute = |isa, pool: Option<&ThreadPool>| {
        let mut to = vec![0; stack * rows * columns * 8];
        // SAFETY: all lie in memory of ours, apart.
        unsafe { product.compute(&buffer(&mut to, Dtype::F64), isa, pool) }.expect("they fit");
        to
    };
    let alone = compute(Isa::SCALAR, None);
    for isa in Isa::available() {
        assert!(compute(isa, Some(&pool)) == alone, "{isa:?}");
    }
}

#[test]
fn what_does_not_fit_is_an_error_and_nothing_is_written() {
    let (mut from, mut to) = (bytes(Dtype::F64, &[1.0; 6]), bytes(Dtype::F64, &[7.0; 3]));
    let axes = Axes { outer: 1, count: 2, inner: 3 };
    let sum = |from: &Buffer, to: &Buffer, axes| {
        // SAFETY: both lie in memory of ours, apart.
        unsafe { sum::sum(from, to, axes, 1.0, Isa::SCALAR, None) }
    };
    let (a, b) = (buffer(&mut from, Dtype::F64), buffer(&mut to, Dtype::F64));
    assert!(matches!(sum(&a, &b, Axes { count: 3, ..axes }), Err(Error::Shape(_))));
    assert!(matches!(sum(&a, &b, Axes { outer: usize::MAX, ..axes }), Err(Error::Shape(_))));
    let single = Buffer::contiguous(to.as_mut_ptr(), 3, Dtype::F32, true).expect("it lies in memory");
    assert!(matches!(sum(&a, &single, axes), Err(Error::Dtype(_))));
    let fixed = Buffer::contiguous(to.as_mut_ptr(), 3, Dtype::F64, false).expect("it lies in memory");
    assert!(matches!(sum(&a, &fixed, axes), Err(Error::Memory(_))));
    let once = Buffer::repeated(from.as_ptr(), 6, Dtype::F64).expect("it lies in memory");
    assert!(matches!(sum(&once, &b, axes), Err(Error::Memory(_))));
    assert_eq!(read(Dtype::F64, &to), [7.0; 3]);
}
