//! Every executor against the meaning of a program, evaluated element by element.

use oxigrad_core::buffer::{Buffer, Dtype};
use oxigrad_core::exec::{self, Batch, Leaf, Scratch};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::lane::{Lane, dispatch::Isa};
use oxigrad_core::noise::uniform;
use oxigrad_core::op::{Binary, Elementwise, Ternary, Unary, Visitor};
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
    if dtype == Dtype::F32 { f64::from(f32::splat(value)) } else { value }
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

/// The program as it is written, one element after the other.
fn evaluate(nodes: &[Node], scalars: &[f64], case: &Case) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    for node in nodes {
        let value = match *node {
            Node::Leaf(k) => Value::Array(case.inputs[k as usize].iter().map(|x| rounded(case.dtype, *x)).collect()),
            Node::Scalar(k) => Value::Scalar(scalars[k as usize]),
            Node::Constant(value) => Value::Scalar(value),
            Node::Noise(draw) => {
                Value::Array((0..case.length as u64).map(|i| f64::from(uniform(case.key, draw, i))).collect())
            }
            Node::Sum(arg) => Value::Scalar(sum(case.dtype, case.length, &values[arg as usize])),
            Node::Total(..) => unreachable!("totals.rs tests them"),
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
        };
        values.push(value);
    }
    values
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// How an array lies in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Plain,
    Unaligned,
    Every(isize),
    Rows,
}

/// An array in memory of its own, with room for the layout.
struct Held {
    bytes: Vec<u8>,
    buffer: Buffer,
    dtype: Dtype,
    places: Vec<usize>,
}

impl Held {
    fn new(values: &[f64], dtype: Dtype, shape: Shape) -> Self {
        let (n, size) = (values.len(), dtype.size());
        let mut bytes = vec![0u8; 3 * n * size + 64];
        let start = bytes.as_mut_ptr();
        let signed = |x: usize| isize::try_from(x).unwrap();
        let (places, buffer): (Vec<usize>, _) = match shape {
            Shape::Plain | Shape::Unaligned => {
                let first = usize::from(shape == Shape::Unaligned);
                let places = (0..n).map(|i| first + i * size).collect();
                (places, Buffer::contiguous(start.wrapping_add(first), n, dtype, true))
            }
            Shape::Every(step) => {
                let far = step.unsigned_abs() * size;
                let first = if step < 0 { 3 + far * n.saturating_sub(1) } else { 3 };
                let stride = signed(size) * step;
                let places = (0..n).map(|i| first.wrapping_add_signed(stride * signed(i))).collect();
                (places, Buffer::strided(start.wrapping_add(first), &[n], &[stride], dtype, true))
            }
            Shape::Rows => {
                // Rows of three in columns' order, if the length allows it.
                let rows = if n % 3 == 0 { 3 } else { 1 };
                let columns = n / rows;
                let places = (0..n).map(|i| (i / columns.max(1) + i % columns.max(1) * rows) * size).collect();
                let strides = [signed(size), signed(size * rows)];
                (places, Buffer::strided(start, &[rows, columns], &strides, dtype, true))
            }
        };
        let mut held = Self { bytes, buffer: buffer.unwrap(), dtype, places };
        (0..n).for_each(|i| held.set(i, values[i]));
        held
    }

    fn set(&mut self, i: usize, value: f64) {
        let at = self.places[i];
        match self.dtype {
            Dtype::F32 => self.bytes[at..at + 4].copy_from_slice(&f32::splat(value).to_ne_bytes()),
            Dtype::F64 => self.bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes()),
            Dtype::Bool => self.bytes[at] = u8::from(value != 0.0),
            #[allow(clippy::cast_possible_truncation)]
            _ => self.bytes[at..at + 4].copy_from_slice(&(value as i32).to_ne_bytes()),
        }
    }

    fn get(&self, i: usize) -> f64 {
        let at = self.places[i];
        match self.dtype {
            Dtype::F32 => f64::from(f32::from_ne_bytes(self.bytes[at..at + 4].try_into().unwrap())),
            Dtype::F64 => f64::from_ne_bytes(self.bytes[at..at + 8].try_into().unwrap()),
            Dtype::Bool => f64::from(self.bytes[at]),
            _ => f64::from(i32::from_ne_bytes(self.bytes[at..at + 4].try_into().unwrap())),
        }
    }

    fn all(&self) -> Vec<f64> {
        (0..self.places.len()).map(|i| self.get(i)).collect()
    }
}

