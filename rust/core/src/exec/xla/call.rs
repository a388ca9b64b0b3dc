//! The text of a call: the programs and the leaves that they run over. It is an attribute of the call, and so a part of
//! the compiled function, which may outlive the optimizer or be loaded from a cache in another process.

use std::collections::HashMap;
use std::fmt::Write;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::kernel::Kernel;
use crate::kernel::text::ParsedProgram;

use super::frame::Result;

/// A call, ready to run.
#[derive(Default)]
pub struct Call {
    pub programs: Vec<CallProgram>,
    pub leaves: Vec<CallLeaf>,
    /// The scalars, set by set.
    pub scalars: Vec<f64>,
    /// The scalars that are operands: the index of each among `scalars`, and that of its operand.
    pub traced: Vec<(usize, usize)>,
    /// The operand with the totals of an earlier call, if the programs take any.
    pub totals: Option<usize>,
    /// The number of operands that are scalars or totals; they come first.
    pub numbers: usize,
    pub seed: u64,
    /// Whether the results of the programs are totals over all leaves, the one result of the call.
    pub measures: bool,
}

/// A program of a call.
pub struct CallProgram {
    pub kernel: Kernel,
    /// The outputs: 0 for the gradient, 1 for the parameter, then the slots.
    pub written: Vec<usize>,
    /// The length of its sets of scalars.
    pub set: usize,
    /// The number of array operands of a leaf: the gradient, the parameter and slots, or the first of these.
    pub arrays: usize,
    /// The number of scalar slots of a leaf.
    pub numbers: usize,
    pub is_guarded: bool,
}

/// A leaf of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallLeaf {
    /// The number of its program.
    pub program: usize,
    /// The start of its set of scalars.
    pub scalars: usize,
    /// Its position among the parameters, for its random numbers.
    pub position: u64,
    /// Whether halves are rounded stochastically.
    pub stochastic: bool,
}

/// A program in the text of a call: its own text, and the fields of [`CallProgram`] of the same names.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are those of `CallProgram`")]
pub struct StatedProgram<'a> {
    pub text: String,
    pub written: &'a [usize],
    pub set: usize,
    pub arrays: usize,
    pub numbers: usize,
}

/// The contents of the text of a call: its programs and leaves, and the fields of [`Call`] of the same names.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the fields are those of `Call`")]
pub struct Stated<'a> {
    pub programs: Vec<StatedProgram<'a>>,
    pub leaves: Vec<CallLeaf>,
    pub scalars: Vec<f64>,
    pub traced: Vec<(usize, usize)>,
    pub totals: Option<usize>,
    pub seed: u64,
    pub measures: bool,
}

impl Stated<'_> {
    /// The text of the call.
    ///
    /// # Errors
    /// The reason why it cannot run.
    pub fn print(&self) -> Result<String> {
        let mut text = format!("call {} {}\n", self.seed, u8::from(self.measures));
        for StatedProgram { text: program, written, set, arrays, numbers } in &self.programs {
            _ = write!(text, "program {set} {arrays} {numbers}");
            written.iter().for_each(|place| _ = write!(text, " {place}"));
            text.push('\n');
            program.lines().for_each(|line| _ = writeln!(text, " {line}"));
        }
        for CallLeaf { program, scalars, position, stochastic } in &self.leaves {
            _ = writeln!(text, "leaf {program} {scalars} {position} {}", u8::from(*stochastic));
        }
        text.push_str("scalars");
        self.scalars.iter().for_each(|value| _ = write!(text, " {:016x}", value.to_bits()));
        text.push('\n');
        self.traced.iter().for_each(|(scalar, operand)| _ = writeln!(text, "traced {scalar} {operand}"));
        if let Some(operand) = self.totals {
            _ = writeln!(text, "totals {operand}");
        }
        Call::parse(&text).map(|_| text)
    }
}

/// The last calls, by their text: each is compiled once.
#[derive(Default)]
pub struct Calls(Mutex<Option<HashMap<Box<str>, Arc<Call>>>>);

impl Calls {
    /// None yet.
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn recent(&self) -> MutexGuard<'_, Option<HashMap<Box<str>, Arc<Call>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call of a text, compiled if it is not among the last ones.
    ///
    /// # Errors
    /// The reason why it cannot run.
    pub fn get(&self, text: &str) -> Result<Arc<Call>> {
        if let Some(call) = self.recent().as_ref().and_then(|calls| calls.get(text)) {
            return Ok(call.clone());
        }
        let call = Arc::new(Call::parse(text)?);
        let mut recent = self.recent();
        let calls = recent.get_or_insert_default();
        if calls.len() >= MOST_RECENT {
            calls.clear();
        }
        calls.insert(text.into(), call.clone());
        Ok(call)
    }
}

