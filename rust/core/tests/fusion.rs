//! The fused program against the rules computed one by one, over arrays that are vectors of Rust's.

use std::cell::Cell;
use std::rc::Rc;

use oxigrad_core::array::buffer::{Buffer, Dtype};
use oxigrad_core::array::view::ArrayView;
use oxigrad_core::autodiff::fusion::{Arrays, Cotangent, Fusion};
use oxigrad_core::autodiff::rule::{Rule, Source};
use oxigrad_core::autodiff::tape::{self, Id, Tape};
use oxigrad_core::error;
use oxigrad_core::exec::{self, Batch};
use oxigrad_core::kernel::{Kernel, Node};
use oxigrad_core::op::{Elementwise, Op};
use oxigrad_core::scalar::Scalar;
use oxigrad_core::simd::dispatch::Isa;
use proptest::prelude::*;

/// A value of the test's tapes: an array of one axis, a number, or nothing.
#[derive(Clone, Debug)]
enum Array {
    Absent,
    Number(f64),
    Vector(Rc<Vec<f64>>),
}

impl tape::Value for Array {
    fn absent() -> Self {
        Self::Absent
    }

    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    fn from_number(number: f64) -> Self {
        Self::Number(number)
    }

    fn scalar(&self) -> Option<Scalar> {
        self.number().map(Scalar::weak)
    }

    fn from_scalar(scalar: Scalar) -> Self {
        Self::Number(scalar.number)
    }
}

/// A host that counts the kernels that ran, the arrays that they wrote and those that were retired.
#[derive(Default)]
struct Vectors {
    kernels: Cell<usize>,
    outputs: Cell<usize>,
    retired: Cell<usize>,
}

struct Held {
    _vector: Rc<Vec<f64>>,
    view: ArrayView,
}

const LARGE: usize = 4;

impl Arrays for Vectors {
    type Value = Array;
    type Held = Held;
    type Error = error::Error;

    fn share(&self, value: &Array) -> Array {
        value.clone()
    }

    fn is_same(&self, a: &Array, b: &Array) -> bool {
        matches!((a, b), (Array::Vector(a), Array::Vector(b)) if Rc::ptr_eq(a, b))
    }

    fn is_large(&self, value: &Array) -> bool {
        matches!(value, Array::Vector(vector) if vector.len() >= LARGE)
    }

    fn hold(&self, value: &Array) -> error::Result<Option<Held>> {
        let Array::Vector(vector) = value else { return Ok(None) };
        let view = ArrayView {
            pointer: vector.as_ptr().cast_mut().cast(),
            extents: [vector.len()][..].into(),
            strides: [8][..].into(),
            dtype: Some(Dtype::F64),
            writable: false,
        };
        Ok(Some(Held { _vector: vector.clone(), view }))
    }

    fn view<'h>(&self, held: &'h Held) -> &'h ArrayView {
        &held.view
    }

    fn compute(
        &self,
        kernel: &Kernel,
        inputs: &[Buffer],
        outputs: usize,
        shape: &[usize],
        dtype: Dtype,
    ) -> error::Result<Vec<Array>> {
        self.kernels.set(self.kernels.get() + 1);
        self.outputs.set(self.outputs.get() + outputs);
        let mut vectors = vec![vec![0.0f64; shape[0]]; outputs];
        let buffer = |vector: &mut Vec<f64>| Buffer::contiguous(vector.as_mut_ptr().cast(), shape[0], dtype, true);
        let buffers = vectors.iter_mut().map(buffer).collect::<error::Result<Vec<_>>>()?;
        let leaf =
            exec::Leaf { inputs, outputs: &buffers, length: shape[0], dtype, scalar_set: 0, noise_key: 0, first: 0 };
        // SAFETY: the program holds the inputs, and the outputs are new.
        unsafe { exec::run(&[Batch { kernel, scalars: &[], leaves: &[leaf] }], Isa::detect(), None) }?;
        Ok(vectors.into_iter().map(|vector| Array::Vector(Rc::new(vector))).collect())
    }

    fn retire(&self, _value: Array) {
        self.retired.set(self.retired.get() + 1);
    }

    fn error(&self, error: error::Error) -> error::Error {
        error
    }
}

type Flow = Cotangent<Array>;

fn vector(numbers: &[f64]) -> Array {
    Array::Vector(Rc::new(numbers.to_vec()))
}

/// The rule of `multiply` with respect to the first argument: `g * x2`.
fn times_second() -> Rule {
    let nodes = vec![Node::Leaf(0), Node::Leaf(1), Node::Apply(Elementwise::Multiply, [0, 1, 0])];
    Rule { sources: vec![Source::Cotangent, Source::Arg(1)], nodes }
}

/// The rule of `exp`, with a constant: `2 * g * y`.
fn twice_result() -> Rule {
    let nodes = vec![
        Node::Leaf(0),
        Node::Leaf(1),
        Node::Constant(2.0),
        Node::Apply(Elementwise::Multiply, [0, 1, 0]),
        Node::Apply(Elementwise::Multiply, [2, 3, 0]),
    ];
    Rule { sources: vec![Source::Cotangent, Source::Result], nodes }
}