const INPUTS: usize = 3;
const SCALARS: usize = 2;

fn program() -> impl Strategy<Value = Vec<Node>> {
    let apply = (0..Elementwise::ALL.len(), any::<[prop::sample::Index; 3]>(), 0..12u8);
    prop::collection::vec(apply, 1..14).prop_map(|steps| {
        let mut nodes = vec![Node::Leaf(0), Node::Leaf(1), Node::Leaf(2), Node::Scalar(0), Node::Scalar(1)];
        nodes.extend([Node::Constant(2.0), Node::Constant(-0.75), Node::Noise(0), Node::Noise(3)]);
        for (op, args, fate) in steps {
            let args = args.map(|arg| u32::try_from(arg.index(nodes.len())).unwrap());
            let sums = nodes.iter().filter(|node| matches!(node, Node::Sum(_))).count();
            nodes.push(match fate {
                0 if sums < 2 => Node::Sum(args[0]),
                _ => Node::Apply(Elementwise::ALL[op], args),
            });
        }
        nodes
    })
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
    prop_oneof![Just(0), 1..40usize, 500..530usize, 1015..1030usize, Just(2048), 4090..4100usize, Just(9000)]
}

#[derive(Clone, Debug)]
struct LeafCase {
    length: usize,
    dtype: Dtype,
    inputs: Vec<(Dtype, Shape)>,
    outputs: Vec<(bool, Dtype, Shape)>,
    seed: u64,
    set: usize,
}

