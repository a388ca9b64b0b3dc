//! Runs printed kernels where all arrays lie as a lane reads them. One of the files that touch foreign memory.

use super::block::{Part, lies_ready};
use super::gather::Compute;
use crate::buffer::Buffer;
use crate::lane::Lane;
use crate::native::{Native, NativeVisitor};

/// Runs the part if its kernel was printed and its memory is ready; says whether it did.
#[inline(always)]
pub(super) fn run<L: Lane<Element: Compute>>(part: &Part) -> bool {
    let Some(printed) = part.kernel.printed else { return false };
    let buffers = part.leaf.inputs.iter().take(part.kernel.inputs).chain(part.leaf.outputs);
    if !buffers.into_iter().all(lies_ready::<L::Element>) {
        return false;
    }
    printed.visit(Stream::<L> { part, lane: std::marker::PhantomData });
    true
}

struct Stream<'a, 'b, L> {
    part: &'a Part<'b>,
    lane: std::marker::PhantomData<L>,
}

impl<L: Lane<Element: Compute>> NativeVisitor for Stream<'_, '_, L> {
    #[inline(always)]
    fn visit<N: Native<I, S, O>, const I: usize, const S: usize, const O: usize>(self) {
        let Part { kernel, leaf, start, end, scalars, .. } = *self.part;
        let mut splats = [L::zero(); S];
        for (lane, step) in splats.iter_mut().zip(&kernel.splats) {
            *lane = L::splat(scalars[usize::from(*step)]);
        }
        let at = |buffer: &Buffer| buffer.pointer.cast::<L::Element>().wrapping_add(start);
        let mut from = [std::ptr::null_mut(); I];
        from.iter_mut().zip(leaf.inputs).for_each(|(from, buffer)| *from = at(buffer));
        let mut to = [std::ptr::null_mut(); O];
        to.iter_mut().zip(leaf.outputs).for_each(|(to, buffer)| *to = at(buffer));

        let length = end - start;
        let left = length % L::WIDTH;
        let mut values = [L::zero(); I];
        let mut i = 0;
        // SAFETY: the buffers were checked to be contiguous, of this type, with `end` elements, and their memory is what
        // the caller of `exec::run` promised; `i + WIDTH` and `i + left` are at most `length`. All inputs of a lane are
        // read before an output is written, so that either may be the other.
        unsafe {
            while i < length - left {
                for k in 0..I {
                    values[k] = L::load(from[k].add(i));
                }
                let results = N::call(values, splats);
                for k in 0..O {
                    results[k].store(to[k].add(i));
                }
                i += L::WIDTH;
            }
            if left > 0 {
                for k in 0..I {
                    values[k] = L::load_part(from[k].add(i), left);
                }
                let results = N::call(values, splats);
                for k in 0..O {
                    results[k].store_part(to[k].add(i), left);
                }
            }
        }
    }
}
