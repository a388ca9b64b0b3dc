use proptest::prelude::*;

use super::super::{Fold, Foreign, Group};
use super::*;
use crate::array::matmul::{Factor, Product};
use crate::array::sum::{Axes, sum};
use crate::array::view::ArrayView;
use crate::op::Elementwise;
use crate::scalar::{Condition, Precision};

type Call = (SmallCall, SmallVec<[usize; 3]>);

fn view(of: &[f64], extents: &[usize], strides: &[isize]) -> Read {
    Read::Array(ArrayView {
        pointer: of.as_ptr().cast_mut().cast(),
        extents: extents.into(),
        strides: strides.into(),
        dtype: Some(Dtype::F64),
        writable: false,
    })
}

fn whole(of: &[f64]) -> Read {
    view(of, &[of.len()], &[8])
}

fn apply(op: Elementwise, extents: &[usize], args: &[usize]) -> Call {
    let group = Group { shape: extents.into(), dtype: Dtype::F64 };
    (SmallCall::Elementwise(op, group, false), SmallVec::from_slice(args))
}

/// The numbers of the results, arrays and numbers, on each instruction set, which agree.
fn results(calls: &[Call], reads: &[Read], writes: &[usize]) -> Option<Vec<Vec<f64>>> {
    let kinds = reads.iter().map(Read::kind).collect::<Option<_>>()?;
    let run = SmallRun::new(calls, kinds, writes)?;
    let mut all = Isa::available().into_iter().map(|isa| {
        let mut arrays: Vec<Vec<f64>> =
            run.arrays().flatten().map(|(extents, _)| vec![0.0; extents.iter().product()]).collect();
        let buffer = |array: &mut Vec<f64>| {
            Buffer::contiguous(array.as_mut_ptr().cast(), array.len(), Dtype::F64, true).unwrap()
        };
        let buffers: Vec<Buffer> = arrays.iter_mut().map(buffer).collect();
        // SAFETY: the arrays are alive, and those that are written apart from the others.
        let numbers = unsafe { run.compute(reads, &buffers, isa, &mut Arena::default()) }?;
        let (mut arrays, mut numbers) = (arrays.into_iter(), numbers.into_iter());
        let result = run.arrays().map(|array| match array {
            Some(_) => arrays.next().unwrap(),
            None => vec![numbers.next().unwrap().number],
        });
        Some(result.collect::<Vec<_>>())
    });
    let first = all.next()?;
    let bits = |results: &Option<Vec<Vec<f64>>>| {
        results.as_ref().map(|all| all.iter().flatten().map(|number| number.to_bits()).collect::<Vec<_>>())
    };
    all.for_each(|other| assert_eq!(bits(&first), bits(&other)));
    first
}

#[test]
fn values_are_repeated_to_the_shape_of_a_call() {
    let (rows, column, number) = ([1.0, 2.0, 3.0], [10.0, 20.0], Read::Number(Scalar::weak(0.5)));
    let calls = [
        apply(Elementwise::Add, &[2, 3], &[0, 1]),
        apply(Elementwise::Multiply, &[2, 3], &[3, 2]),
        apply(Elementwise::Add, &[3], &[0, 2]),
        apply(Elementwise::Subtract, &[2, 3], &[4, 5]),
    ];
    let found = results(&calls, &[whole(&rows), view(&column, &[2, 1], &[8, 8]), number], &[1, 3]).unwrap();
    assert_eq!(found, [vec![5.5, 6.0, 6.5, 10.5, 11.0, 11.5], vec![4.0, 3.5, 3.0, 9.0, 8.5, 8.0]]);
}

#[test]
fn arrays_that_do_not_lie_in_order_are_not_read_and_others_are() {
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let calls = [apply(Elementwise::Negative, &[3], &[0])];
    let by = |step: isize| results(&calls, &[view(&x, &[3], &[step])], &[0]);
    assert_eq!(by(16), Some(vec![vec![-1.0, -3.0, -5.0]]));
    assert_eq!(by(-8), None);
    // The sum of such an array is added up in another order elsewhere.
    let sum = [(SmallCall::Fold(None, false, Fold::Sum), SmallVec::from_slice(&[0]))];
    assert_eq!(results(&sum, &[view(&x, &[3], &[16])], &[0]), None);
    assert_eq!(results(&sum, &[view(&x, &[3], &[8])], &[0]), Some(vec![vec![6.0]]));
}