/// A tape with one entry `multiply(x1, x2)`.
fn product(x1: Array, x2: Array, result: Array) -> (Tape<Array, ()>, Id) {
    let mut tape = Tape::default();
    let args = [tape.watch(x1), tape.watch(x2)];
    let id = tape.push(Op::Elementwise(Elementwise::Multiply), &args, None, result);
    (tape, id)
}

fn numbers(value: &Array) -> Vec<f64> {
    match value {
        Array::Vector(vector) => vector.to_vec(),
        Array::Number(_) | Array::Absent => panic!("{value:?} is no vector"),
    }
}

fn resolved(fusion: &mut Fusion<Vectors>, host: &Vectors, cotangent: &Flow) -> Vec<f64> {
    numbers(&fusion.resolve(host, cotangent).expect("the kernel runs"))
}

fn defer(fusion: &mut Fusion<Vectors>, host: &Vectors, rule: &Rule, x2: Array, g: &Flow) -> Option<Flow> {
    let (tape, id) = product(Array::Absent, x2.clone(), x2);
    fusion.defer(host, rule, &tape.view(id), g).expect("the arrays can be read")
}

#[test]
fn a_chain_of_rules_is_one_kernel_with_one_output() {
    let (host, mut fusion) = (Vectors::default(), Fusion::default());
    let x = vector(&[1.0, 2.0, 3.0, 4.0]);
    let mut g = Flow::Known(vector(&[1.0; 4]));
    for _ in 0..3 {
        g = defer(&mut fusion, &host, &times_second(), x.clone(), &g).expect("it is large");
    }
    assert_eq!(host.kernels.get(), 0);
    assert_eq!(resolved(&mut fusion, &host, &g), [1.0, 8.0, 27.0, 64.0]);
    assert_eq!((host.kernels.get(), host.outputs.get(), host.retired.get()), (1, 1, 2));
    assert_eq!(resolved(&mut fusion, &host, &g), [1.0, 8.0, 27.0, 64.0]);
    assert_eq!(host.kernels.get(), 1);
}

#[test]
fn all_that_is_referred_to_is_computed_together() {
    let (host, mut fusion) = (Vectors::default(), Fusion::default());
    let seed = Flow::Known(vector(&[1.0; 4]));
    let a = defer(&mut fusion, &host, &times_second(), Array::Number(3.0), &seed).expect("it is large");
    let b = defer(&mut fusion, &host, &twice_result(), vector(&[0.5; 4]), &a).expect("it is large");
    let sum = fusion.add(&host, &a, &b).expect("the arrays can be read").expect("both are deferred");
    assert_eq!(resolved(&mut fusion, &host, &sum), [6.0; 4]);
    assert_eq!((host.kernels.get(), host.outputs.get()), (1, 3));
    assert_eq!((resolved(&mut fusion, &host, &a), resolved(&mut fusion, &host, &b)), (vec![3.0; 4], vec![3.0; 4]));
    assert!(a.into_computed().is_some());
}

#[test]
fn small_arrays_numbers_and_other_values_are_not_deferred() {
    let (host, mut fusion) = (Vectors::default(), Fusion::default());
    let rule = times_second();
    for g in [vector(&[1.0; 3]), Array::Number(1.0), Array::Absent] {
        assert!(defer(&mut fusion, &host, &rule, Array::Number(1.0), &Flow::Known(g)).is_none());
    }
    let g = Flow::Known(vector(&[1.0; 4]));
    assert!(defer(&mut fusion, &host, &rule, Array::Absent, &g).is_none());
    assert!(defer(&mut fusion, &host, &rule, vector(&[1.0; 3]), &g).is_none());
    let known = Flow::Known(vector(&[2.0; 4]));
    assert!(fusion.add(&host, &g, &known).is_ok_and(|sum| sum.is_none()));
    assert_eq!(host.kernels.get(), 0);
}

#[test]
fn another_shape_runs_the_program_first() {
    let (host, mut fusion) = (Vectors::default(), Fusion::default());
    let rule = times_second();
    let four = defer(&mut fusion, &host, &rule, Array::Number(2.0), &Flow::Known(vector(&[1.0; 4])));
    let five = defer(&mut fusion, &host, &rule, Array::Number(3.0), &Flow::Known(vector(&[1.0; 5])));
    let (four, five) = (four.expect("it is large"), five.expect("it is large"));
    assert_eq!((host.kernels.get(), four.computed().is_some(), five.computed().is_some()), (1, true, false));
    assert!(fusion.add(&host, &four, &five).is_ok_and(|sum| sum.is_none()));
    assert_eq!(resolved(&mut fusion, &host, &five), [3.0; 5]);
}

