//! Detection of overlapping memory ranges, of which one is written.

use crate::array::buffer::Span;

/// Detects written ranges that overlap others. Reuse it from step to step: the order of the addresses seldom changes,
/// and ranges that are already sorted cost one pass.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    order: Vec<u32>,
}

impl Sweep {
    /// The first pair (in address order) of overlapping ranges of which at least one is written (`true`), as indices
    /// with the smaller one first. Empty ranges overlap nothing.
    ///
    /// # Panics
    /// Panics if there are more than `u32::MAX` ranges.
    pub fn first_clash(&mut self, ranges: &[(Span, bool)]) -> Option<(usize, usize)> {
        self.sort(ranges);
        // The furthest end so far, of written ranges and of all, with whose it is.
        let (mut written, mut any) = (Reach::default(), Reach::default());
        for &index in &self.order {
            let (span, writes) = ranges[index as usize];
            if span.start >= span.end {
                continue;
            }
            let before = if writes { any } else { written };
            if span.start < before.end {
                return Some((index.min(before.index) as usize, index.max(before.index) as usize));
            }
            any.extend(span.end, index);
            if writes {
                written.extend(span.end, index);
            }
        }
        None
    }

    fn sort(&mut self, ranges: &[(Span, bool)]) {
        if self.order.len() != ranges.len() {
            let length = u32::try_from(ranges.len()).expect("fewer than 2^32 ranges");
            self.order = (0..length).collect();
        }
        let start = |index: &u32| ranges[*index as usize].0.start;
        if !self.order.is_sorted_by_key(start) {
            self.order.sort_unstable_by_key(|index| (start(index), *index));
        }
    }
}

/// All pairs of overlapping ranges of which at least one is marked (`true`), in address order. Empty ranges overlap
/// nothing.
pub fn clashes(ranges: &[(Span, bool)]) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..ranges.len()).filter(|at| ranges[*at].0.start < ranges[*at].0.end).collect();
    order.sort_by_key(|at| ranges[*at].0.start);
    let mut found = Vec::new();
    for (place, &a) in order.iter().enumerate() {
        let met = order[place + 1..].iter().take_while(|b| ranges[**b].0.start < ranges[a].0.end);
        found.extend(met.filter(|b| ranges[a].1 || ranges[**b].1).map(|b| (a, *b)));
    }
    found
}

#[derive(Clone, Copy, Default)]
struct Reach {
    end: usize,
    index: u32,
}

impl Reach {
    fn extend(&mut self, end: usize, index: u32) {
        if end > self.end {
            *self = Self { end, index };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_looking_at_every_pair(
            rounds in prop::collection::vec(prop::collection::vec((0usize..300, 0usize..9, any::<bool>()), 0..40), 1..4)
        ) {
            let mut sweep = Sweep::default();
            for round in rounds {
                let ranges: Vec<_> = round.iter().map(|&(start, n, w)| (Span { start, end: start + n }, w)).collect();
                let clash = |i: usize, j: usize| {
                    let ((a, write_a), (b, write_b)) = (ranges[i], ranges[j]);
                    (write_a || write_b) && a.meets(b)
                };
                let exists = (0..ranges.len()).any(|j| (0..j).any(|i| clash(i, j)));
                let found = sweep.first_clash(&ranges);
                prop_assert_eq!(found.is_some(), exists);
                prop_assert!(found.is_none_or(|(i, j)| i < j && clash(i, j)));
                let mut all: Vec<_> = clashes(&ranges).into_iter().map(|(i, j)| (i.min(j), i.max(j))).collect();
                all.sort_unstable();
                let pairs = (0..ranges.len()).flat_map(|i| (i + 1..ranges.len()).map(move |j| (i, j)));
                prop_assert_eq!(all, pairs.filter(|(i, j)| clash(*i, *j)).collect::<Vec<_>>());
            }
        }
    }
}
