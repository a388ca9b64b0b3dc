//! Software prefetch: hints to bring memory into the cache, which read and write nothing.

use std::ops::Range;

use super::batch::Part;
use crate::array::buffer::Layout;
use crate::simd::fetch;

/// The size of a cache line in bytes.
const LINE: usize = 64;
/// The number of cache lines of each input that are prefetched before a part begins; the hardware prefetches the rest.
const FIRST: usize = 8;

/// The minimum numbers of loops of a phase, and of elements of a part, for which blocks are prefetched. With few loops,
/// memory is never idle; small arrays are often in the cache already.
const LOOPS: usize = 4;
const ELEMENTS: usize = 1 << 13;

/// Prefetches the first cache lines of a part.
pub(super) fn fetch_first(part: &Part) {
    for buffer in part.leaf.inputs.iter().filter(|buffer| buffer.layout == Layout::Contiguous) {
        let size = buffer.dtype.size();
        let start = buffer.pointer.wrapping_add(part.start * size);
        let lines = (part.end.saturating_sub(part.start) * size).div_ceil(LINE).min(FIRST);
        (0..lines).for_each(|line| fetch(start.wrapping_add(line * LINE)));
    }
}

/// The address of a contiguous buffer, and the size of its elements in bytes.
pub(super) type Stored = (*const u8, usize);

/// The contiguous buffers that a part reads or writes, each once, if prefetching them is faster.
pub(super) fn contiguous(part: &Part, buffers: &mut Vec<Stored>) {
    let read = part.phase.reads.iter().map(|input| &part.leaf.inputs[usize::from(*input)]);
    let written = part.phase.writes.iter().map(|write| &part.leaf.outputs[usize::from(write.output)]);
    buffers.clear();
    if part.phase.loops.len() < LOOPS || part.end - part.start <= ELEMENTS {
        return;
    }
    for buffer in read.chain(written).filter(|buffer| buffer.layout == Layout::Contiguous && buffer.rows.is_none()) {
        let stored = (buffer.pointer.cast_const(), buffer.dtype.size());
        if !buffers.contains(&stored) {
            buffers.push(stored);
        }
    }
}

/// The prefetch of the next block's memory. Each loop prefetches its share, since the processor fetches a few dozen
/// lines at a time, and memory would be idle while loops run from the cache.
pub(super) struct Prefetch {
    elements: Range<usize>,
    /// The number of lines in all buffers.
    lines: usize,
    /// The number of buffers whose prefetch has begun, and the rest of the last of them.
    begun: usize,
    line: *const u8,
    left: usize,
}

impl Prefetch {
    #[inline(always)]
    pub fn new(buffers: &[Stored], elements: Range<usize>) -> Self {
        let lines = buffers.iter().map(|(_, size)| (elements.len() * size).div_ceil(LINE)).sum();
        Self { elements, lines, begun: 0, line: std::ptr::null(), left: 0 }
    }

    /// Prefetches one of `parts` equal shares of the remaining lines.
    #[inline(never)]
    pub fn fetch_share(&mut self, buffers: &[Stored], parts: usize) {
        let mut share = self.lines.div_ceil(parts);
        self.lines -= share;
        while share > 0 {
            if self.left == 0 {
                let Some((start, size)) = buffers.get(self.begun) else { return };
                self.begun += 1;
                self.line = start.wrapping_add(self.elements.start * size);
                self.left = (self.elements.len() * size).div_ceil(LINE);
            }
            let count = share.min(self.left);
            for line in 0..count {
                fetch(self.line.wrapping_add(line * LINE));
            }
            self.line = self.line.wrapping_add(count * LINE);
            self.left -= count;
            share -= count;
        }
    }
}
