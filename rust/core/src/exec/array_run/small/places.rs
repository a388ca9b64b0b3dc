//! The places of nodes in the memory of a run.

use std::collections::HashMap;

use super::nodes::Node;
use super::values::LINE;

/// The places of nodes, in bytes, and those that nothing needs any more, by their number of lines.
pub(super) struct Places {
    pub of: Vec<Option<usize>>,
    spare: HashMap<usize, Vec<usize>>,
    pub lines: usize,
}

impl Places {
    /// Places for so many nodes.
    pub fn new(nodes: usize) -> Self {
        Self { of: vec![None; nodes], spare: HashMap::new(), lines: 0 }
    }

    fn size(Node { length, dtype, .. }: Node) -> usize {
        (length * dtype.size()).div_ceil(LINE).max(1)
    }

    /// The place of a node, which takes one where it has none.
    pub fn take(&mut self, node: u32, nodes: &[Node]) -> usize {
        if let Some(place) = self.of[node as usize] {
            return place;
        }
        let size = Self::size(nodes[node as usize]);
        let spare = self.spare.get_mut(&size).and_then(Vec::pop);
        let place = spare.unwrap_or_else(|| {
            self.lines += size;
            (self.lines - size) * LINE
        });
        self.of[node as usize] = Some(place);
        place
    }

    pub fn give(&mut self, node: u32, nodes: &[Node]) {
        if let Some(place) = self.of[node as usize] {
            self.spare.entry(Self::size(nodes[node as usize])).or_default().push(place);
        }
    }
}