impl Call {
    fn parse(text: &str) -> Result<Self> {
        let mut call = Self::default();
        let mut lines = text.lines().enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let error = || format!("line {} of the call: {line:?}", number + 1);
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            if name == "program" {
                let mut program = String::new();
                while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with(' ')) {
                    program.push_str(line);
                    program.push('\n');
                }
                let counts = all(rest).ok_or_else(error)?;
                let &[set, arrays, numbers, ref written @ ..] = &counts[..] else { return Err(error()) };
                call.programs.push(CallProgram::parse(&program, set, arrays, numbers, written)?);
            } else {
                call.read(name, rest).ok_or_else(error)?;
            }
        }
        call.check()?;
        Ok(call)
    }

    /// Reads a line other than that of a program.
    fn read(&mut self, name: &str, rest: &str) -> Option<()> {
        if name == "scalars" {
            let bits = rest.split_whitespace().map(|word| u64::from_str_radix(word, 16).ok());
            self.scalars = bits.map(|bits| bits.map(f64::from_bits)).collect::<Option<_>>()?;
            return Some(());
        }
        let words: Vec<u64> = all(rest)?;
        let count = |at: usize| usize::try_from(words[at]).ok().filter(|count| isize::try_from(*count).is_ok());
        match (name, words.len()) {
            ("call", 2) => (self.seed, self.measures) = (words[0], words[1] != 0),
            ("leaf", 4) => {
                let (program, scalars) = (count(0)?, count(1)?);
                self.leaves.push(CallLeaf { program, scalars, position: words[2], stochastic: words[3] != 0 });
            }
            ("traced", 2) => self.traced.push((count(0)?, count(1)?)),
            ("totals", 1) => self.totals = Some(count(0)?),
            _ => return None,
        }
        Some(())
    }

    fn check(&mut self) -> Result<()> {
        for (at, leaf) in self.leaves.iter().enumerate() {
            let Some(program) = self.programs.get(leaf.program) else {
                return Err(format!("leaf {at} is of the program {}, there are {}", leaf.program, self.programs.len()));
            };
            let (start, set) = (leaf.scalars, program.set);
            if set == 0 || start.saturating_add(set) > self.scalars.len() {
                let count = self.scalars.len();
                return Err(format!("leaf {at} has {set} scalars from {start} on, of {count}"));
            }
        }
        if let Some(program) = self.programs.iter().find(|program| !self.measures && !program.is_step()) {
            let (results, numbers) = (program.kernel.results(), program.numbers);
            return Err(format!("a program has {results} results, for {numbers} numbers of {} arrays", program.arrays));
        }
        if let Some((scalar, _)) = self.traced.iter().find(|(scalar, _)| *scalar >= self.scalars.len()) {
            return Err(format!("there is no scalar {scalar}"));
        }
        let operands = self.traced.iter().map(|(_, operand)| *operand).chain(self.totals);
        self.numbers = operands.map(|operand| operand.saturating_add(1)).max().unwrap_or(0);
        Ok(())
    }
}

/// The largest number of cached calls: one for each shape of a model that a process trains.
const MOST_RECENT: usize = 64;

/// The largest number of scalars and arrays of a program.
const MOST_OF_PROGRAM: usize = 1 << 16;

impl CallProgram {
    fn parse(text: &str, set: usize, arrays: usize, numbers: usize, written: &[usize]) -> Result<Self> {
        if set.max(arrays).max(numbers) > MOST_OF_PROGRAM {
            return Err(format!("{set} scalars, {arrays} arrays and {numbers} numbers: expected fewer"));
        }
        let parsed = ParsedProgram::parse(text).map_err(|error| error.to_string())?;
        let kernel = parsed.compile().map_err(|error| error.to_string())?;
        let is_in_order = written.is_sorted_by(|place, next| place < next);
        if kernel.outputs() != written.len() || written.last().is_some_and(|last| *last >= arrays) || !is_in_order {
            return Err(format!("{} outputs are written to {written:?} of {arrays} arrays", kernel.outputs()));
        }
        if arrays == 0 || kernel.leaf_inputs() > arrays {
            return Err(format!("{} inputs, for {arrays} arrays", kernel.leaf_inputs()));
        }
        let is_guarded = parsed.guard.is_some();
        Ok(Self { kernel, written: written.to_vec(), set, arrays, numbers, is_guarded })
    }

    /// Whether it writes all arrays of a leaf, and its results are the new scalar slots.
    fn is_step(&self) -> bool {
        self.arrays >= 2 && self.kernel.results() == self.numbers
    }
}

fn all<T: FromStr>(text: &str) -> Option<Vec<T>> {
    text.split_whitespace().map(|word| word.parse().ok()).collect()
}
