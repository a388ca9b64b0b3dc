//! The computation of a run, step after step. One of the files that touch foreign memory.

use super::memory::{copy, number_at, scatter, spread};
use super::nodes::{Elements, Onto, Work};
use super::values::{GRAIN, LINE, Step};
use crate::array::buffer::{Buffer, Dtype};
use crate::array::matmul::{Factor, Product};
use crate::exec::loops::BoundLoop;
use crate::kernel::fuse::LoopWork;
use crate::op::Elementwise;
use crate::scalar::{Condition, Precision, Scalar};
use crate::simd::dispatch::Isa;
use crate::simd::{Lane, Simd, Task};

/// The steps of a run over memory; the result tells whether the conditions of all calls hold.
pub(super) struct Sweep<'a> {
    works: &'a [Work],
    steps: &'a [Step],
    memory: *mut u8,
    isa: Isa,
}

/// A work with the loop of an instruction set.
enum Bound<'a> {
    Loop(BoundLoop, usize),
    /// A loop of one number, with a condition.
    Checked(BoundLoop, usize, Elementwise, Condition, Dtype),
    Other(&'a Work),
}

impl<'a> Sweep<'a> {
    /// # Safety
    /// The memory has the lines of the run, in which its loads are filled.
    pub unsafe fn new(works: &'a [Work], steps: &'a [Step], memory: *mut u8, isa: Isa) -> Self {
        Self { works, steps, memory, isa }
    }

    #[inline(always)]
    fn at(&self, grain: u32) -> *mut u8 {
        self.memory.wrapping_add(grain as usize * GRAIN)
    }

    /// Computes what is no loop; returns whether its index is in range.
    #[inline(never)]
    fn other(&self, work: &Work, Step { to, from, .. }: &Step) -> bool {
        let (to, from) = (self.at(*to), from.map(|grain| self.at(grain)));
        let buffer =
            |pointer, length, dtype| Buffer::contiguous(pointer, length, dtype, true).expect("it is in memory");
        // The first of elements, whose index is the argument at a position.
        let first = |elements: &Elements, at: usize| {
            // SAFETY: a place has a number at least.
            let index = elements.index.map_or(0.0, |_| unsafe { number_at(from[at].cast_const(), Dtype::F64) });
            elements.first(index)
        };
        let length = match work {
            Work::Apply { .. } => unreachable!("it has a loop"),
            Work::Copy { elements, from: dtype, to: into } => {
                let Some(first) = first(elements, 1) else { return false };
                let Elements { extents, strides, .. } = elements;
                // SAFETY: the plan gave the places such extents, apart from each other.
                unsafe { copy(from[0].wrapping_offset(first), extents, strides, *dtype, to, *into) };
                extents.iter().product()
            }
            Work::Scatter { elements, length, onto, dtype } => {
                let Some(first) = first(elements, 1 + usize::from(*onto == Onto::Sum)) else { return false };
                let (Elements { extents, strides, .. }, bytes) = (elements, length * dtype.size());
                // SAFETY: the plan gave the places such lengths, apart from each other, and looked at the elements.
                unsafe {
                    match onto {
                        Onto::Zeros => to.write_bytes(0, bytes),
                        // Its place may be the result's.
                        Onto::Sum if from[1] != to => to.copy_from_nonoverlapping(from[1], bytes),
                        Onto::Sum | Onto::Place => {}
                    }
                    scatter(from[0], extents, strides, *dtype, to.wrapping_offset(first), *onto == Onto::Sum);
                }
                *length
            }
            Work::Foreign(work) => {
                // SAFETY: the plan gave the places such lengths, apart from each other.
                if !unsafe { work.compute(from, to) } {
                    return false;
                }
                work.length
            }
            Work::Fold { axes, fold, dtype } => {
                let length = axes.outer * axes.inner;
                let [from, to] =
                    [(from[0], length * axes.count), (to, length)].map(|(at, length)| buffer(at, length, *dtype));
                // SAFETY: the plan gave the places such lengths, apart from each other.
                unsafe { fold.compute(&from, &to, *axes, self.isa) }.expect("it was planned");
                length
            }
            Work::Product { rows: [rows, inner, columns], factors, dtype } => {
                let factor = |at: usize| {
                    let [first, row, column] = factors[at];
                    Factor { pointer: from[at].wrapping_offset(first), stack: &[], row, column }
                };
                let (left, right) = (factor(0), factor(1));
                let (rows, inner, columns, dtype) = (*rows, *inner, *columns, *dtype);
                let product = Product { stack: &[], rows, inner, columns, dtype, left, right };
                // SAFETY: the plan gave the places such lengths, apart from each other.
                unsafe { product.compute(&buffer(to, rows * columns, dtype), self.isa, None) }.expect("it was planned");
                rows * columns
            }
        };
        if length == 1 {
            // SAFETY: a place of one number is a line.
            unsafe { spread(to, work.dtype()) };
        }
        true
    }
}

/// The loop of a work, and its length: one number is computed in a whole lane, which repeats it.
#[inline(always)]
fn bound<L: Lane>(op: Elementwise, moves: [bool; 3], length: usize) -> (BoundLoop, usize) {
    let bound = BoundLoop::new::<L>(LoopWork::Apply(op, [0; 3]), moves);
    (bound, if bound.is_still { LINE / size_of::<L::Element>() } else { length })
}

impl Task for Sweep<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self) -> bool {
        let works = self.works.iter().map(|work| match work {
            Work::Apply { op, moves, length, dtype, condition } => {
                let (bound, length) = match dtype {
                    Dtype::F32 => bound::<S::F32>(*op, *moves, *length),
                    _ => bound::<S::F64>(*op, *moves, *length),
                };
                match condition {
                    Condition::None => Bound::Loop(bound, length),
                    condition => Bound::Checked(bound, length, *op, *condition, *dtype),
                }
            }
            other => Bound::Other(other),
        });
        let works: Vec<Bound> = works.collect();
        for step in self.steps {
            let (to, from) = (self.at(step.to), step.from.map(|grain| self.at(grain).cast_const()));
            // SAFETY: the plan gave the places room for the lengths of the work, and those that it reads are filled; an argument that does not
            // move is a lane.
            unsafe {
                match &works[step.work as usize] {
                    Bound::Loop(bound, length) => bound.call(to, from, *length),
                    Bound::Checked(bound, length, op, condition, dtype) => {
                        bound.call(to, from, *length);
                        let precision = if *dtype == Dtype::F32 { Precision::F32 } else { Precision::F64 };
                        let result = Scalar { number: number_at(to, *dtype), precision };
                        if !condition.holds(*op, result, from.map(|from| number_at(from, *dtype))) {
                            return false;
                        }
                    }
                    Bound::Other(work) => {
                        if !self.other(work, step) {
                            return false;
                        }
                    }
                }
            }
        }
        true
    }
}
