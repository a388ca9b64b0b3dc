//! Runs of calls on small arrays and numbers over one piece of memory: each value has a place in it, which others take after its last use.
//!
//! Shapes, strides and places are resolved once, from the kinds of the values that are read. A call then costs its loop and a jump.

mod foreign;
mod matrices;
mod memory;
mod nodes;
mod places;
mod plan;
mod sweep;
mod values;
mod views;

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use self::memory::{copy, number_at};
use self::nodes::{Load, Work};
use self::plan::{Planned, Store};
use self::sweep::Sweep;
pub use self::values::{Extents, Kind, Layout, Read, SmallCall, View};
use self::values::{LINE, Step};
use crate::array::buffer::{Buffer, Dtype};
use crate::array::shape::{broadcast_strides, contiguous_strides};
use crate::scalar::Scalar;
use crate::simd::dispatch::Isa;

/// The most elements of an array whose calls are part of such a run: a few of these fit the first-level cache.
pub const MOST: usize = 1 << 11;

/// The most elements of a factor and of a product of small ones.
pub const MOST_OF_FACTORS: usize = 1 << 10;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([MaybeUninit<u8>; LINE]);

/// The memory of a thread for runs; keep it between calls.
#[derive(Default)]
pub struct Arena(Vec<Line>);

/// More lines than these are given back after a run.
const KEPT: usize = (4 << 20) / LINE;

/// Calls on small arrays and numbers, planned for values of some kinds.
#[derive(Debug)]
pub struct SmallRun {
    kinds: Vec<Kind>,
    loads: Vec<Load>,
    works: Vec<Work>,
    steps: Vec<Step>,
    stores: Vec<Store>,
    lines: usize,
}

impl SmallRun {
    /// The plan of calls on values of these kinds. The arguments of a call are positions, first among the values read, then among the calls; the
    /// results of those at `writes` are needed later. `None` where a call does not take values of their kinds.
    #[must_use]
    pub fn new(calls: &[(SmallCall, SmallVec<[usize; 3]>)], kinds: Vec<Kind>, writes: &[usize]) -> Option<Self> {
        let Planned { loads, works, steps, stores, lines } = plan::planned(calls, &kinds, writes)?;
        Some(Self { kinds, loads, works, steps, stores, lines })
    }

    /// The shape and dtype of each result; `None` for a number.
    pub fn arrays(&self) -> impl Iterator<Item = Option<(&[usize], Dtype)>> {
        self.stores.iter().map(|store| match &store.kind {
            Kind::Array(extents, dtype, _) => Some((&extents[..], *dtype)),
            Kind::Number(_) => None,
        })
    }

    /// Computes the arrays of the results into `arrays`, new and contiguous, and returns the numbers; `None`, with nothing written, where a value
    /// is of another kind than the run was planned for, or the condition of a call does not hold.
    ///
    /// # Panics
    /// Panics where the arrays do not fit.
    ///
    /// # Safety
    /// The memory of the values must be valid to read, and that of the arrays to write, for the whole call.
    pub unsafe fn compute(
        &self,
        reads: &[Read],
        arrays: &[Buffer],
        isa: Isa,
        Arena(memory): &mut Arena,
    ) -> Option<Vec<Scalar>> {
        let is_of = |(read, kind): (&Read, &Kind)| read.kind().as_ref() == Some(kind);
        if reads.len() != self.kinds.len() || !reads.iter().zip(&self.kinds).all(is_of) {
            return None;
        }
        let expected: SmallVec<[_; 4]> = self.arrays().flatten().collect();
        let is_of = |(array, (extents, dtype)): (&Buffer, &(&[usize], Dtype))| {
            array.dtype() == *dtype && array.is_contiguous() && array.len() == extents.iter().product::<usize>()
        };
        assert!(expected.len() == arrays.len() && arrays.iter().zip(&expected).all(is_of), "other arrays");
        if memory.len() < self.lines {
            memory.resize(self.lines, Line([MaybeUninit::uninit(); LINE]));
        }
        let first = memory.as_mut_ptr().cast::<u8>();
        for load in &self.loads {
            // SAFETY: the plan gave each load a place of its own, of the size of its extents; the value is of the kind that was planned for, and
            // its memory is the caller's promise.
            unsafe { load.fill(&reads[load.read], first) };
        }
        // SAFETY: the plan gave each step places within the memory, which earlier steps or loads have filled.
        let holds = isa.run(unsafe { Sweep::new(&self.works, &self.steps, first, isa) });
        let mut numbers = Vec::new();
        if holds {
            let mut arrays = arrays.iter();
            for Store { kind, place, dtype } in &self.stores {
                let from = first.wrapping_add(*place).cast_const();
                match kind {
                    Kind::Number(precision) => {
                        // SAFETY: a place has a number at least.
                        numbers.push(Scalar { number: unsafe { number_at(from, *dtype) }, precision: *precision });
                    }
                    Kind::Array(extents, into, _) => {
                        let to = arrays.next().expect("an array for each result").pointer();
                        let strides = contiguous_strides(extents, dtype.size()).expect("it is in memory");
                        // SAFETY: the place has as many numbers as the array elements, which was checked above.
                        unsafe { copy(from, extents, &strides, *dtype, to, *into) };
                    }
                }
            }
        }
        if memory.len() > KEPT {
            *memory = Vec::new();
        }
        holds.then_some(numbers)
    }
}

impl Load {
    /// Fills the place of a value.
    ///
    /// # Safety
    /// As of `SmallRun::compute`; the value is of the kind that was planned for, and the place lies at `first`.
    unsafe fn fill(&self, read: &Read, first: *mut u8) {
        let to = first.wrapping_add(self.place);
        // SAFETY: promised by the caller.
        unsafe {
            match read {
                Read::Number(scalar) => {
                    let number = std::ptr::from_ref(&scalar.number).cast();
                    copy(number, &[], &[], Dtype::F64, to, self.dtype);
                }
                Read::Array(view) => {
                    let strides = broadcast_strides(&view.extents, &view.strides, &self.extents);
                    let dtype = view.dtype.unwrap_or(self.dtype);
                    copy(view.pointer, &self.extents, &strides.expect("it was planned"), dtype, to, self.dtype);
                }
            }
            if self.is_still {
                memory::spread(to, self.dtype);
            }
        }
    }
}

#[cfg(test)]
mod tests;
