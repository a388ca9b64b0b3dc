//! Code generation: a kernel as source text, in the syntax of a [`Dialect`].

use super::compiled::{Kernel, Phase};
use super::graph::Graph;
use super::instruction::Work;
use super::lower::kernel;
use super::program::{Node, Wanted};
use crate::error::Result;
use crate::op::Elementwise;

/// The syntax of a language; `{0}`, `{1}` and so on are placeholders.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The declaration of a variable `{0}` with the value `{1}`.
    pub declare: &'static str,
    /// The call of an op, with a placeholder for each argument.
    pub call: fn(Elementwise) -> String,
}

/// Rust over [`crate::simd::Lane`].
pub const RUST: Dialect = Dialect {
    declare: "            let {0} = {1};",
    call: |op| format!("meaning::{op:?}.call({})", ["{0}", "{1}", "{2}"][..op.arity()].join(", ")),
};

const HEAD: &str = "\
//! Printed by `kernel/codegen.rs` from the rules of the Python layer (`make generated`); do not edit.

use super::code::{NativeCode, NativeVisitor, count, native_kernels};
use crate::op::meaning;
#[allow(unused_imports, reason = \"no rule may have an op of some arity\")]
use crate::simd::{Binary, Lane, Ternary, Unary};
";

const HEAD_OF_TABLE: &str = "\
// Printed with `generated.rs` (`make generated`); do not edit. The name of each kernel and its program.
";

/// A phase as source text: a line an instruction, and the factors of the terms of its sums.
struct Printed {
    lines: Vec<String>,
    terms: Vec<String>,
}

impl Kernel {
    /// A phase, in which inputs are called `in0`, scalars `s0` (as in the kernel's listing), outputs `out0`, and draws
    /// `noise0`.
    fn print(&self, phase: &Phase, dialect: &Dialect) -> Printed {
        let mut names: Vec<String> = (0..self.first_temporary()).map(|register| self.register_name(register)).collect();
        names.resize(self.first_temporary() + phase.temporaries, String::new());
        let mut printed = Printed { lines: Vec::new(), terms: Vec::new() };
        for (number, code) in phase.code.iter().enumerate() {
            let to = usize::from(code.to);
            match code.work {
                Work::Apply(op, args) => {
                    let args: Vec<&str> = args.iter().map(|arg| names[usize::from(*arg)].as_str()).collect();
                    let value = filled(&(dialect.call)(op), &args);
                    if to >= self.first_temporary() {
                        names[to] = format!("t{number}");
                    }
                    printed.lines.push(filled(dialect.declare, &[&names[to], &value]));
                }
                Work::Noise(draw) => names[to] = format!("noise{draw}"),
                Work::Sum(arg) => printed.terms.push(format!("[{}]", names[usize::from(arg)])),
                Work::Dot(args) => {
                    printed.terms.push(format!("[{}]", args.map(|arg| names[usize::from(arg)].as_str()).join(", ")));
                }
            }
        }
        printed
    }

    /// The phases that have work for each element, as rows of `generated.rs`.
    fn print_native(&self, kernel: &str) -> String {
        let working = self.phases.iter().rposition(|phase| !phase.code.is_empty()).map_or(0, |last| last + 1);
        let name = |number| if working == 1 { kernel.to_owned() } else { format!("{kernel}Phase{number}") };
        let phases = self.phases[..working].iter().enumerate();
        phases.map(|(number, phase)| self.print_phase(phase, &name(number))).collect()
    }

    fn print_phase(&self, phase: &Phase, name: &str) -> String {
        let Printed { lines, terms } = self.print(phase, &RUST);
        let mut inputs: Vec<String> = phase.reads.iter().map(|input| self.register_name((*input).into())).collect();
        inputs.extend(phase.draws.iter().map(|draw| format!("noise{draw}")));
        let is_read = |register: usize| phase.code.iter().any(|code| code.work.reads(register));
        // All phases share the scalars, of which each knows and needs some.
        let scalar = |register| if is_read(register) { self.register_name(register) } else { "_".into() };
        let scalars: Vec<String> = (self.first_scalar()..self.first_temporary()).map(scalar).collect();
        let output = |number: u16| self.register_name(self.first_output() + usize::from(number));
        let outputs: Vec<String> = phase.writes.iter().map(|write| output(write.output)).collect();
        let [inputs, scalars, outputs, terms] = [inputs, scalars, outputs, terms].map(|names| names.join(", "));
        let lines = lines.join("\n");
        format!("        {name}: [{inputs}] [{scalars}] -> [{outputs}] [{terms}] {{\n{lines}\n        }}\n")
    }
}

/// The texts of `generated.rs`, native code for programs, given as nodes and outputs under a name, and of the table of
/// these programs, which tests read.
///
/// # Errors
/// `Rule` if no kernel can run a program.
pub fn print_generated(programs: &[(String, &[Node], Wanted)]) -> Result<(String, String)> {
    let (mut kernels, mut sources) = (Vec::new(), Vec::new());
    for (name, nodes, wanted) in programs {
        let graph = Graph::new(nodes, wanted)?;
        let phases = kernel(&graph)?.print_native(name);
        kernels.push(format!("    {:#034x} {name} {{\n{phases}    }}\n", graph.fingerprint()));
        let Graph { nodes, outputs, results, guard, .. } = graph;
        let wanted = format!("Wanted {{ outputs: &{outputs:?}, results: &{results:?}, guard: {guard:?} }}");
        let nodes = format!("{nodes:?}").replace("Constant(inf)", "Constant(f64::INFINITY)");
        sources.push(format!("    ({name:?}, &{nodes}, {wanted}),"));
    }
    let code = format!("{HEAD}\nnative_kernels! {{\n{}}}\n", kernels.concat());
    Ok((code, format!("{HEAD_OF_TABLE}&[\n{}\n]\n", sources.join("\n"))))
}

/// The template with `{0}`, `{1}`, ... replaced.
fn filled(template: &str, values: &[&str]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let number = rest[at + 1..].split('}').next().and_then(|digits| digits.parse::<usize>().ok());
        let Some(value) = number.and_then(|number| values.get(number)) else { break };
        text.push_str(&rest[..at]);
        text.push_str(value);
        rest = rest[at..].split_once('}').map_or("", |(_, after)| after);
    }
    text + rest
}
