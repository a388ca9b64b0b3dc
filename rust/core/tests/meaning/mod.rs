//! The reference semantics of a program, evaluated element by element, and a comparison of executors with it.

mod codes;
mod held;
pub mod programs;
mod slices;

use codes::{codec, coded, decoded};
use held::Held;
pub use held::Shape;
use oxigrad_core::array::buffer::{Buffer, Dtype, Rounding};
use oxigrad_core::array::half::{Bfloat16, Float16, Half, narrowed};
use oxigrad_core::exec::{self, Batch, Leaf, Scratch};
use oxigrad_core::kernel::{Kernel, Node, Wanted};
use oxigrad_core::op::{Elementwise, Visitor};
use oxigrad_core::simd::noise::uniform;
use oxigrad_core::simd::{Binary, Lane, Ternary, Unary, dispatch::Isa};
use proptest::prelude::*;

/// The value of a node: of one element, or of all.
#[derive(Clone)]
enum Value {
    Scalar(f64),
    Array(Vec<f64>),
}

impl Value {
    fn at(&self, i: usize) -> f64 {
        match self {
            Self::Scalar(value) => *value,
            Self::Array(values) => values[i],
        }
    }
}

struct OnElement([f64; 3]);

impl Visitor<f32> for OnElement {
    type Output = f64;
    fn unary(self, f: impl Unary<f32>) -> f64 {
        f64::from(f.call(f32::splat(self.0[0])))
    }
    fn binary(self, f: impl Binary<f32>) -> f64 {
        f64::from(f.call(f32::splat(self.0[0]), f32::splat(self.0[1])))
    }
    fn ternary(self, f: impl Ternary<f32>) -> f64 {
        f64::from(f.call(f32::splat(self.0[0]), f32::splat(self.0[1]), f32::splat(self.0[2])))
    }
}

fn meaning(op: Elementwise, dtype: Dtype, args: [f64; 3]) -> f64 {
    if dtype == Dtype::F32 { op.visit::<f32, _>(OnElement(args)) } else { op.on_numbers(args) }
}

fn rounded(dtype: Dtype, value: f64) -> f64 {
    match dtype {
        // The ops are tested by themselves, in half.rs.
        Dtype::F16 => Elementwise::RoundToFloat16.on_numbers([value, 0.0, 0.0]),
        Dtype::BF16 => Elementwise::RoundToBfloat16.on_numbers([value, 0.0, 0.0]),
        Dtype::F32 => f64::from(f32::splat(value)),
        _ => value,
    }
}

/// The contents of a buffer after a leaf of this noise key wrote these numbers to it: rounded, quantized or unchanged.
fn written(values: &[f64], dtype: Dtype, rounding: Rounding, key: u64) -> Vec<f64> {
    let numbers = values.iter().zip(0u64..);
    if let Some(codec) = codec(dtype) {
        return decoded(codec, &coded(codec, values), values.len());
    }
    match (dtype, rounding) {
        (Dtype::F16, Rounding::Stochastic(number)) => {
            let round = |(x, i): (&f64, u64)| Float16::stochastic(narrowed(*x), Rounding::random(key, number, i));
            numbers.map(round).map(|half| half.to_f32().into()).collect()
        }
        (Dtype::BF16, Rounding::Stochastic(number)) => {
            let round = |(x, i): (&f64, u64)| Bfloat16::stochastic(narrowed(*x), Rounding::random(key, number, i));
            numbers.map(round).map(|half| half.to_f32().into()).collect()
        }
        _ => values.iter().map(|x| rounded(dtype, *x)).collect(),
    }
}

/// Chunks of 4096 elements in order; in a chunk sixteen totals, added up as a tree.
fn sum(dtype: Dtype, length: usize, value: &Value) -> f64 {
    let numbers: Vec<f64> = (0..length).map(|i| rounded(dtype, value.at(i))).collect();
    let chunk_sum = |chunk: &[f64]| {
        let mut totals = [0.0; 16];
        chunk.iter().enumerate().for_each(|(i, x)| totals[i % 16] += x);
        for half in [8, 4, 2, 1] {
            (0..half).for_each(|k| totals[k] += totals[k + half]);
        }
        totals[0]
    };
    numbers.chunks(4096).fold(0.0, |total, chunk| total + chunk_sum(chunk))
}

