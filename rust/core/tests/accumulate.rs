//! Cotangents of slices, which a host may add to the slice of the sum: the sums, and the elements written.

use oxigrad_core::autodiff::replay::Host;
use oxigrad_core::autodiff::rule::Rules;
use oxigrad_core::autodiff::tape::{Id, Origin, Tape, Value, View};
use oxigrad_core::op::{Op, Structured};
use oxigrad_core::scalar::Scalar;

/// A vector, or nothing.
#[derive(Clone, Debug, PartialEq)]
struct Vector(Option<Vec<f64>>);

impl Value for Vector {
    fn absent() -> Self {
        Self(None)
    }
    fn is_absent(&self) -> bool {
        self.0.is_none()
    }
    fn number(&self) -> Option<f64> {
        None
    }
    fn from_number(number: f64) -> Self {
        Self(Some(vec![number]))
    }
    fn scalar(&self) -> Option<Scalar> {
        None
    }
    fn from_scalar(scalar: Scalar) -> Self {
        Self(Some(vec![scalar.number]))
    }
}

/// The elements of a vector of `length` that an entry reads.
#[derive(Clone, Debug)]
struct Slice {
    start: usize,
    end: usize,
    length: usize,
}

/// A host of two ops, `index` and `concat`, that counts the elements that it writes.
struct Slices {
    rules: Rules,
    in_place: bool,
    written: usize,
}

impl Slices {
    fn new(in_place: bool) -> Self {
        Self { rules: Rules::default(), in_place, written: 0 }
    }

    fn zeros(&mut self, length: usize) -> Vec<f64> {
        self.written += length;
        vec![0.0; length]
    }
}

impl Host<Vector, Slice> for Slices {
    type Error = String;
    type Flow = Vector;

    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn pullback(&mut self, entry: &View<'_, Vector, Slice>, which: usize, g: &Vector) -> Result<Vector, String> {
        let (Some(slice), Some(g)) = (entry.attributes, &g.0) else { return Ok(Vector(None)) };
        if entry.origin == Origin::Op(Op::Structured(Structured::Concat)) {
            return Ok(Vector(Some(g[which * slice.length..(which + 1) * slice.length].to_vec())));
        }
        let mut pulled = self.zeros(slice.length);
        pulled[slice.start..slice.end].copy_from_slice(g);
        Ok(Vector(Some(pulled)))
    }

    fn pull_into(
        &mut self,
        entry: &View<'_, Vector, Slice>,
        _: usize,
        g: &Vector,
        sum: &mut Vector,
    ) -> Result<bool, String> {
        if entry.origin != Origin::Op(Op::Structured(Structured::Index)) || !self.in_place {
            return Ok(false);
        }
        let (Some(slice), Some(g)) = (entry.attributes, &g.0) else { return Ok(false) };
        let mut elements = sum.0.take().unwrap_or_else(|| self.zeros(slice.length));
        elements[slice.start..slice.end].iter_mut().zip(g).for_each(|(sum, term)| *sum += term);
        self.written += g.len();
        sum.0 = Some(elements);
        Ok(true)
    }

    fn pull_together(&mut self, _: &View<'_, Vector, Slice>, _: &Vector) -> Result<Option<Vec<Vector>>, String> {
        Ok(None)
    }

    fn pushforward(&mut self, _: &View<'_, Vector, Slice>, _: &[&Vector]) -> Result<Vector, String> {
        Err("these tests replay in reverse only".into())
    }

    fn add(&mut self, a: Vector, b: Vector) -> Result<Vector, String> {
        let (a, b) = (a.0.unwrap_or_default(), b.0.unwrap_or_default());
        self.written += a.len();
        Ok(Vector(Some(a.iter().zip(&b).map(|(a, b)| a + b).collect())))
    }

    fn pulse(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// The gradient of `concat` of every element of a vector, and how many elements were written.
fn gradient(length: usize, in_place: bool) -> (Vec<f64>, usize) {
    let mut tape: Tape<Vector, Slice> = Tape::default();
    let x = tape.watch(Vector(None));
    let items: Vec<Id> = (0..length)
        .map(|start| {
            let slice = Slice { start, end: start + 1, length };
            tape.push(Op::Structured(Structured::Index), &[x], Some(slice), Vector(None))
        })
        .collect();
    let whole = Slice { start: 0, end: 1, length: 1 };
    let y = tape.push(Op::Structured(Structured::Concat), &items, Some(whole), Vector(None));
    #[allow(clippy::cast_precision_loss, reason = "the vectors are short")]
    let seed = (0..length).map(|at| at as f64).collect();
    let mut host = Slices::new(in_place);
    let found = tape.replay(vec![(y, Vector(Some(seed)))], &[x], false, &mut host).expect("every op has a rule");
    (found[0].0.clone().unwrap_or_default(), host.written)
}

#[test]
fn slices_that_are_added_in_place_give_the_same_sums() {
    for length in [1, 2, 17] {
        assert_eq!(gradient(length, true).0, gradient(length, false).0);
    }
}

#[test]
fn every_element_of_a_vector_costs_a_constant_number_of_writes() {
    for length in [8, 64, 512] {
        assert_eq!(gradient(length, true).1, 2 * length);
        assert!(gradient(length, false).1 >= length * length);
    }
}
