//! The listing of a compiled kernel.

use std::fmt;

use super::compiled::{Kernel, ScalarStep};
use super::instruction::{Instruction, Work};

impl Kernel {
    fn register_name_of(&self, register: u16) -> String {
        self.register_name(usize::from(register))
    }

    /// The name of a register in listings and printed code.
    pub(crate) fn register_name(&self, register: usize) -> String {
        if register < self.first_output() {
            format!("in{register}")
        } else if register < self.first_scalar() {
            format!("out{}", register - self.first_output())
        } else if register < self.first_temporary() {
            format!("s{}", self.splats[register - self.first_scalar()])
        } else {
            format!("r{}", register - self.first_temporary())
        }
    }

    fn write_instruction(&self, f: &mut fmt::Formatter<'_>, code: &Instruction) -> fmt::Result {
        match code.work {
            Work::Apply(op, args) => {
                let args: Vec<String> = args[..op.arity()].iter().map(|arg| self.register_name_of(*arg)).collect();
                writeln!(f, "  {} = {}({})", self.register_name_of(code.to), op.name(), args.join(", "))
            }
            Work::Noise(draw) => writeln!(f, "  {} = noise({draw})", self.register_name_of(code.to)),
            Work::Sum(arg) => writeln!(f, "  sum{} = sum({})", code.to, self.register_name_of(arg)),
            Work::Dot(args) => {
                let [a, b] = args.map(|arg| self.register_name_of(arg));
                writeln!(f, "  sum{} = sum({a} * {b})", code.to)
            }
        }
    }
}

impl fmt::Display for ScalarStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(k) => write!(f, "scalar{k}"),
            Self::Constant(value) => write!(f, "{value:?}"),
            Self::Sum(k) => write!(f, "sum{k}"),
            Self::Total(arg) => write!(f, "total(s{arg})"),
            Self::Apply(op, args) => {
                let args: Vec<String> = args[..op.arity()].iter().map(|arg| format!("s{arg}")).collect();
                write!(f, "{}({})", op.name(), args.join(", "))
            }
        }
    }
}

/// A line a scalar, a loop or a phase: `s` are scalars in `f64`, `r` temporaries, `in` and `out` a leaf's arrays.
impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printed = 0;
        for (number, phase) in self.phases.iter().enumerate() {
            for (step, value) in self.scalar_steps[..phase.known_scalars].iter().enumerate().skip(printed) {
                writeln!(f, "s{step} = {value}")?;
            }
            printed = phase.known_scalars;
            writeln!(f, "phase {number}: {} registers", phase.temporaries)?;
            if let Some((_, guard)) = self.guard.filter(|(at, _)| *at == number) {
                writeln!(f, "  stop unless s{guard}")?;
            }
            phase.code.iter().try_for_each(|code| self.write_instruction(f, code))?;
        }
        self.results.iter().enumerate().try_for_each(|(k, result)| writeln!(f, "result{k} = s{result}"))
    }
}