struct Case {
    inputs: Vec<Vec<f64>>,
    length: usize,
    dtype: Dtype,
    key: u64,
}

/// The program as it is written, one element after the other, over leaves that are together: each has its scalars.
fn evaluate(nodes: &[Node], leaves: &[(Vec<f64>, &Case)]) -> Vec<Vec<Value>> {
    let mut values: Vec<Vec<Value>> = vec![Vec::new(); leaves.len()];
    for node in nodes {
        let sum = |arg: u32| values.iter().map(|values| values[arg as usize].at(0)).fold(0.0, |sum, x| sum + x);
        let total = if let Node::Total(arg, _) = node { sum(*arg) } else { 0.0 };
        for ((scalars, case), values) in leaves.iter().zip(&mut values) {
            let value = value(node, values, total, scalars, case);
            values.push(value);
        }
    }
    values
}

/// The value of one node of a leaf, after those before it.
fn value(node: &Node, values: &[Value], total: f64, scalars: &[f64], case: &Case) -> Value {
    match *node {
        Node::Leaf(k) => Value::Array(case.inputs[k as usize].iter().map(|x| rounded(case.dtype, *x)).collect()),
        Node::Scalar(k) => Value::Scalar(scalars[k as usize]),
        Node::Constant(value) => Value::Scalar(value),
        Node::Noise(draw) => {
            Value::Array((0..case.length as u64).map(|i| f64::from(uniform(case.key, draw, i))).collect())
        }
        Node::Sum(arg) => Value::Scalar(sum(case.dtype, case.length, &values[arg as usize])),
        Node::Dot(args) => {
            let [a, b] = args.map(|arg| &values[arg as usize]);
            let term = |i| rounded(case.dtype, a.at(i)) * rounded(case.dtype, b.at(i));
            Value::Scalar(sum(Dtype::F64, case.length, &Value::Array((0..case.length).map(term).collect())))
        }
        Node::Total(..) => Value::Scalar(total),
        Node::Apply(op, args) => {
            let args: Vec<&Value> = args[..op.arity()].iter().map(|arg| &values[*arg as usize]).collect();
            if args.iter().all(|arg| matches!(arg, Value::Scalar(_))) {
                Value::Scalar(op.on_numbers(std::array::from_fn(|k| args.get(k).map_or(0.0, |arg| arg.at(0)))))
            } else {
                let element =
                    |i| std::array::from_fn(|k| args.get(k).map_or(0.0, |arg| rounded(case.dtype, arg.at(i))));
                Value::Array((0..case.length).map(|i| meaning(op, case.dtype, element(i))).collect())
            }
        }
    }
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        3 => Just(Shape::Plain),
        1 => Just(Shape::Unaligned),
        1 => Just(Shape::Every(2)),
        1 => Just(Shape::Every(-1)),
        1 => Just(Shape::Rows),
    ]
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        Just(0),
        1..40usize,
        250..260usize,
        500..530usize,
        1015..1030usize,
        Just(2048),
        4090..4100usize,
        Just(9000)
    ]
}

#[derive(Clone, Debug)]
pub struct LeafCase {
    pub length: usize,
    pub dtype: Dtype,
    pub inputs: Vec<(Dtype, Shape)>,
    /// Whether it is in place of the input of its number and how many further; else its own dtype and shape.
    pub outputs: Vec<(Option<usize>, Dtype, Shape)>,
    pub rounding: Rounding,
    pub seed: u64,
    pub set: usize,
}

fn floating(same: Dtype) -> impl Strategy<Value = Dtype> {
    let others = [Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64, Dtype::U8, Dtype::I8];
    prop_oneof![2 => Just(same), 3 => prop::sample::select(others.to_vec())]
}

