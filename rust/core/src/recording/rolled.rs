//! Loops: blocks of entries that a program repeats one after the other, stated once.
//!
//! A function with a loop is recorded as the calls that it made. In each repetition of a block the entries that it reads are so many further
//! on, or the same, or so many further back, as in the derivative of a loop: their positions are first ones and steps.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::BuildHasher;

use super::hash::Words;
use super::program::{Entry, Id, Origin, Program, line, returned};

/// A block that is repeated fewer times, or where to state it once saves fewer entries, is not a loop.
const FEWEST: usize = 3;
const SAVED: usize = 8;

/// Two places may begin one block where so many entries are alike: few in short blocks, many where a block repeats calls within itself.
const ALIKE: [usize; 2] = [4, 32];

/// So many places that may begin the next repetition are tried.
const TRIED: usize = 8;

/// So many entries are compared for each entry of a program, at most.
const COMPARED: usize = 64;

/// A number that is ``step`` more in each repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stepped {
    first: u32,
    step: i64,
}

/// An entry of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Repeated {
    origin: Origin,
    /// Calls have one number in all repetitions.
    number: Stepped,
    args: Vec<Stepped>,
}

/// Entries of a program that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Block {
    Once(Vec<Entry>),
    Loop { count: u32, entries: Vec<Repeated> },
}

/// A loop of a program: ``period`` entries from ``start`` on, which are there ``count`` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The first entry.
    pub start: usize,
    /// The number of entries of a repetition.
    pub period: usize,
    /// The number of repetitions.
    pub count: u32,
}

/// A program whose loops are stated once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rolled {
    blocks: Vec<Block>,
    outputs: Vec<Id>,
}

impl Stepped {
    /// The number whose values in two repetitions that follow each other are these.
    fn of(first: u32, second: u32) -> Self {
        Self { first, step: i64::from(second) - i64::from(first) }
    }

    /// The number in a repetition.
    fn at(self, repetition: u32) -> u32 {
        u32::try_from(i64::from(self.first) + self.step * i64::from(repetition)).expect("ids are of 32 bits")
    }

    /// The value of this number, as `Rolled::printed` writes it.
    fn printed(self) -> String {
        match self.step {
            0 => format!("v{}", self.first),
            step => format!("v[{} {} {}*k]", self.first, if step < 0 { '-' } else { '+' }, step.abs()),
        }
    }
}

impl Repeated {
    fn of(first: &Entry, second: &Entry) -> Self {
        let args = first.args.iter().zip(&second.args).map(|(first, second)| Stepped::of(*first, *second)).collect();
        Self { origin: first.origin, number: Stepped::of(first.number, second.number), args }
    }

    /// The entry in a repetition.
    fn at(&self, repetition: u32) -> Entry {
        let args = self.args.iter().map(|arg| arg.at(repetition)).collect();
        Entry { origin: self.origin, number: self.number.at(repetition), args }
    }
}

impl Rolled {
    /// The program with its loops stated once.
    #[must_use]
    pub fn of(program: &Program) -> Self {
        Self { outputs: program.outputs.clone(), ..Self::of_entries(&program.entries) }
    }

    /// Entries whose arguments are any numbers, with their loops stated once.
    #[must_use]
    pub fn of_entries(entries: &[Entry]) -> Self {
        let (mut blocks, mut before) = (Vec::new(), 0);
        let once = |from: usize, to: usize| (from < to).then(|| Block::Once(entries[from..to].to_vec()));
        for Loop { start, period, count } in loops(entries) {
            let repeated = |at: usize| Repeated::of(&entries[at], &entries[at + period]);
            blocks.extend(once(before, start));
            blocks.push(Block::Loop { count, entries: (start..start + period).map(repeated).collect() });
            before = start + period * count as usize;
        }
        blocks.extend(once(before, entries.len()));
        Self { blocks, outputs: Vec::new() }
    }