fn leaf_case() -> impl Strategy<Value = LeafCase> {
    let compute = prop_oneof![Just(Dtype::F32), Just(Dtype::F64)];
    let of = |same: Dtype| prop_oneof![4 => Just(same), 1 => Just(Dtype::F32), 1 => Just(Dtype::F64)];
    compute.prop_flat_map(move |dtype| {
        let read = prop_oneof![6 => of(dtype), 1 => Just(Dtype::Bool), 1 => Just(Dtype::I32)];
        let inputs = prop::collection::vec((read, shape()), INPUTS);
        let outputs = prop::collection::vec((any::<bool>(), of(dtype), shape()), 2);
        (length(), inputs, outputs, any::<u64>(), 0..2usize).prop_map(move |(length, inputs, outputs, seed, set)| {
            LeafCase { length, dtype, inputs, outputs, seed, set }
        })
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
    inputs: Vec<Held>,
    apart: Vec<Option<Held>>,
    in_place: Vec<Option<usize>>,
    case: Case,
}

fn prepare(leaf: &LeafCase) -> Prepared {
    let column = |k: u32| (0..leaf.length).map(|i| number(leaf.seed, k, i)).collect::<Vec<_>>();
    let inputs: Vec<Held> =
        leaf.inputs.iter().zip(0..).map(|((dtype, shape), k)| Held::new(&column(k), *dtype, *shape)).collect();
    let in_place: Vec<Option<usize>> = (0..leaf.outputs.len())
        .map(|k| (leaf.outputs[k].0 && matches!(inputs[k].dtype, Dtype::F32 | Dtype::F64)).then_some(k))
        .collect();
    let zeros = vec![0.0; leaf.length];
    let apart = leaf.outputs.iter().zip(&in_place);
    let apart =
        apart.map(|((_, dtype, shape), place)| place.is_none().then(|| Held::new(&zeros, *dtype, *shape))).collect();
    let read = inputs.iter().map(Held::all).collect();
    let case = Case { inputs: read, length: leaf.length, dtype: leaf.dtype, key: leaf.seed };
    Prepared { inputs, apart, in_place, case }
}

impl Prepared {
    fn output(&self, k: usize) -> &Held {
        self.apart[k].as_ref().unwrap_or_else(|| &self.inputs[self.in_place[k].unwrap()])
    }
}

fn check(nodes: &[Node], outputs: &[u32], leaves: &[LeafCase], scalars: &[f64], isa: Isa, threads: usize) {
    let kernel = Kernel::compile(nodes, outputs).unwrap();
    let prepared: Vec<Prepared> = leaves.iter().map(prepare).collect();
    let buffers: Vec<(Vec<Buffer>, Vec<Buffer>)> = prepared
        .iter()
        .map(|leaf| {
            let inputs = leaf.inputs.iter().map(|held| held.buffer.clone()).collect();
            (inputs, (0..outputs.len()).map(|k| leaf.output(k).buffer.clone()).collect())
        })
        .collect();
    let run: Vec<Leaf> = leaves
        .iter()
        .zip(&buffers)
        .map(|(leaf, (inputs, outputs))| Leaf {
            inputs,
            outputs,
            length: leaf.length,
            dtype: leaf.dtype,
            scalar_set: leaf.set,
            noise_key: leaf.seed,
        })
        .collect();
    if threads == 0 {
        let mut scratch = Scratch::default();
        for leaf in &run {
            // SAFETY: the arrays are alive and apart.
            unsafe { exec::run_one(&kernel, &scalars[..kernel.scalar_inputs() * 2], leaf, isa, &mut scratch) }.unwrap();
        }
    } else {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let batch = Batch { kernel: &kernel, scalars: &scalars[..kernel.scalar_inputs() * 2], leaves: &run };
        // SAFETY: the arrays are alive and apart.
        unsafe { exec::run(&[batch], isa, Some(&pool)) }.unwrap();
    }
    for (number, (leaf, prepared)) in leaves.iter().zip(&prepared).enumerate() {
        let set = &scalars[leaf.set * kernel.scalar_inputs()..];
        let padded: Vec<f64> = (0..SCALARS).map(|k| set.get(k).copied().unwrap_or(0.0)).collect();
        let values = evaluate(nodes, &padded, &prepared.case);
        for (k, output) in outputs.iter().enumerate() {
            let held = prepared.output(k);
            for i in 0..leaf.length {
                let expected = rounded(held.dtype, rounded(leaf.dtype, values[*output as usize].at(i)));
                assert!(
                    same(held.get(i), expected),
                    "{isa:?}, {threads} threads, leaf {number}, output {k}, element {i}: {} is not {expected}\n{kernel}",
                    held.get(i)
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_executor_gives_the_bits_of_the_meaning(
        nodes in program(),
        leaves in prop::collection::vec(leaf_case(), 1..4),
        picks in any::<[prop::sample::Index; 2]>(),
        scalars in any::<[f64; 2 * SCALARS]>(),
    ) {
        let late = |pick: prop::sample::Index| u32::try_from(nodes.len() - 1 - pick.index(nodes.len().min(6))).unwrap();
        let outputs = [late(picks[0]), late(picks[1])];
        for isa in Isa::available() {
            for threads in [0, 1, 2, 7] {
                check(&nodes, &outputs, &leaves, &scalars, isa, threads);
            }
        }
    }
}

/// Leaves large enough for many tasks, in several phases: `p - g * (0.1 / sqrt(sum(g * g)))`, and the sum itself.
#[test]
fn sums_and_large_leaves_are_the_same_for_any_number_of_threads() {
    use Elementwise::{Divide, Multiply, Sqrt, Subtract};
    let apply = |op, a, b| Node::Apply(op, [a, b, 0]);
    let mut nodes = vec![Node::Leaf(0), Node::Leaf(1), Node::Leaf(2), Node::Scalar(0), apply(Multiply, 1, 1)];
    nodes.extend([Node::Sum(4), apply(Sqrt, 5, 0), apply(Divide, 3, 6), apply(Multiply, 1, 7), apply(Subtract, 0, 8)]);
    let plain = |dtype| (dtype, Shape::Plain);
    let leaves: Vec<LeafCase> = [(100_000, Dtype::F32), (0, Dtype::F64), (70_001, Dtype::F64), (5, Dtype::F32)]
        .into_iter()
        .zip(0..)
        .map(|((length, dtype), seed)| LeafCase {
            length,
            dtype,
            inputs: vec![plain(dtype); INPUTS],
            outputs: vec![(true, dtype, Shape::Plain), (false, dtype, Shape::Every(2))],
            seed,
            set: 0,
        })
        .collect();
    for isa in Isa::available() {
        for threads in [0, 1, 2, 7] {
            check(&nodes, &[9, 5], &leaves, &[0.1; 4], isa, threads);
        }
    }
}

#[test]
fn what_no_kernel_can_do_is_an_error() {
    use oxigrad_core::error::Error;
    let square = [Node::Leaf(0), Node::Apply(Elementwise::Multiply, [0, 0, 0])];
    assert!(matches!(Kernel::compile(&[Node::Apply(Elementwise::Sqrt, [0, 0, 0])], &[0]), Err(Error::Rule(_))));
    assert!(matches!(Kernel::compile(&square, &[2]), Err(Error::Rule(_))));

    let kernel = Kernel::compile(&square, &[1]).unwrap();
    let mut memory = [0.0f64; 9];
    let start = memory.as_mut_ptr();
    let at = |first: usize, dtype, writable| {
        Buffer::contiguous(start.wrapping_add(first).cast(), 4, dtype, writable).unwrap()
    };
    let run = |input: Buffer, output: Buffer, length, dtype| {
        let (inputs, outputs) = ([input], [output]);
        let leaf = Leaf { inputs: &inputs, outputs: &outputs, length, dtype, scalar_set: 0, noise_key: 0 };
        let batch = Batch { kernel: &kernel, scalars: &[], leaves: &[leaf] };
        // SAFETY: the array is alive and used by nobody else.
        unsafe { exec::run(&[batch], Isa::detect(), None) }.map(|results| assert_eq!(results, Some(vec![vec![]])))
    };
    let f64_at = |first| at(first, Dtype::F64, true);
    assert!(matches!(run(f64_at(0), f64_at(4), 4, Dtype::I64), Err(Error::Dtype(_))));
    assert!(matches!(run(f64_at(0), at(4, Dtype::I64, true), 4, Dtype::F64), Err(Error::Dtype(_))));
    assert!(matches!(run(f64_at(0), at(4, Dtype::F64, false), 4, Dtype::F64), Err(Error::Memory(_))));
    assert!(matches!(run(f64_at(0), f64_at(4), 3, Dtype::F64), Err(Error::Shape(_))));
    assert!(matches!(run(f64_at(0), f64_at(1), 4, Dtype::F64), Err(Error::Alias(_))));
    assert!(matches!(run(f64_at(0), at(0, Dtype::F32, true), 4, Dtype::F64), Err(Error::Alias(_))));
    assert_eq!(run(f64_at(0), f64_at(4), 4, Dtype::F64), Ok(()));
}

#[test]
fn programs_are_simplified() {
    let apply = |op, a, b| Node::Apply(op, [a, b, 0]);
    let mut nodes = vec![Node::Leaf(0), Node::Leaf(1), Node::Scalar(0), Node::Constant(2.0)];
    nodes.push(apply(Elementwise::Pow, 0, 3));
    nodes.push(apply(Elementwise::Multiply, 0, 0));
    nodes.push(apply(Elementwise::Add, 4, 5));
    nodes.push(apply(Elementwise::Multiply, 2, 3));
    nodes.push(apply(Elementwise::Multiply, 7, 6));
    nodes.push(apply(Elementwise::Exp, 1, 0));
    let kernel = Kernel::compile(&nodes, &[8]).unwrap();
    let listing = "s0 = scalar0\ns1 = 2.0\ns2 = multiply(s0, s1)\nphase 0: 1 registers\n  r0 = multiply(in0, in0)\n  \
                   r0 = add(r0, r0)\n  out0 = multiply(s2, r0)\n";
    assert_eq!(kernel.to_string(), listing);
    assert_eq!(
        (kernel.leaf_inputs(), kernel.scalar_inputs(), kernel.reads_leaf(0), kernel.reads_leaf(1)),
        (1, 1, true, false)
    );
}