#[test]
fn a_long_program_runs_before_it_is_asked_for() {
    let (host, mut fusion) = (Vectors::default(), Fusion::default());
    let mut g = Flow::Known(vector(&[1.0; 4]));
    for _ in 0..256 {
        g = defer(&mut fusion, &host, &times_second(), Array::Number(1.0), &g).expect("it is large");
    }
    assert!(host.kernels.get() > 0);
    assert_eq!(resolved(&mut fusion, &host, &g), [1.0; 4]);
    let mut g = Flow::Known(vector(&[1.0; 4]));
    let before = host.kernels.get();
    for _ in 0..=32 {
        g = defer(&mut fusion, &host, &times_second(), vector(&[1.0; 4]), &g).expect("it is large");
    }
    assert_eq!((host.kernels.get(), resolved(&mut fusion, &host, &g)), (before + 1, vec![1.0; 4]));
}

#[test]
fn what_nobody_refers_to_is_not_computed() {
    let (host, mut fusion) = (Vectors::default(), Fusion::default());
    let g = Flow::Known(vector(&[1.0; 4]));
    drop(defer(&mut fusion, &host, &times_second(), Array::Number(2.0), &g));
    let other = Flow::Known(vector(&[1.0; 5]));
    let kept = defer(&mut fusion, &host, &times_second(), Array::Number(2.0), &other).expect("it is large");
    assert_eq!(host.kernels.get(), 0);
    assert_eq!(resolved(&mut fusion, &host, &kept), [2.0; 5]);
}

/// An action of a random replay: the known cotangents that it reads, and its use of them.
#[derive(Clone, Debug)]
enum Step {
    Rule { g: usize, is_square: bool, operand: Operand },
    Add(usize, usize),
    Resolve(usize),
    Drop(usize),
}

#[derive(Clone, Debug)]
enum Operand {
    Number(f64),
    Vector(usize),
    One(f64),
}

fn step() -> impl Strategy<Value = Step> {
    let operand = prop_oneof![
        (-2i8..3).prop_map(|number| Operand::Number(number.into())),
        (0usize..4).prop_map(Operand::Vector),
        (-2i8..3).prop_map(|number| Operand::One(number.into())),
    ];
    prop_oneof![
        4 => (0usize..64, any::<bool>(), operand).prop_map(|(g, is_square, operand)| Step::Rule { g, is_square, operand }),
        3 => (0usize..64, 0usize..64).prop_map(|(a, b)| Step::Add(a, b)),
        1 => (0usize..64).prop_map(Step::Resolve),
        1 => (0usize..64).prop_map(Step::Drop),
    ]
}

proptest! {
    /// The model computes each rule at once, by the same operations on numbers.
    #[test]
    fn deferred_cotangents_are_those_of_the_rules_one_by_one(
        lengths in (4usize..9, 4usize..9),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let (host, mut fusion) = (Vectors::default(), Fusion::default());
        let vectors: Vec<Array> = [lengths.0, lengths.1, lengths.0, lengths.1].iter().enumerate().map(|(at, length)| {
            vector(&(0..*length).map(|index| f64::from(u32::try_from((index + at) % 3).expect("small")) - 1.0).collect::<Vec<_>>())
        }).collect();
        let mut model: Vec<Vec<f64>> = vec![vec![1.0; lengths.0], vec![-1.0; lengths.1]];
        let mut flows: Vec<Flow> = model.iter().map(|numbers| Flow::Known(vector(numbers))).collect();
        for step in steps {
            match step {
                Step::Rule { g, is_square, operand } => {
                    let g = g % flows.len();
                    let length = model[g].len();
                    let (x2, plain) = match operand {
                        Operand::Number(number) => (Array::Number(number), vec![number; length]),
                        Operand::One(number) => (vector(&[number]), vec![number; length]),
                        Operand::Vector(which) => (vectors[which].clone(), numbers(&vectors[which])),
                    };
                    let rule = if is_square { twice_result() } else { times_second() };
                    let found = defer(&mut fusion, &host, &rule, x2, &flows[g]);
                    prop_assert_eq!(found.is_some(), plain.len() == length);
                    if let Some(found) = found {
                        let factor = if is_square { 2.0 } else { 1.0 };
                        model.push(model[g].iter().zip(&plain).map(|(g, x)| factor * (g * x)).collect());
                        flows.push(found);
                    }
                }
                Step::Add(a, b) => {
                    let (a, b) = (a % flows.len(), b % flows.len());
                    let sum = fusion.add(&host, &flows[a], &flows[b]).expect("the arrays can be read");
                    if let Some(sum) = sum {
                        prop_assert_eq!(model[a].len(), model[b].len());
                        model.push(model[a].iter().zip(&model[b]).map(|(a, b)| a + b).collect());
                        flows.push(sum);
                    }
                }
                Step::Resolve(at) => {
                    let at = at % flows.len();
                    prop_assert_eq!(resolved(&mut fusion, &host, &flows[at]), model[at].clone());
                }
                Step::Drop(at) if flows.len() > 2 => {
                    let at = at % flows.len();
                    flows.swap_remove(at);
                    model.swap_remove(at);
                }
                Step::Drop(_) => {}
            }
        }
        for (flow, expected) in flows.iter().zip(&model) {
            prop_assert_eq!(&resolved(&mut fusion, &host, flow), expected);
        }
    }
}
