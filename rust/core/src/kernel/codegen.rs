//! Code generation: a kernel as source text, in the syntax of a [`Dialect`].

use super::compiled::Kernel;
use super::graph::Graph;
use super::instruction::Work;
use super::lower::kernel;
use super::program::{Node, Wanted};
use crate::error::{Error, Result};
use crate::op::Elementwise;

/// The syntax of a language; `{0}`, `{1}` and so on are placeholders.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The declaration of a variable `{0}` with the value `{1}`.
    pub declare: &'static str,
    /// The call of an op, with a placeholder for each argument.
    pub call: fn(Elementwise) -> String,
    /// The draw `{0}` of random numbers, if the language has it.
    pub noise: Option<&'static str>,
}

/// Rust over [`crate::simd::Lane`].
pub const RUST: Dialect = Dialect {
    declare: "        let {0} = {1};",
    call: |op| format!("meaning::{op:?}.call({})", ["{0}", "{1}", "{2}"][..op.arity()].join(", ")),
    noise: None,
};

const HEAD: &str = "\
//! Printed by `kernel/codegen.rs` from the rules of the Python layer (`make generated`); do not edit.

use super::code::{NativeCode, NativeVisitor, native_kernels};
use crate::kernel::program::Node::{self, Apply, Constant, Leaf, Scalar};
use crate::kernel::program::Wanted;
#[allow(clippy::enum_glob_use, reason = \"programs name whatever ops they have\")]
use crate::op::Elementwise::*;
use crate::op::meaning;
#[allow(unused_imports, reason = \"no rule may have an op of some arity\")]
use crate::simd::{Binary, Lane, Ternary, Unary};
";

impl Kernel {
    /// The only phase of the kernel, a line an instruction: inputs are called `in0`, scalars `s0` (as in the kernel's
    /// listing), outputs `out0`. `None` if there are several phases, or noise in a language that has none.
    #[must_use]
    pub fn print(&self, dialect: &Dialect) -> Option<Vec<String>> {
        let [phase] = &self.phases[..] else { return None };
        let mut names: Vec<String> = (0..self.first_temporary()).map(|register| self.register_name(register)).collect();
        names.resize(self.first_temporary() + phase.temporaries, String::new());
        let mut lines = Vec::new();
        for (number, code) in phase.code.iter().enumerate() {
            let value = match code.work {
                Work::Apply(op, args) => {
                    let args: Vec<&str> = args.iter().map(|arg| names[usize::from(*arg)].as_str()).collect();
                    filled(&(dialect.call)(op), &args)
                }
                Work::Noise(draw) => filled(dialect.noise?, &[&draw.to_string()]),
                Work::Sum(_) => return None,
            };
            let to = usize::from(code.to);
            if to >= self.first_temporary() {
                names[to] = format!("t{number}");
            }
            lines.push(filled(dialect.declare, &[&names[to], &value]));
        }
        Some(lines)
    }

    /// The kernel as an item of `generated.rs`: its type, and the function over lanes.
    fn print_native(&self, name: &str) -> Option<String> {
        let lines = self.print(&RUST)?.join("\n");
        let list = |from: usize, to: usize| {
            (from..to).map(|register| self.register_name(register)).collect::<Vec<_>>().join(", ")
        };
        let (i, s, o) = (self.first_output(), self.splats.len(), self.outputs());
        // An input may be there for its number only, as the parameter beside its master weights.
        let input = |register: usize| if self.reads_leaf(register) { self.register_name(register) } else { "_".into() };
        let (inputs, outputs) = ((0..i).map(input).collect::<Vec<String>>().join(", "), list(i, i + o));
        let scalars = list(self.first_scalar(), self.first_temporary());
        Some(format!(
            "pub(crate) struct {name};\n\nimpl NativeCode<{i}, {s}, {o}> for {name} {{\n    #[inline(always)]\n    fn call<L: \
             Lane>([{inputs}]: [L; {i}], [{scalars}]: [L; {s}]) -> [L; {o}] {{\n{lines}\n        [{outputs}]\n    }}\n}}\n"
        ))
    }
}

/// The text of `generated.rs`: native code for programs, given as nodes and outputs under a name.
///
/// # Errors
/// `Rule` if no kernel can run a program, or it has no native form: several phases, or noise.
pub fn print_generated(programs: &[(String, &[Node], Wanted)]) -> Result<String> {
    let (mut rows, mut items, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    for (name, nodes, wanted) in programs {
        let graph = Graph::new(nodes, wanted)?;
        let kernel = kernel(&graph)?;
        let item = kernel.print_native(name).ok_or_else(|| Error::Rule(format!("{name} has no native form")))?;
        let (i, s, o) = (kernel.first_output(), kernel.splats.len(), kernel.outputs());
        rows.push(format!("    {:#018x} {name} {i} {s} {o}", graph.fingerprint()));
        items.push(item);
        let Graph { nodes, outputs, results, guard, .. } = graph;
        let wanted = format!("Wanted {{ outputs: &{outputs:?}, results: &{results:?}, guard: {guard:?} }}");
        sources.push(format!("    ({name:?}, &{nodes:?}, {wanted}),"));
    }
    let (rows, sources, items) = (rows.join("\n"), sources.join("\n"), items.join("\n"));
    let programs = "\
/// The programs that have native code, under a name: leaves are the gradient, the parameter and the slots, scalars the
/// step, the hyperparameters and the slots of one number; outputs and results are what is written.
pub const PROGRAMS: &[(&str, &[Node], Wanted)]";
    Ok(format!("{HEAD}\nnative_kernels! {{\n{rows}\n}}\n\n{programs} = &[\n{sources}\n];\n\n{items}"))
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
