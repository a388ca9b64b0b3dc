//! A compiled kernel as text, for people and for comparing kernels.

use std::fmt;

use super::{Instruction, Kernel, ScalarStep, Work};

impl Kernel {
    fn slot_name(&self, slot: u16) -> String {
        self.place_name(usize::from(slot))
    }

    /// What a slot is called in listings and printed programs.
    pub(crate) fn place_name(&self, slot: usize) -> String {
        if slot < self.first_output() {
            format!("in{slot}")
        } else if slot < self.first_scalar() {
            format!("out{}", slot - self.first_output())
        } else if slot < self.first_register() {
            format!("s{}", self.splats[slot - self.first_scalar()])
        } else {
            format!("r{}", slot - self.first_register())
        }
    }

    fn write_instruction(&self, f: &mut fmt::Formatter<'_>, code: &Instruction) -> fmt::Result {
        match code.work {
            Work::Apply(op, args) => {
                let args: Vec<String> = args[..op.arity()].iter().map(|arg| self.slot_name(*arg)).collect();
                writeln!(f, "  {} = {}({})", self.slot_name(code.to), op.name(), args.join(", "))
            }
            Work::Noise(draw) => writeln!(f, "  {} = noise({draw})", self.slot_name(code.to)),
            Work::Sum(arg) => writeln!(f, "  sum{} = sum({})", code.to, self.slot_name(arg)),
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

/// A line a scalar, a loop or a phase: `s` are scalars in `f64`, `r` block registers, `in` and `out` a leaf's arrays.
impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut known = 0;
        for (number, phase) in self.phases.iter().enumerate() {
            for (step, value) in self.scalar_steps[..phase.known_scalars].iter().enumerate().skip(known) {
                writeln!(f, "s{step} = {value}")?;
            }
            known = phase.known_scalars;
            writeln!(f, "phase {number}: {} registers", phase.registers)?;
            if let Some((_, guard)) = self.guard.filter(|(at, _)| *at == number) {
                writeln!(f, "  stop unless s{guard}")?;
            }
            phase.code.iter().try_for_each(|code| self.write_instruction(f, code))?;
        }
        self.results.iter().enumerate().try_for_each(|(k, result)| writeln!(f, "result{k} = s{result}"))
    }
}