#[test]
fn a_condition_that_does_not_hold_ends_the_run() {
    let divide = SmallCall::Number(Elementwise::Divide, Condition::Divisor, SmallVec::from_elem(Precision::F64, 2));
    let calls = [(divide, SmallVec::from_slice(&[0, 1])), apply(Elementwise::Add, &[3], &[2, 3])];
    let by = |divisor| {
        let numbers = [1.0, divisor].map(|number| Read::Number(Scalar::f64(number)));
        let [one, other] = numbers;
        results(&calls, &[one, other, whole(&[1.0, 2.0, 3.0])], &[0, 1])
    };
    assert_eq!(by(2.0), Some(vec![vec![0.5], vec![1.5, 2.5, 3.5]]));
    assert_eq!(by(0.0), None);
}

#[test]
fn truth_values_and_single_precision() {
    let x = [1.0_f32, -2.0, 3.0];
    let array = Read::Array(ArrayView {
        pointer: x.as_ptr().cast_mut().cast(),
        extents: SmallVec::from_slice(&[3]),
        strides: SmallVec::from_slice(&[4]),
        dtype: Some(Dtype::F32),
        writable: false,
    });
    let group = Group { shape: SmallVec::from_slice(&[3]), dtype: Dtype::F32 };
    let calls: [Call; 3] = [
        (SmallCall::Elementwise(Elementwise::Less, group.clone(), true), SmallVec::from_slice(&[0, 1])),
        (SmallCall::Elementwise(Elementwise::Where, group, false), SmallVec::from_slice(&[2, 1, 0])),
        (SmallCall::Fold(None, false, Fold::Mean), SmallVec::from_slice(&[3])),
    ];
    let reads = [array, Read::Number(Scalar::weak(0.125))];
    let run = SmallRun::new(&calls, reads.iter().map(|read| read.kind().unwrap()).collect(), &[0, 1, 2]).unwrap();
    let (mut truths, mut numbers) = ([7_u8; 3], [0.0_f32; 3]);
    let buffers = [
        Buffer::contiguous(truths.as_mut_ptr(), 3, Dtype::Bool, true).unwrap(),
        Buffer::contiguous(numbers.as_mut_ptr().cast(), 3, Dtype::F32, true).unwrap(),
    ];
    // SAFETY: the arrays are alive, and apart.
    let found = unsafe { run.compute(&reads, &buffers, Isa::detect(), &mut Arena::default()) }.unwrap();
    assert_eq!((truths, numbers), ([0, 1, 0], [1.0, 0.125, 3.0]));
    assert_eq!(found, [Scalar::f32(4.125 / 3.0)]);
    // A number of float64 makes results of float64, which the group has not.
    let wide = [reads[0].kind().unwrap(), Kind::Number(Precision::F64)];
    assert!(SmallRun::new(&calls[..1], wide.to_vec(), &[0]).is_none());
}

#[test]
fn sums_and_products_have_the_bits_of_their_functions() {
    let x: Vec<f64> = (0..12).map(|at| 0.1 * f64::from(at) + 0.3).collect();
    let y: Vec<f64> = (0..20).map(|at| 1.7 - 0.3 * f64::from(at)).collect();
    let calls = [
        (SmallCall::Product, SmallVec::from_slice(&[0, 1])),
        (SmallCall::Fold(Some(SmallVec::from_slice(&[0])), true, Fold::Sum), SmallVec::from_slice(&[2])),
    ];
    let reads = [view(&x, &[3, 4], &[32, 8]), view(&y, &[4, 5], &[40, 8])];
    let found = results(&calls, &reads, &[0, 1]).unwrap();
    let (mut product, mut sums) = (vec![0.0; 15], vec![0.0; 5]);
    let [to, total] = [&mut product, &mut sums]
        .map(|array| Buffer::contiguous(array.as_mut_ptr().cast(), array.len(), Dtype::F64, true).unwrap());
    let factor = |of: &[f64], row| Factor { pointer: of.as_ptr().cast(), stack: &[], row, column: 8 };
    let (left, right) = (factor(&x, 32), factor(&y, 40));
    let expected = Product { stack: &[], rows: 3, inner: 4, columns: 5, dtype: Dtype::F64, left, right };
    // SAFETY: the arrays are alive, and apart.
    unsafe {
        expected.compute(&to, Isa::detect(), None).unwrap();
        sum(&to, &total, Axes { outer: 1, count: 3, inner: 5 }, 1.0, Isa::detect(), None).unwrap();
    }
    assert_eq!(found, [product, sums]);
}

