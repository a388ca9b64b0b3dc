//! The text of a call: the programs and the leaves that they run over. It is an attribute of the call, and so a part of
//! the compiled function, which may outlive the optimizer or be loaded from a cache in another process.

use std::collections::HashMap;
use std::fmt::Write;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use oxigrad_core::kernel::Kernel;
use oxigrad_core::kernel::text::ParsedProgram;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::frame::Result;
use crate::stepper::symbols::Program;

/// A call, ready to run.
pub struct Call {
    pub programs: Vec<CallProgram>,
    pub leaves: Vec<CallLeaf>,
    /// The scalars, set by set.
    pub scalars: Vec<f64>,
    /// The scalars that come as operands: the number of each among `scalars`, and that of its operand.
    pub traced: Vec<(usize, usize)>,
    /// The number of operands that are scalars; they come first.
    pub numbers: usize,
    pub seed: u64,
    /// Whether the slots of all leaves are one array each.
    pub flat: bool,
}

/// A program of a call.
pub struct CallProgram {
    pub kernel: Kernel,
    /// The outputs: 0 for the gradient, 1 for the parameter, then the slots.
    pub written: Vec<usize>,
    pub slots: usize,
    /// The number of slots that are one number for the leaf.
    pub numbers: usize,
    pub is_guarded: bool,
}

/// A leaf of a call.
#[derive(Clone, Copy)]
pub struct CallLeaf {
    pub program: usize,
    /// The start of its set of scalars.
    pub scalars: usize,
    pub position: u64,
    pub stochastic: bool,
}

impl CallProgram {
    /// The scalars that the kernel takes from a set; the numbers of the leaf come after them.
    pub fn scalars(&self) -> usize {
        self.kernel.scalar_inputs().saturating_sub(self.numbers)
    }
}