/// A leaf of so many arrays, alike or not.
pub fn leaf_case(inputs: usize, outputs: usize) -> impl Strategy<Value = LeafCase> {
    let compute = prop_oneof![2 => Just(Dtype::F32), 1 => Just(Dtype::F64)];
    compute.prop_flat_map(move |dtype| {
        let read = prop_oneof![6 => floating(dtype), 1 => Just(Dtype::Bool), 1 => Just(Dtype::I32)];
        let inputs = prop::collection::vec((read, shape()), inputs);
        let outputs = prop::collection::vec((any::<bool>(), floating(dtype), shape()), outputs);
        let rounding = prop_oneof![Just(Rounding::Nearest), (0..9u32).prop_map(Rounding::Stochastic)];
        (length(), inputs, outputs, rounding, any::<u64>(), 0..2usize, 0..2usize).prop_map(
            move |(length, inputs, outputs, rounding, seed, set, further)| {
                let outputs = outputs.into_iter().map(|(in_place, d, s)| (in_place.then_some(further), d, s)).collect();
                LeafCase { length, dtype, inputs, outputs, rounding, seed, set }
            },
        )
    })
}

/// Numbers of all sizes; special ones among them for the upper half of the seeds (one NaN is enough to hide a sum).
fn number(seed: u64, k: u32, i: usize) -> f64 {
    let u = |draw| f64::from(uniform(seed, 2 * k + draw, i as u64));
    match (u(1) * 40.0).floor() {
        0.0 if seed >> 63 == 1 => {
            [0.0, -0.0, f64::INFINITY, f64::NAN, 1e-40, -1.0, 1e6, -1e300][(i * 7 + k as usize) % 8]
        }
        1.0..=4.0 => (u(0) - 0.5) * 200.0,
        _ => (u(0) - 0.5) * 4.0,
    }
}

/// A leaf in memory, its arguments as they will be read.
struct Prepared {
    rounding: Rounding,
    inputs: Vec<Held>,
    apart: Vec<Option<Held>>,
    in_place: Vec<Option<usize>>,
    case: Case,
}

fn prepare(leaf: &LeafCase) -> Prepared {
    let column = |k: u32| (0..leaf.length).map(|i| number(leaf.seed, k, i)).collect::<Vec<_>>();
    let inputs: Vec<Held> =
        leaf.inputs.iter().zip(0..).map(|((dtype, shape), k)| Held::new(&column(k), *dtype, *shape)).collect();
    let takes =
        |place: &usize| inputs.get(*place).is_some_and(|input| !matches!(input.dtype, Dtype::Bool | Dtype::I32));
    let in_place: Vec<Option<usize>> =
        leaf.outputs.iter().enumerate().map(|(k, (further, ..))| further.map(|far| k + far).filter(takes)).collect();
    let zeros = vec![0.0; leaf.length];
    let apart = leaf.outputs.iter().zip(&in_place);
    let apart =
        apart.map(|((_, dtype, shape), place)| place.is_none().then(|| Held::new(&zeros, *dtype, *shape))).collect();
    let read = inputs.iter().map(Held::all).collect();
    let case = Case { inputs: read, length: leaf.length, dtype: leaf.dtype, key: leaf.seed };
    Prepared { rounding: leaf.rounding, inputs, apart, in_place, case }
}

impl Prepared {
    fn output(&self, k: usize) -> &Held {
        self.apart[k].as_ref().unwrap_or_else(|| &self.inputs[self.in_place[k].unwrap()])
    }
}

fn of_output(rounding: Rounding, output: usize) -> Rounding {
    match rounding {
        Rounding::Stochastic(number) => Rounding::Stochastic(number + u32::try_from(output).unwrap()),
        Rounding::Nearest => Rounding::Nearest,
    }
}

