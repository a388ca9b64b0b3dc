//! The loops of functions with long code, which have it once. One of the files that touch foreign memory.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::exec::register::{Block, Loop};
use crate::simd::{Binary, Body, Code, Lane, Simd, Ternary, Unary};

/// Numbers that are widened together, a multiple of the width of any lane.
const WIDENED: usize = 128;

/// A function of `N` lanes.
pub(super) trait Function<L, const N: usize> {
    fn value(arguments: [L; N]) -> L;
}

impl<L: Lane, F: Unary<L>> Function<L, 1> for F {
    #[inline(always)]
    fn value([a]: [L; 1]) -> L {
        F::default().call(a)
    }
}

impl<L: Lane, F: Binary<L>> Function<L, 2> for F {
    #[inline(always)]
    fn value([a, b]: [L; 2]) -> L {
        F::default().call(a, b)
    }
}

impl<L: Lane, F: Ternary<L>> Function<L, 3> for F {
    #[inline(always)]
    fn value([a, b, c]: [L; 3]) -> L {
        F::default().call(a, b, c)
    }
}

/// The loop of a function of such code; `None` if that is short.
#[inline(always)]
pub(super) fn long<L: Lane, F: Function<L, N>, const N: usize>(code: Code) -> Option<Loop> {
    match code {
        Code::Short => None,
        Code::Wide if is_widened::<L>(code) => Some(L::Set::address::<Widened<L>, _>()),
        Code::Long | Code::Wide => Some(L::Set::address::<Long<L, F, N>, _>()),
    }
}

/// Whether functions of such code are computed by the loop of `f64`.
#[inline(always)]
pub(super) fn is_widened<L: Lane>(code: Code) -> bool {
    code.is_wide() && size_of::<L::Element>() < size_of::<f64>()
}

/// The loop of a function, whichever arguments move.
struct Long<L, F, const N: usize>(PhantomData<(L, F)>);

impl<L: Lane, F: Function<L, N>, const N: usize> Body<Block> for Long<L, F, N> {
    #[inline(always)]
    fn call<S: Simd>(Block { to, from, length, moves, .. }: Block) {
        let to = to.cast::<L::Element>();
        let mut from: [*const L::Element; N] = std::array::from_fn(|k| from[k].cast());
        // The only argument of a function moves.
        let steps: [usize; N] = std::array::from_fn(|k| if N == 1 || moves[k] { usize::MAX } else { 0 });
        let (left, mut i, mut target) = (length % L::WIDTH, 0, to);
        let mut end = length - left;
        // What is less than a lane goes through lanes of its own.
        let (mut own, mut result) = ([MaybeUninit::<L>::uninit(); N], MaybeUninit::<L>::uninit());
        let mut arguments = [L::zero(); N];
        // SAFETY: registers that move hold a block, others a lane; `i + WIDTH` is at most `end`, and `i + left` at most
        // `length`.
        unsafe {
            loop {
                if i >= end {
                    if i >= length {
                        break;
                    }
                    for k in 0..N {
                        if N == 1 || moves[k] {
                            own[k].write(L::load_part(from[k].wrapping_add(i), left));
                            from[k] = own[k].as_ptr().cast::<L::Element>().wrapping_sub(i);
                        }
                    }
                    target = result.as_mut_ptr().cast::<L::Element>().wrapping_sub(i);
                    end = i + L::WIDTH;
                }
                for k in 0..N {
                    arguments[k] = L::load(from[k].wrapping_add(i & steps[k]));
                }
                F::value(arguments).store(target.wrapping_add(i));
                i += L::WIDTH;
            }
            if left > 0 {
                result.assume_init().store_part(to.wrapping_add(length - left), left);
            }
        }
    }
}

/// The loop of any function that is computed in `f64`.
struct Widened<L>(PhantomData<L>);

impl<L: Lane> Body<Block> for Widened<L> {
    #[inline(always)]
    fn call<S: Simd>(block: Block) {
        let Some(function) = block.wide else { return };
        let to = block.to.cast::<L::Element>();
        let mut numbers = [[MaybeUninit::<f64>::uninit(); WIDENED]; 3];
        let mut results = [MaybeUninit::<f64>::uninit(); WIDENED];
        for start in (0..block.length).step_by(WIDENED) {
            let count = WIDENED.min(block.length - start);
            // SAFETY: registers that move hold a block, others a lane; the arrays have room for whole lanes, all of which
            // are written, and the instruction set is the one that this runs on.
            unsafe {
                for (k, numbers) in numbers.iter_mut().enumerate().take(block.arity) {
                    let (from, into) = (block.from[k].cast::<L::Element>(), numbers.as_mut_ptr().cast());
                    if block.moves[k] {
                        widen::<L>(from.wrapping_add(start), count, into);
                    } else {
                        L::load(from).store_wide(into);
                    }
                }
                let from = [0, 1, 2].map(|k| numbers[k].as_ptr().cast());
                let length = count.next_multiple_of(L::WIDTH);
                function(Block { to: results.as_mut_ptr().cast(), from, length, wide: None, ..block });
                narrow::<L>(results.as_ptr().cast(), count, to.wrapping_add(start));
            }
        }
    }
}

/// # Safety
/// There are `count` numbers at `from`, and room for whole lanes of as many at `to`.
#[inline(always)]
unsafe fn widen<L: Lane>(from: *const L::Element, count: usize, to: *mut f64) {
    let left = count % L::WIDTH;
    // SAFETY: promised by the caller.
    unsafe {
        for i in (0..count - left).step_by(L::WIDTH) {
            L::load(from.add(i)).store_wide(to.add(i));
        }
        if left > 0 {
            L::load_part(from.add(count - left), left).store_wide(to.add(count - left));
        }
    }
}

/// # Safety
/// There are whole lanes of `count` numbers at `from`, and room for as many at `to`.
#[inline(always)]
unsafe fn narrow<L: Lane>(from: *const f64, count: usize, to: *mut L::Element) {
    let left = count % L::WIDTH;
    // SAFETY: promised by the caller.
    unsafe {
        for i in (0..count - left).step_by(L::WIDTH) {
            L::load_wide(from.add(i)).store(to.add(i));
        }
        if left > 0 {
            L::load_wide(from.add(count - left)).store_part(to.add(count - left), left);
        }
    }
}
