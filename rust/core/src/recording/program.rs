//! A program: inputs, constants, calls and checks, each of which reads earlier entries.

use std::fmt::Write;

use smallvec::SmallVec;

use crate::error::{Error, Result};

/// The position of an entry.
pub type Id = u32;

/// The id of the entry at a position.
pub(super) fn id_of(position: usize) -> Id {
    Id::try_from(position).expect("ids are of 32 bits")
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A value that is given at each replay.
    Input,
    /// A value that the host holds.
    Constant,
    /// The result of a function without effects: the same function of the same arguments gives the same result.
    Call {
        /// The group of calls over arrays of one shape and dtype that may be computed in one pass; `None` for other calls.
        group: Option<u32>,
        /// Whether the result is one number, a sum over an array of the group; otherwise calls of a group are elementwise.
        reduces: bool,
    },
    /// The value of its argument must be the one that was recorded.
    Check,
}

/// A step of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Its kind.
    pub origin: Origin,
    /// The number that the host knows it by. Calls of one number are calls of one function.
    pub number: u32,
    /// The entries that it reads: seldom more than four.
    pub args: SmallVec<[Id; 4]>,
}

/// Entries, arguments first, and those whose values are the results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub(super) entries: Vec<Entry>,
    pub(super) outputs: Vec<Id>,
}

impl Program {
    /// A program of these entries.
    ///
    /// # Errors
    /// `Rule` where an entry reads one that is not before it, an output is no entry, a check reads not exactly one entry, or
    /// an input or a constant reads any.
    pub fn new(entries: Vec<Entry>, outputs: Vec<Id>) -> Result<Self> {
        for (id, entry) in entries.iter().enumerate() {
            if let Some(arg) = entry.args.iter().find(|arg| **arg as usize >= id) {
                return Err(Error::Rule(format!("entry {id}: found argument {arg}, expected an earlier entry")));
            }
            let fits = match entry.origin {
                Origin::Input | Origin::Constant => entry.args.is_empty(),
                Origin::Check => entry.args.len() == 1,
                Origin::Call { .. } => true,
            };
            if !fits {
                return Err(Error::Rule(format!(
                    "entry {id}: found {} arguments of {:?}",
                    entry.args.len(),
                    entry.origin
                )));
            }
        }
        if let Some(output) = outputs.iter().find(|output| **output as usize >= entries.len()) {
            return Err(Error::Rule(format!("output {output}: expected one of {} entries", entries.len())));
        }
        Ok(Self { entries, outputs })
    }

    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries whose values are the results.
    #[must_use]
    pub fn outputs(&self) -> &[Id] {
        &self.outputs
    }

    /// The number of calls.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.origin, Origin::Call { .. })).count()
    }

    /// A line for each entry: `v3 = multiply(v1, v2)`. `name` names a call, a constant or a check.
    #[must_use]
    pub fn printed(&self, name: impl Fn(&Entry) -> String) -> String {
        let mut text = String::new();
        for (id, entry) in self.entries.iter().enumerate() {
            let args: Vec<String> = entry.args.iter().map(|arg| format!("v{arg}")).collect();
            let line = line(entry.origin, &format!("v{id}"), &args, &name(entry));
            writeln!(text, "{line}").expect("a string can be written");
        }
        text + &returned(&self.outputs)
    }
}

/// The line of an entry: its value, those that it reads, and its name.
pub(super) fn line(origin: Origin, value: &str, args: &[String], name: &str) -> String {
    match origin {
        Origin::Input => format!("{value} = input"),
        Origin::Constant => format!("{value} = {name}"),
        Origin::Call { .. } => format!("{value} = {name}({})", args.join(", ")),
        Origin::Check => format!("check {} == {name}", args.join(", ")),
    }
}

/// The last line.
pub(super) fn returned(outputs: &[Id]) -> String {
    let outputs: Vec<String> = outputs.iter().map(|output| format!("v{output}")).collect();
    format!("return {}", outputs.join(", "))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An entry of a test.
    pub fn entry(origin: Origin, number: u32, args: &[Id]) -> Entry {
        Entry { origin, number, args: args.into() }
    }

    pub const CALL: Origin = Origin::Call { group: None, reduces: false };

    #[test]
    fn a_program_reads_earlier_entries_only() {
        let bad = [
            (vec![entry(CALL, 0, &[0])], vec![]),
            (vec![entry(Origin::Input, 0, &[]), entry(CALL, 0, &[2])], vec![]),
            (vec![entry(Origin::Input, 0, &[])], vec![1]),
            (vec![entry(Origin::Input, 0, &[]), entry(Origin::Constant, 0, &[0])], vec![]),
            (vec![entry(Origin::Check, 0, &[])], vec![]),
        ];
        for (entries, outputs) in bad {
            assert!(matches!(Program::new(entries, outputs), Err(Error::Rule(_))));
        }
    }

    #[test]
    fn a_program_prints_a_line_for_each_entry() {
        let entries = vec![entry(Origin::Input, 0, &[]), entry(CALL, 0, &[0, 0]), entry(Origin::Check, 1, &[1])];
        let program = Program::new(entries, vec![1]).unwrap();
        let text = program.printed(|entry| ["multiply", "6.0"][entry.number as usize].into());
        assert_eq!(text, "v0 = input\nv1 = multiply(v0, v0)\ncheck v1 == 6.0\nreturn v1");
        assert_eq!(program.calls(), 1);
    }
}