/// Runs the program on the leaves and compares every output and result with what it means, or that nothing is written where its
/// guard is zero; with no threads, leaf by leaf where that can be. `scalars` are two sets.
pub fn check(nodes: &[Node], wanted: &Wanted, leaves: &[LeafCase], scalars: &[f64], isa: Isa, threads: usize) {
    let totals = nodes.iter().any(|node| matches!(node, Node::Total(..)));
    check_run(nodes, wanted, leaves, scalars, &format!("{isa:?}, {threads} threads"), |batch, _| {
        if threads == 0 && batch.kernel.results() == 0 && !totals {
            let mut scratch = Scratch::default();
            for leaf in batch.leaves {
                // SAFETY: the arrays are alive and apart.
                unsafe { exec::run_one(batch.kernel, batch.scalars, leaf, isa, &mut scratch) }.unwrap();
            }
            return Some(Vec::new());
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build().unwrap();
        // SAFETY: the arrays are alive and apart.
        unsafe { exec::run(&[*batch], isa, Some(&pool)) }.unwrap().map(|mut results| results.remove(0))
    });
}

/// The buffer of the elements of an array from one on, so many of them: see [`check_run`].
pub type SliceOf<'a> = &'a dyn Fn(usize, usize, usize, usize) -> Buffer;

/// As [`check`], of a function that runs the batch, and returns the results. It is given the buffers of slices, too, by leaf, array (inputs,
/// then outputs), first element and length.
pub fn check_run(
    nodes: &[Node],
    wanted: &Wanted,
    leaves: &[LeafCase],
    scalars: &[f64],
    how: &str,
    run: impl FnOnce(&Batch, SliceOf) -> Option<Vec<f64>>,
) {
    let (kernel, outputs) = (Kernel::compile_wanted(nodes, wanted).unwrap(), wanted.outputs);
    let prepared: Vec<Prepared> = leaves.iter().map(prepare).collect();
    let buffers: Vec<(Vec<Buffer>, Vec<Buffer>)> = prepared
        .iter()
        .map(|leaf| {
            let inputs = leaf.inputs.iter().map(|held| held.buffer.clone()).collect();
            let output = |k: usize| leaf.output(k).buffer.clone().with_rounding(of_output(leaf.rounding, k));
            (inputs, (0..outputs.len()).map(output).collect())
        })
        .collect();
    let whole: Vec<Leaf> = leaves
        .iter()
        .zip(&buffers)
        .map(|(leaf, (inputs, outputs))| Leaf {
            inputs,
            outputs,
            length: leaf.length,
            dtype: leaf.dtype,
            scalar_set: leaf.set,
            noise_key: leaf.seed,
            first: 0,
        })
        .collect();
    let before: Vec<Vec<Vec<f64>>> =
        prepared.iter().map(|leaf| (0..outputs.len()).map(|k| leaf.output(k).all()).collect()).collect();
    let batch = Batch { kernel: &kernel, scalars: &scalars[..kernel.scalar_inputs() * 2], leaves: &whole };
    let results = run(&batch, &|leaf, array, first, length| {
        let count = prepared[leaf].inputs.len();
        match array.checked_sub(count) {
            None => prepared[leaf].inputs[array].slice(first, length),
            Some(k) => prepared[leaf].output(k).slice(first, length).with_rounding(of_output(leaves[leaf].rounding, k)),
        }
    });
    let set_of = |leaf: &LeafCase| {
        let set = &scalars[leaf.set * kernel.scalar_inputs()..];
        (0..scalars.len() / 2).map(|k| set.get(k).copied().unwrap_or(0.0)).collect()
    };
    let all =
        evaluate(nodes, &leaves.iter().map(set_of).zip(prepared.iter().map(|leaf| &leaf.case)).collect::<Vec<_>>());
    let is_stopped = wanted.guard.is_some_and(|guard| all[0][guard as usize].at(0) == 0.0);
    assert_eq!(results.is_none(), is_stopped, "{how}: stopped or not\n{kernel}");
    let mut results = results.into_iter().flatten();
    for (number, ((leaf, prepared), values)) in leaves.iter().zip(&prepared).zip(&all).enumerate() {
        if is_stopped {
            let is_kept = |k: usize| prepared.output(k).all().iter().zip(&before[number][k]).all(|(a, b)| same(*a, *b));
            assert!((0..outputs.len()).all(is_kept), "{how}, leaf {number}: written\n{kernel}");
            continue;
        }
        for (k, result) in wanted.results.iter().enumerate() {
            let (found, expected) = (results.next().unwrap(), values[*result as usize].at(0));
            assert!(
                same(found, expected),
                "{how}, leaf {number}, result {k}: {found} is not {expected}\n{leaf:?}\n{kernel}"
            );
        }
        for (k, output) in outputs.iter().enumerate() {
            let held = prepared.output(k);
            let computed: Vec<f64> =
                (0..leaf.length).map(|i| rounded(leaf.dtype, values[*output as usize].at(i))).collect();
            let expected = written(&computed, held.dtype, of_output(leaf.rounding, k), leaf.seed);
            let found = held.all();
            for i in 0..leaf.length {
                assert!(
                    same(found[i], expected[i]),
                    "{how}, leaf {number}, output {k}, element {i}: {} is not {}\n{leaf:?}\n{kernel}",
                    found[i],
                    expected[i]
                );
            }
        }
    }
}