    /// Calls `f` with the kind, the number and the arguments of each entry, in order, until it fails.
    ///
    /// # Errors
    /// That of `f`.
    pub fn try_for_each<E>(&self, mut f: impl FnMut(Origin, u32, &[Id]) -> Result<(), E>) -> Result<(), E> {
        let mut args: Vec<Id> = Vec::new();
        for block in &self.blocks {
            match block {
                Block::Once(entries) => {
                    entries.iter().try_for_each(|entry| f(entry.origin, entry.number, &entry.args))?;
                }
                Block::Loop { count, entries } => {
                    for (at, entry) in (0..*count).flat_map(|at| entries.iter().map(move |entry| (at, entry))) {
                        args.clear();
                        args.extend(entry.args.iter().map(|arg| arg.at(at)));
                        f(entry.origin, entry.number.at(at), &args)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Calls `f` with the kind, the number and the arguments of each entry, in order.
    pub fn for_each(&self, mut f: impl FnMut(Origin, u32, &[Id])) {
        let all = self.try_for_each(|origin, number, args| {
            f(origin, number, args);
            Ok::<_, Infallible>(())
        });
        all.unwrap_or_else(|never| match never {});
    }

    /// The program with each repetition stated.
    #[must_use]
    pub fn unrolled(&self) -> Program {
        let mut entries = Vec::new();
        self.for_each(|origin, number, args| entries.push(Entry { origin, number, args: args.into() }));
        Program { entries, outputs: self.outputs.clone() }
    }

    /// The loops, in order.
    #[must_use]
    pub fn loops(&self) -> Vec<Loop> {
        let (mut start, mut loops) = (0, Vec::new());
        for block in &self.blocks {
            match block {
                Block::Once(entries) => start += entries.len(),
                Block::Loop { count, entries } => {
                    loops.push(Loop { start, period: entries.len(), count: *count });
                    start += entries.len() * *count as usize;
                }
            }
        }
        loops
    }

    /// The number of entries that are stated.
    #[must_use]
    pub fn stated(&self) -> usize {
        let length = |block: &Block| match block {
            Block::Once(entries) => entries.len(),
            Block::Loop { entries, .. } => entries.len(),
        };
        self.blocks.iter().map(length).sum()
    }

    /// The program as `Program::printed` prints it, in which a loop is a line ``for k in range(5):`` and those of its first repetition, where
    /// ``v[3 + 2*k]`` is the value of an entry. Of constants and checks that differ in each repetition, the first and the last are named.
    ///
    /// # Panics
    /// Panics where ids take more than 32 bits.
    #[must_use]
    pub fn printed(&self, name: impl Fn(&Entry) -> String) -> String {
        let (mut lines, mut id) = (Vec::new(), 0);
        for block in &self.blocks {
            match block {
                Block::Once(entries) => {
                    for entry in entries {
                        let args: Vec<String> = entry.args.iter().map(|arg| format!("v{arg}")).collect();
                        lines.push(line(entry.origin, &format!("v{id}"), &args, &name(entry)));
                        id += 1;
                    }
                }
                Block::Loop { count, entries } => {
                    lines.push(format!("for k in range({count}):"));
                    for (first, entry) in (id..).zip(entries) {
                        let own = Stepped { first, step: i64::try_from(entries.len()).expect("ids are of 32 bits") };
                        let args: Vec<String> = entry.args.iter().map(|arg| arg.printed()).collect();
                        let named = match entry.number.step {
                            0 => name(&entry.at(0)),
                            _ => format!("[{}, ..., {}][k]", name(&entry.at(0)), name(&entry.at(count - 1))),
                        };
                        lines.push(format!("    {}", line(entry.origin, &own.printed(), &args, &named)));
                    }
                    id += u32::try_from(entries.len()).expect("ids are of 32 bits") * count;
                }
            }
        }
        lines.push(returned(&self.outputs));
        lines.join("\n")
    }
}

/// The loops of a program, in order.
fn loops(entries: &[Entry]) -> Vec<Loop> {
    if entries.len() <= SAVED {
        return Vec::new();
    }
    let hasher = Words::default();
    let kinds: Vec<u64> = entries.iter().map(|entry| hasher.hash_one(kind(entry))).collect();
    let next = ALIKE.map(|length| next_alike(&kinds, length));
    let mut left = entries.len() * COMPARED;
    // For each period, where the repetition ends that was followed last.
    let mut ends: HashMap<usize, usize, Words> = HashMap::default();
    let is_computed = |entry: &Entry| matches!(entry.origin, Origin::Call { .. } | Origin::Check);
    let has_computed = |start: usize, period: usize| entries[start..start + period].iter().any(is_computed);
    let (mut found, mut start) = (Vec::new(), 0);
    while start < entries.len() && left > 0 {
        let mut best: Option<Loop> = None;
        let mut periods = Vec::with_capacity(2 * TRIED);
        for next in &next {
            let candidates = std::iter::successors(next[start], |at| next[*at]).take(TRIED);
            periods.extend(candidates.map(|at| at - start));
        }
        for period in periods {
            let end = ends.entry(period).or_default();
            if *end <= start {
                *end = start;
                while left > 0 && continues(entries, *end, period) {
                    *end += 1;
                    left -= 1;
                }
            }
            left = left.saturating_sub(1);
            let count = (*end - start) / period + 2;
            let saved = |period, count| period * (count - 1);
            let most = best.as_ref().map_or(SAVED - 1, |best| saved(best.period, best.count as usize));
            if count >= FEWEST && saved(period, count) > most && has_computed(start, period) {
                best = Some(Loop { start, period, count: u32::try_from(count).expect("ids are of 32 bits") });
            }
        }
        start += best.as_ref().map_or(1, |best| best.period * best.count as usize);
        found.extend(best);
    }
    found
}

/// Whether three entries, each ``period`` after the one before, are one entry of a loop.
fn continues(entries: &[Entry], at: usize, period: usize) -> bool {
    let [Some(first), Some(second), Some(third)] = [0, 1, 2].map(|times| entries.get(at + times * period)) else {
        return false;
    };
    let is_even = |a: u32, b: u32, c: u32| i64::from(b) - i64::from(a) == i64::from(c) - i64::from(b);
    let mut args = first.args.iter().zip(&second.args).zip(&third.args);
    first.origin != Origin::Input
        && kind(first) == kind(second)
        && kind(second) == kind(third)
        && is_even(first.number, second.number, third.number)
        && args.all(|((a, b), c)| is_even(*a, *b, *c))
}

/// The parts that the entries of one place in a loop have in common.
fn kind(entry: &Entry) -> (Origin, Option<u32>, usize) {
    let number = matches!(entry.origin, Origin::Call { .. }).then_some(entry.number);
    (entry.origin, number, entry.args.len())
}

/// For each entry, the next one from which on so many entries are alike, given the hash of each. The hash of a window is a polynomial of theirs.
fn next_alike(kinds: &[u64], length: usize) -> Vec<Option<usize>> {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    let highest = (0..length).fold(1, |power: u64, _| power.wrapping_mul(BASE));
    let (mut last, mut next): (HashMap<u64, usize, Words>, _) = (HashMap::default(), vec![None; kinds.len()]);
    let mut hash = 0_u64;
    for at in (0..kinds.len()).rev() {
        let gone = kinds.get(at + length).map_or(0, |kind| highest.wrapping_mul(*kind));
        hash = kinds[at].wrapping_add(hash.wrapping_mul(BASE)).wrapping_sub(gone);
        if at + length <= kinds.len() {
            next[at] = last.insert(hash, at);
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::super::program::tests::{CALL, entry};
    use super::*;
    use proptest::prelude::*;

    /// A loop with a carried value, a constant and an input in each repetition, and the loop of its derivative, which reads it backwards.
    fn recurrent(steps: u32) -> Program {
        let mut entries = vec![entry(Origin::Input, 0, &[]), entry(Origin::Input, 1, &[])];
        let (mut carried, mut states) = (0, Vec::new());
        for step in 0..steps {
            let at = id(&entries);
            entries.push(entry(Origin::Constant, step, &[]));
            entries.push(entry(CALL, 0, &[0, at]));
            entries.push(entry(CALL, 1, &[carried, at + 1]));
            carried = at + 2;
            states.push(carried);
        }
        for state in states.into_iter().rev() {
            let at = id(&entries);
            entries.push(entry(CALL, 2, &[carried, state]));
            entries.push(entry(CALL, 3, &[at]));
            carried = at + 1;
        }
        Program::new(entries, vec![carried]).unwrap()
    }

    fn id(entries: &[Entry]) -> Id {
        Id::try_from(entries.len()).unwrap()
    }

    #[test]
    fn a_loop_and_its_derivative_are_stated_once() {
        let (short, long) = (Rolled::of(&recurrent(10)), Rolled::of(&recurrent(1000)));
        assert_eq!(long.stated(), short.stated());
        let shapes =
            |rolled: &Rolled| rolled.loops().iter().map(|found| (found.period, found.count)).collect::<Vec<_>>();
        assert_eq!(shapes(&short), [(3, 9), (2, 10)]);
        assert_eq!(shapes(&long), [(3, 999), (2, 1000)]);
        assert_eq!(long.unrolled(), recurrent(1000));
    }

    #[test]
    fn loops_print_as_loops() {
        let text = Rolled::of(&recurrent(5)).printed(|entry| format!("f{}", entry.number));
        let expected = "\
            v0 = input\nv1 = input\nv2 = f0\nv3 = f0(v0, v2)\nv4 = f1(v0, v3)\nfor k in range(4):\n    \
            v[5 + 3*k] = [f1, ..., f4][k]\n    v[6 + 3*k] = f0(v0, v[5 + 3*k])\n    v[7 + 3*k] = f1(v[4 + 3*k], v[6 + 3*k])\n\
            for k in range(5):\n    v[17 + 2*k] = f2(v[16 + 2*k], v[16 - 3*k])\n    v[18 + 2*k] = f3(v[17 + 2*k])\nreturn v26";
        assert_eq!(text, expected);
        let plain = recurrent(2);
        assert_eq!(Rolled::of(&plain).printed(|_| "f".into()), plain.printed(|_| "f".into()));
    }

    #[test]
    fn too_few_repetitions_are_stated_each() {
        let rolled = Rolled::of(&recurrent(2));
        assert_eq!((rolled.loops(), rolled.stated()), (Vec::new(), recurrent(2).entries.len()));
        assert_eq!(Rolled::of(&Program::default()).unrolled(), Program::default());
    }

    /// The argument of an entry of a body: an entry before the loop, one of this repetition, or of the one before.
    #[derive(Clone, Copy, Debug)]
    enum Reads {
        Before(u32),
        Here(u32),
        Last(u32),
    }

    fn reads() -> impl Strategy<Value = Reads> {
        prop_oneof![(0..3u32).prop_map(Reads::Before), (0..8u32).prop_map(Reads::Here), (0..8u32).prop_map(Reads::Last)]
    }

    proptest! {
        #[test]
        fn rolling_is_undone(body in prop::collection::vec((0..3u32, reads(), reads()), 1..9), counts in prop::collection::vec(1..20usize, 1..4)) {
            let mut entries: Vec<Entry> = (0..3).map(|at| entry(Origin::Input, at, &[])).collect();
            for count in &counts {
                entries.push(entry(CALL, 9, &[id(&entries) - 1]));
                let first = id(&entries);
                for repetition in 0..*count {
                    let start = id(&entries);
                    let before = if repetition == 0 { 0 } else { start - u32::try_from(body.len()).unwrap() };
                    for (number, one, other) in &body {
                        let at = id(&entries);
                        let read = |reads: &Reads| match *reads {
                            Reads::Before(at) => at,
                            Reads::Here(back) => if at > start { at - 1 - back % (at - start) } else { first - 1 },
                            Reads::Last(on) => before + on % (if repetition == 0 { 3 } else { start - before }),
                        };
                        entries.push(entry(CALL, *number, &[read(one), read(other)]));
                    }
                }
            }
            let program = Program::new(entries, vec![0]).unwrap();
            let rolled = Rolled::of(&program);
            prop_assert_eq!(rolled.unrolled(), program.clone());
            // The first repetitions read other values than those after them, and are stated each.
            let most = counts.iter().map(|count| 1 + body.len() * (*count).min(4 + SAVED.div_ceil(body.len()))).sum::<usize>() + 3;
            // Loops alike are a loop themselves, of which a repetition is stated.
            let longest = counts.iter().max().map_or(0, |count| 1 + body.len() * count) + 3;
            prop_assert!(rolled.stated() <= most.max(longest), "{} entries of {}", rolled.stated(), program.entries.len());
        }

        #[test]
        fn rolling_of_any_program_is_undone(calls in prop::collection::vec((0..2u32, any::<u32>(), any::<u32>()), 0..60)) {
            let mut entries = vec![entry(Origin::Input, 0, &[])];
            for (number, one, other) in calls {
                let most = id(&entries);
                entries.push(entry(CALL, number, &[one % most, other % most]));
            }
            let program = Program::new(entries, Vec::new()).unwrap();
            prop_assert_eq!(Rolled::of(&program).unrolled(), program);
        }
    }
}