const OPS: [Elementwise; 4] = [Elementwise::Add, Elementwise::Subtract, Elementwise::Multiply, Elementwise::Maximum];

proptest! {
    /// Any calls on arrays of one length and of one element have the bits of the ops on their numbers, wherever their values lie.
    #[test]
    fn calls_have_the_bits_of_their_ops(
        calls in prop::collection::vec((0..4usize, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..60),
        length in prop::sample::select(vec![1_usize, 3, 8, 14, 33]),
        number in -2.0..2.0f64,
    ) {
        let x: Vec<f64> = (0..length).map(|at| f64::from(u8::try_from(at).unwrap()).sin()).collect();
        let reads = [whole(&x), whole(&[number]), Read::Number(Scalar::weak(0.75))];
        let mut expected = vec![x.clone(), vec![number], vec![0.75]];
        let mut planned = Vec::new();
        for (op, one, other) in &calls {
            let args = [one.index(expected.len()), other.index(expected.len())];
            let args = if args.contains(&2) && args[0] == args[1] { [0, 2] } else { args };
            let [a, b] = args.map(|at| expected[at].clone());
            let count = a.len().max(b.len());
            planned.push(apply(OPS[*op], &[count], &args));
            let at = |values: &[f64], at: usize| values[if values.len() == 1 { 0 } else { at }];
            expected.push((0..count).map(|k| OPS[*op].on_numbers([at(&a, k), at(&b, k), 0.0])).collect());
        }
        let writes: Vec<usize> = (0..calls.len()).rev().step_by(3).collect();
        let found = results(&planned, &reads, &writes).unwrap();
        for (at, found) in writes.iter().zip(found) {
            let bits = |numbers: &[f64]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&found), bits(&expected[3 + at]));
        }
    }
}

/// The larger of two numbers, the first of equal ones, as a library's function over arrays.
unsafe extern "C" fn larger(
    arrays: *mut *mut u8,
    extents: *const isize,
    strides: *const isize,
    _: *mut std::ffi::c_void,
) {
    // SAFETY: such a function has three operands, one extent, and as many numbers at the strides.
    unsafe {
        for at in 0..*extents {
            let place = |operand: usize| (*arrays.add(operand)).wrapping_offset(at * *strides.add(operand));
            let [a, b] = [0, 1].map(|operand| place(operand).cast::<f64>().read_unaligned());
            place(2).cast::<f64>().write_unaligned(if b > a { b } else { a });
        }
    }
}