/// The text of a call of `programs`, each with the length of its sets of scalars and the numbers of its slots that are
/// arrays and numbers. A leaf has the number of its program, the start of its set among `scalars`, its position, and
/// whether halves are rounded stochastically.
#[pyfunction]
#[pyo3(signature = (programs, leaves, scalars, traced, *, seed, flat=false))]
pub fn xla_call(
    programs: Vec<(PyRef<'_, Program>, usize, usize, usize)>,
    leaves: Vec<(usize, usize, u64, bool)>,
    scalars: Vec<f64>,
    traced: Vec<(usize, usize)>,
    seed: u64,
    flat: bool,
) -> PyResult<String> {
    let mut text = format!("call {seed} {}\n", u8::from(flat));
    for (program, set, slots, numbers) in &programs {
        _ = write!(text, "program {set} {slots} {numbers}");
        program.written.iter().for_each(|place| _ = write!(text, " {place}"));
        text.push('\n');
        for line in program.text().lines() {
            _ = writeln!(text, " {line}");
        }
    }
    for (program, start, position, stochastic) in leaves {
        _ = writeln!(text, "leaf {program} {start} {position} {}", u8::from(stochastic));
    }
    text.push_str("scalars");
    scalars.iter().for_each(|value| _ = write!(text, " {:016x}", value.to_bits()));
    for (scalar, operand) in traced {
        _ = write!(text, "\ntraced {scalar} {operand}");
    }
    text.push('\n');
    Call::parse(&text).map(|_| text).map_err(PyValueError::new_err)
}

impl Call {
    /// The call of a text, compiled if it is not among the last ones.
    pub fn of(text: &str) -> Result<Arc<Self>> {
        static RECENT: Mutex<Option<HashMap<Box<str>, Arc<Call>>>> = Mutex::new(None);
        let recent = || RECENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = recent().as_ref().and_then(|calls| calls.get(text)) {
            return Ok(call.clone());
        }
        let call = Arc::new(Self::parse(text)?);
        let mut recent = recent();
        let calls = recent.get_or_insert_default();
        if calls.len() >= MOST_RECENT {
            calls.clear();
        }
        calls.insert(text.into(), call.clone());
        Ok(call)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut call = Self {
            programs: vec![],
            leaves: vec![],
            scalars: vec![],
            traced: vec![],
            numbers: 0,
            seed: 0,
            flat: false,
        };
        let mut sets = Vec::new();
        let mut lines = text.lines().enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let error = || format!("line {} of the call: {line:?}", number + 1);
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            let words = || all::<u64>(rest).ok_or_else(error);
            let counts = || all::<usize>(rest).ok_or_else(error);
            match name {
                "call" => {
                    let &[seed, flat] = &words()?[..] else { return Err(error()) };
                    (call.seed, call.flat) = (seed, flat != 0);
                }
                "program" => {
                    let mut program = String::new();
                    while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with(' ')) {
                        program.push_str(line);
                        program.push('\n');
                    }
                    let counts = counts()?;
                    let [set, slots, numbers, written @ ..] = &counts[..] else { return Err(error()) };
                    sets.push(*set);
                    call.programs.push(CallProgram::parse(&program, *slots, *numbers, written)?);
                }
                "leaf" => {
                    let &[program, scalars, position, stochastic] = &words()?[..] else { return Err(error()) };
                    let count = |number: u64| usize::try_from(number).map_err(|_| error());
                    let (program, scalars, stochastic) = (count(program)?, count(scalars)?, stochastic != 0);
                    call.leaves.push(CallLeaf { program, scalars, position, stochastic });
                }
                "scalars" => {
                    let bits = rest.split_whitespace().map(|word| u64::from_str_radix(word, 16).ok());
                    call.scalars =
                        bits.map(|bits| bits.map(f64::from_bits)).collect::<Option<_>>().ok_or_else(error)?;
                }
                "traced" => {
                    let &[scalar, operand] = &counts()?[..] else { return Err(error()) };
                    call.traced.push((scalar, operand));
                }
                _ => return Err(error()),
            }
        }
        call.check(&sets)?;
        Ok(call)
    }

    fn check(&mut self, sets: &[usize]) -> Result<()> {
        for (at, leaf) in self.leaves.iter().enumerate() {
            let Some(program) = self.programs.get(leaf.program) else {
                return Err(format!("leaf {at} is of the program {}, there are {}", leaf.program, self.programs.len()));
            };
            let set = sets[leaf.program];
            if program.scalars() > set || set == 0 || leaf.scalars.saturating_add(set) > self.scalars.len() {
                let (start, takes) = (leaf.scalars, program.scalars());
                return Err(format!(
                    "leaf {at} has {set} scalars from {start} on, of {}; its program takes {takes}",
                    self.scalars.len()
                ));
            }
        }
        if self.flat && self.leaves.iter().any(|leaf| leaf.program != 0) {
            return Err("leaves whose slots are one array are of one program".into());
        }
        if let Some((scalar, _)) = self.traced.iter().find(|(scalar, _)| *scalar >= self.scalars.len()) {
            return Err(format!("there is no scalar {scalar}"));
        }
        self.numbers = self.traced.iter().map(|(_, operand)| operand.saturating_add(1)).max().unwrap_or(0);
        Ok(())
    }
}

/// The most calls that are kept compiled: one for each shape of a model that a process trains.
const MOST_RECENT: usize = 64;

impl CallProgram {
    fn parse(text: &str, slots: usize, numbers: usize, written: &[usize]) -> Result<Self> {
        let parsed = ParsedProgram::parse(text).map_err(|error| error.to_string())?;
        let kernel = parsed.compile().map_err(|error| error.to_string())?;
        let arrays = slots.saturating_add(2);
        let is_in_order = written.is_sorted_by(|place, next| place < next);
        if kernel.outputs() != written.len() || written.iter().any(|place| *place >= arrays) || !is_in_order {
            return Err(format!("{} outputs are written to {written:?} of {arrays} arrays", kernel.outputs()));
        }
        if kernel.leaf_inputs() > arrays || kernel.results() != numbers {
            let (inputs, results) = (kernel.leaf_inputs(), kernel.results());
            return Err(format!("{inputs} inputs and {results} results, for {arrays} arrays and {numbers} numbers"));
        }
        Ok(Self { kernel, written: written.to_vec(), slots, numbers, is_guarded: parsed.guard.is_some() })
    }
}

fn all<T: FromStr>(text: &str) -> Option<Vec<T>> {
    text.split_whitespace().map(|word| word.parse().ok()).collect()
}
