//! Memory asked for before it is used: hints, which read and write nothing.

use std::ops::Range;

use super::interpreter::Part;
use crate::array::buffer::Layout;
use crate::simd::fetch;

/// Bytes that come from memory together.
const LINE: usize = 64;
/// Lines of each input that are fetched before a part begins. The processor itself fetches what follows, where there is
/// more; many a leaf is no larger.
const FIRST: usize = 8;

/// From so many passes on, and in parts of more elements, blocks are fetched ahead. Of few passes, memory is never idle;
/// what is small is often in the cache.
const PASSES: usize = 4;
const ELEMENTS: usize = 1 << 13;

/// Asks for the memory in which a part begins.
pub(super) fn fetch_first(part: &Part) {
    for buffer in part.leaf.inputs.iter().filter(|buffer| buffer.layout == Layout::Contiguous) {
        let size = buffer.dtype.size();
        let start = buffer.pointer.wrapping_add(part.start * size);
        let lines = (part.end.saturating_sub(part.start) * size).div_ceil(LINE).min(FIRST);
        (0..lines).for_each(|line| fetch(start.wrapping_add(line * LINE)));
    }
}

/// Where a contiguous buffer starts, and the bytes of an element.
pub(super) type Stored = (*const u8, usize);

/// The contiguous buffers that a part reads or writes, each once, if they are worth fetching ahead.
pub(super) fn streams(part: &Part, streams: &mut Vec<Stored>) {
    let read = part.phase.reads.iter().map(|input| &part.leaf.inputs[usize::from(*input)]);
    let written = part.phase.writes.iter().map(|write| &part.leaf.outputs[usize::from(write.output)]);
    streams.clear();
    if part.phase.passes.len() < PASSES || part.end - part.start <= ELEMENTS {
        return;
    }
    for buffer in read.chain(written).filter(|buffer| buffer.layout == Layout::Contiguous && buffer.rows.is_none()) {
        let stream = (buffer.pointer.cast_const(), buffer.dtype.size());
        if !streams.contains(&stream) {
            streams.push(stream);
        }
    }
}

/// The memory of the next block, not yet fetched. Each pass asks for its share, since the processor waits for a few
/// dozen lines at a time, and memory would be idle while passes work on what is in the cache.
pub(super) struct Ahead {
    elements: Range<usize>,
    /// How many lines there are in all streams.
    lines: usize,
    /// How many streams were begun, and what is left of the last of them.
    begun: usize,
    line: *const u8,
    left: usize,
}

impl Ahead {
    #[inline(always)]
    pub fn new(streams: &[Stored], elements: Range<usize>) -> Self {
        let lines = streams.iter().map(|(_, size)| (elements.len() * size).div_ceil(LINE)).sum();
        Self { elements, lines, begun: 0, line: std::ptr::null(), left: 0 }
    }

    /// Fetches one part of as many.
    #[inline(never)]
    pub fn fetch_share(&mut self, streams: &[Stored], parts: usize) {
        let mut share = self.lines.div_ceil(parts);
        self.lines -= share;
        while share > 0 {
            if self.left == 0 {
                let Some((start, size)) = streams.get(self.begun) else { return };
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