proptest! {
    /// The results of a function along neighbouring axes are those of its numbers one after the other.
    #[test]
    fn functions_along_axes_have_the_bits_of_their_numbers(
        extents in prop::collection::vec(1..6usize, 1..4),
        first in any::<prop::sample::Index>(),
        more in any::<prop::sample::Index>(),
        keepdims in any::<bool>(),
        draws in prop::collection::vec(prop::sample::select(vec![0.0, -0.0, 1.5, -2.0, f64::NAN, f64::INFINITY]), 125),
    ) {
        let first = first.index(extents.len());
        let last = first + more.index(extents.len() - first);
        let of = |axes: &[usize]| axes.iter().product::<usize>();
        let (outer, count, inner) = (of(&extents[..first]), of(&extents[first..=last]), of(&extents[last + 1..]));
        let strides: Vec<isize> = contiguous_strides(&extents, 8).unwrap().to_vec();
        // SAFETY: `larger` is such a function, which has no data.
        let function = unsafe { Foreign::new(larger, std::ptr::null_mut(), Dtype::F64, &[&[], &[], &[]]) };
        let axes = (first..=last).map(usize::cast_signed).collect();
        let fold = (SmallCall::Fold(Some(axes), keepdims, Fold::Foreign(function)), SmallVec::from_slice(&[0]));
        let found = results(&[fold], &[view(&draws, &extents, &strides)], &[0]).unwrap();
        let larger = |a: f64, b: f64| if b > a { b } else { a };
        let expected = (0..outer * inner).map(|at| {
            let number = |row: usize| draws[(at / inner * count + row) * inner + at % inner];
            (1..count).fold(number(0), |result, row| larger(result, number(row))).to_bits()
        });
        prop_assert_eq!(found[0].iter().map(|number| number.to_bits()).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

/// A view of an array of these extents: the first index and the step along each axis, and the extents and axes of the view.
fn elements(of: &[usize], starts: &[usize], axes: &[(Option<usize>, isize, usize)]) -> View {
    View {
        of: of.into(),
        starts: starts.into(),
        index: None,
        extents: axes.iter().map(|(.., extent)| *extent).collect(),
        axes: axes.iter().map(|(axis, step, _)| (*axis, *step)).collect(),
    }
}

fn seen(view: View, args: &[usize]) -> Call {
    (SmallCall::View(view, Dtype::F64), SmallVec::from_slice(args))
}

fn counted(length: u8) -> Vec<f64> {
    (0..length).map(f64::from).collect()
}

#[test]
fn products_read_transposed_factors() {
    let (x, y) = (counted(6), counted(12));
    let calls = [
        seen(elements(&[2, 3], &[0, 0], &[(Some(1), 1, 3), (Some(0), 1, 2)]), &[0]),
        seen(elements(&[2, 6], &[0, 5], &[(Some(0), 1, 2), (Some(1), -2, 3)]), &[1]),
        (SmallCall::Product, SmallVec::from_slice(&[2, 3])),
        seen(elements(&[3, 3], &[1, 0], &[(Some(1), 1, 3)]), &[4]),
        (SmallCall::Product, SmallVec::from_slice(&[5, 2])),
    ];
    let reads = [view(&x, &[2, 3], &[24, 8]), view(&y, &[2, 6], &[48, 8])];
    let found = results(&calls, &reads, &[2, 3, 4]).unwrap();
    // The transposed factor is [[0, 3], [1, 4], [2, 5]], the other one [[5, 3, 1], [11, 9, 7]].
    let row = vec![49.0, 39.0, 29.0];
    assert_eq!(found[0], [vec![33.0, 27.0, 21.0], row.clone(), vec![65.0, 51.0, 37.0]].concat());
    assert_eq!(found[1..], [row, vec![39.0 + 58.0, 147.0 + 156.0 + 145.0]]);
    // Of an array that is read transposed there are products, and no sums.
    let read = [view(&x, &[3, 2], &[8, 24]), whole(&[1.0, 10.0])];
    let by = |call| results(&[(call, SmallVec::from_slice(&[0, 1]))], &read, &[0]);
    assert_eq!(by(SmallCall::Product), Some(vec![vec![30.0, 41.0, 52.0]]));
    assert_eq!(by(SmallCall::Fold(None, false, Fold::Sum)), None);
}

#[test]
fn a_number_is_an_index_and_ends_the_run_where_it_is_out_of_range() {
    let x = counted(6);
    let mut column = elements(&[2, 3], &[0, 0], &[(Some(0), 1, 2)]);
    column.index = Some((1, 1));
    let into = column.clone();
    let scatter =
        |adds| (SmallCall::Scatter(into.clone(), Dtype::F64, adds), [&[0, 2][usize::from(!adds)..], &[1]].concat());
    let calls = [false, true].map(scatter).map(|(call, args)| (call, SmallVec::from_vec(args)));
    let calls = [&[seen(column, &[0, 1])][..], &calls].concat();
    let by =
        |index: f64| results(&calls, &[view(&x, &[2, 3], &[24, 8]), Read::Number(Scalar::weak(index))], &[0, 1, 2]);
    let expected = |at: usize| {
        let taken = vec![x[at], x[3 + at]];
        let placed: Vec<f64> = (0..6).map(|k| if k % 3 == at { x[k] } else { 0.0 }).collect();
        Some(vec![taken, placed.clone(), x.iter().zip(placed).map(|(one, other)| one + other).collect()])
    };
    assert_eq!([by(2.0), by(-3.0), by(0.0)], [expected(2), expected(0), expected(0)]);
    assert_eq!([by(3.0), by(-4.0), by(0.5), by(f64::NAN)], [None, None, None, None]);
}

#[test]
fn views_beyond_an_array_are_refused() {
    let x = counted(6);
    let by = |starts: &[usize], step: isize, extent: usize| {
        let taken = seen(elements(&[6], starts, &[(Some(0), step, extent)]), &[0]);
        results(&[taken, apply(Elementwise::Negative, &[extent], &[1])], &[whole(&x)], &[1])
    };
    assert_eq!(by(&[4], -2, 3), Some(vec![vec![-4.0, -2.0, 0.0]]));
    assert_eq!([by(&[4], -2, 4), by(&[4], 1, 3), by(&[6], 1, 1), by(&[], 1, 1), by(&[0], 1, 0)], [const { None }; 5]);
    let other = seen(elements(&[6], &[0], &[(Some(1), 1, 3)]), &[0]);
    assert_eq!(results(&[other], &[whole(&x)], &[0]), None);
}

proptest! {
    /// Views of views have the elements that their indices say, as results, as arguments and where something is added to them.
    #[test]
    fn views_of_views(
        extents in prop::collection::vec(1..5usize, 1..4),
        draws in prop::collection::vec((0..4usize, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>()), 1..6),
    ) {
        let count: usize = extents.iter().product();
        let x = counted(u8::try_from(count).unwrap());
        // The elements of the last view, by their positions in the array.
        let (mut own, mut at): (Vec<usize>, Vec<usize>) = (extents.clone(), (0..count).collect());
        let (mut calls, mut last) = (Vec::new(), 0);
        for (kind, one, other, is_back) in draws {
            let mut axes: Vec<(Option<usize>, isize, usize)> =
                own.iter().enumerate().map(|(axis, extent)| (Some(axis), 1, *extent)).collect();
            let mut starts = vec![0; own.len()];
            match kind {
                0 => axes.reverse(),
                1 if !own.is_empty() => {
                    let axis = one.index(own.len());
                    starts[axis] = other.index(own[axis]);
                    let left = if is_back { starts[axis] + 1 } else { own[axis] - starts[axis] };
                    axes[axis] = (Some(axis), if is_back { -1 } else { 1 }, left);
                }
                2 if own.len() > 1 => {
                    let axis = one.index(own.len());
                    starts[axis] = other.index(own[axis]);
                    axes.remove(axis);
                }
                _ => axes.insert(one.index(own.len() + 1), (None, 1, 1 + other.index(3))),
            }
            let view = elements(&own, &starts, &axes);
            let mut index = vec![0; view.extents.len()];
            let total: usize = view.extents.iter().product();
            let mut positions = Vec::new();
            for _ in 0..total {
                let mut of: Vec<isize> = starts.iter().map(|start| start.cast_signed()).collect();
                for ((axis, step, _), each) in axes.iter().zip(&index) {
                    if let Some(axis) = axis {
                        of[*axis] += step * usize::cast_signed(*each);
                    }
                }
                let flat = of.iter().zip(&own).fold(0, |flat, (each, extent)| flat * extent + each.cast_unsigned());
                positions.push(at[flat]);
                for (each, extent) in index.iter_mut().zip(&view.extents).rev() {
                    *each += 1;
                    if *each < *extent {
                        break;
                    }
                    *each = 0;
                }
            }
            (own, at) = (view.extents.to_vec(), positions);
            calls.push(seen(view, &[last]));
            last = calls.len();
        }
        let strides: Vec<isize> = contiguous_strides(&extents, 8).unwrap().to_vec();
        calls.push(apply(Elementwise::Negative, &own, &[last]));
        let found = results(&calls, &[view(&x, &extents, &strides)], &[calls.len() - 1]).unwrap();
        prop_assert_eq!(&found[0], &at.iter().map(|at| -x[*at]).collect::<Vec<_>>());
    }
}

#[test]
fn arrays_and_numbers_are_joined() {
    let (x, y) = (counted(4), [7.0, -0.0]);
    let join = |axis, is_new, args: &[usize]| (SmallCall::Join(axis, is_new), SmallVec::from_slice(args));
    let calls = [
        join(0, false, &[0, 1, 0]),
        seen(elements(&[2, 2], &[0, 0], &[(Some(1), 1, 2), (Some(0), 1, 2)]), &[0]),
        join(0, false, &[4, 1]),
        (SmallCall::Fold(None, false, Fold::Sum), SmallVec::from_slice(&[0])),
        join(0, true, &[6, 2]),
        seen(elements(&[1, 2], &[0, 0], &[(Some(1), 1, 2)]), &[1]),
        join(1, true, &[8, 7]),
    ];
    let reads = [view(&x, &[2, 2], &[16, 8]), view(&y, &[1, 2], &[16, 8]), Read::Number(Scalar::f64(-1.0))];
    let found = results(&calls, &reads, &[0, 2, 4, 6]).unwrap();
    assert_eq!(found[0], [&x[..], &y, &x].concat());
    assert_eq!(found[1], [0.0, 2.0, 1.0, 3.0, 7.0, 0.0]);
    assert_eq!(found[2..], [vec![6.0, -1.0], vec![7.0, 6.0, 0.0, -1.0]]);
    assert!(found[0][5].is_sign_negative());
    // Other extents, and an axis that is not there.
    for odd in [join(1, false, &[0, 1]), join(2, false, &[0, 0]), join(0, false, &[]), join(0, true, &[0, 1])] {
        assert_eq!(results(&[odd], &reads, &[0]), None);
    }
}

proptest! {
    /// Views, joined arrays and sums that share memory have the bits of the calls by themselves.
    #[test]
    fn programs_of_parts_have_the_bits_of_their_calls(
        codes in prop::collection::vec((0..6_usize, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..30),
        kept in prop::collection::vec(any::<bool>(), 150),
    ) {
        const OPS: [Elementwise; 3] = [Elementwise::Multiply, Elementwise::Add, Elementwise::Subtract];
        let reads: [Vec<f64>; 2] = [0.75, -0.5].map(|scale| counted(11).iter().map(|k| (k - 4.0) * scale).collect());
        // Positions of vectors of eleven numbers, from which the arguments are taken, and the numbers of all values.
        let (mut whole_ones, mut values, mut calls) = (vec![0, 1], reads.to_vec(), Vec::new());
        let push = |value: Vec<f64>, call: Call, values: &mut Vec<Vec<f64>>, calls: &mut Vec<Call>| {
            calls.push(call);
            values.push(value);
            values.len() - 1
        };
        for (code, a, b) in codes {
            let [a, b] = [a, b].map(|index| *index.get(&whole_ones));
            let binary = |op: Elementwise, values: &[Vec<f64>], [a, b]: [usize; 2]| -> Vec<f64> {
                let scalars = values[a].iter().zip(&values[b]);
                scalars.map(|(x, y)| op.on_numbers([*x, *y, 0.0])).collect()
            };
            if code < 3 {
                let value = binary(OPS[code], &values, [a, b]);
                whole_ones.push(push(value, apply(OPS[code], &[11], &[a, b]), &mut values, &mut calls));
                continue;
            }
            // The first eight numbers of one, the last eight of the other, and what is computed of them.
            let from = code % 2 * 3;
            let part = |start: usize, count: usize| elements(&[11], &[start], &[(Some(0), 1, count)]);
            let head = push(values[a][..8].to_vec(), seen(part(0, 8), &[a]), &mut values, &mut calls);
            let tail = push(values[b][3..].to_vec(), seen(part(3, 8), &[b]), &mut values, &mut calls);
            let product = binary(Elementwise::Multiply, &values, [head, tail]);
            let product = push(product, apply(Elementwise::Multiply, &[8], &[head, tail]), &mut values, &mut calls);
            let (call, value) = if code == 3 {
                let rest = push(values[b][..3].to_vec(), seen(part(0, 3), &[b]), &mut values, &mut calls);
                let joined = [values[rest].clone(), values[product].clone()].concat();
                ((SmallCall::Join(0, false), SmallVec::from_slice(&[rest, product])), joined)
            } else {
                let mut sum = values[a].clone();
                sum[from..][..8].iter_mut().zip(&values[product]).for_each(|(sum, added)| *sum += added);
                ((SmallCall::Scatter(part(from, 8), Dtype::F64, true), SmallVec::from_slice(&[a, product])), sum)
            };
            whole_ones.push(push(value, call, &mut values, &mut calls));
        }
        prop_assume!(values.iter().flatten().all(|number| number.is_finite()));
        let writes: Vec<usize> = (0..calls.len()).filter(|at| kept[*at] || at + 1 == calls.len()).collect();
        let found = results(&calls, &[whole(&reads[0]), whole(&reads[1])], &writes).unwrap();
        let bits = |numbers: &[f64]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        for (at, numbers) in writes.iter().zip(&found) {
            prop_assert_eq!(bits(numbers), bits(&values[2 + at]));
        }
    }
}
