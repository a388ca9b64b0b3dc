//! The places of nodes in the memory of a run.

use std::collections::HashMap;

use super::nodes::{Node, number};
use super::values::LINE;

/// The first lines of the places of nodes, and those that nothing needs any more, by their size.
pub(super) struct Places {
    pub of: Vec<u32>,
    spare: HashMap<usize, Vec<u32>>,
    pub lines: usize,
}

impl Places {
    /// Places for so many nodes.
    pub fn new(nodes: usize) -> Self {
        Self { of: vec![0; nodes], spare: HashMap::new(), lines: 0 }
    }

    fn size(Node { length, dtype }: Node) -> usize {
        (length * dtype.size()).div_ceil(LINE).max(1)
    }

    pub fn take(&mut self, node: u32, nodes: &[Node]) -> u32 {
        let size = Self::size(nodes[node as usize]);
        let spare = self.spare.get_mut(&size).and_then(Vec::pop);
        let place = spare.unwrap_or_else(|| {
            self.lines += size;
            number(self.lines - size)
        });
        self.of[node as usize] = place;
        place
    }

    pub fn give(&mut self, node: u32, nodes: &[Node]) {
        self.spare.entry(Self::size(nodes[node as usize])).or_default().push(self.of[node as usize]);
    }
}
