//! The `Update` entries: one phase over one chunk.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::functions::Functions;
use super::memory::{elements, type_of};
use super::{Layout, THREADS};
use crate::error::{Error, Result};
use crate::kernel::compiled::{Kernel, Phase};
use crate::kernel::instruction::Work;

/// The entry of a phase.
pub(super) fn print(kernel: &Kernel, number: usize, layout: &Layout, functions: &mut Functions) -> Result<String> {
    Update { kernel, phase: &kernel.phases[number], number, layout }.print(functions)
}

struct Update<'a> {
    kernel: &'a Kernel,
    phase: &'a Phase,
    number: usize,
    layout: &'a Layout<'a>,
}

impl Update<'_> {
    /// The array of an output.
    fn written(&self, output: u16) -> usize {
        self.layout.written[usize::from(output)]
    }

    /// The arrays that the phase accesses.
    fn accessed(&self) -> BTreeSet<usize> {
        let read = self.phase.reads.iter().map(|input| usize::from(*input));
        read.chain(self.phase.writes.iter().map(|write| self.written(write.output))).collect()
    }

    fn print(&self, functions: &mut Functions) -> Result<String> {
        let element = functions.element();
        let accessed = self.accessed();
        let each = elements(self.layout, accessed.iter().copied());
        let mut text = format!(
            "extern \"C\" __global__ void __launch_bounds__({THREADS}) update_{}(const __grid_constant__ OxLaunch launch)\n\
             {{\n    const OxTask task = launch.tasks[blockIdx.x];\n    const OxLeaf &leaf = launch.leaves[task.leaf];\n    \
             const ox_u64 start = (ox_u64)task.chunk * 4096;\n    const ox_u64 left = leaf.length - start;\n    const ox_u32 \
             length = left < 4096 ? (ox_u32)left : 4096;\n",
            self.number
        );
        for (number, step) in self.scalars() {
            _ = writeln!(text, "    const {element} s{step} = ({element})ox_value(launch, leaf.row, {number});");
        }
        let mut addresses = String::from("0");
        for array in &accessed {
            let size = self.layout.dtypes[*array].size();
            _ = writeln!(text, "    char *const a{array} = (char *)leaf.arrays[{array}] + start * {size};");
            _ = write!(addresses, " | (ox_u64)a{array}");
        }
        _ = writeln!(text, "    const bool aligned = (({addresses}) & 15) == 0;");
        _ = writeln!(text, "    for (ox_u32 tile = 0; tile < length; tile += {}) {{", THREADS * each);
        _ = writeln!(text, "        OX_THREADS {{");
        _ = writeln!(text, "            const ox_u32 first = tile + threadIdx.x * {each};");
        _ = writeln!(text, "            const ox_u32 count = first < length ? length - first : 0;");
        _ = writeln!(text, "            const bool wide = aligned && count >= {each};");
        for input in &self.phase.reads {
            let dtype = self.layout.dtypes[usize::from(*input)];
            _ = writeln!(text, "            {element} in{input}[{each}];");
            let (kind, size) = (type_of(dtype), dtype.size());
            _ = writeln!(
                text,
                "            ox_load<{kind}>(in{input}, a{input} + (ox_u64)first * {size}, count, wide);"
            );
        }
        for write in &self.phase.writes {
            _ = writeln!(text, "            {element} out{}[{each}];", write.output);
        }
        _ = writeln!(text, "#pragma unroll\n            for (int k = 0; k < {each}; ++k) {{");
        self.code(functions, &mut text)?;
        _ = writeln!(text, "            }}");
        for write in &self.phase.writes {
            let (output, array) = (write.output, self.written(write.output));
            let dtype = self.layout.dtypes[array];
            let (kind, size) = (type_of(dtype), dtype.size());
            _ = writeln!(
                text,
                "            ox_store<{kind}>(out{output}, a{array} + (ox_u64)first * {size}, count, wide);"
            );
        }
        text.push_str("        }\n    }\n}\n\n");
        Ok(text)
    }

    /// The scalars that the phase reads: their numbers among those kept, and their steps.
    fn scalars(&self) -> Vec<(usize, u16)> {
        let range = self.kernel.first_scalar()..self.kernel.first_temporary();
        let mut found = BTreeSet::new();
        for code in &self.phase.code {
            let args = match code.work {
                Work::Apply(op, args) => args[..op.arity()].to_vec(),
                Work::Sum(arg) => vec![arg],
                Work::Noise(_) => Vec::new(),
            };
            found.extend(args.into_iter().map(usize::from).filter(|arg| range.contains(arg)));
        }
        found.into_iter().map(|arg| (arg - range.start, self.kernel.splats[arg - range.start])).collect()
    }

    /// The instructions, on element `k`.
    fn code(&self, functions: &mut Functions, text: &mut String) -> Result<()> {
        let kernel = self.kernel;
        let element = functions.element();
        let mut names: Vec<String> = (0..kernel.first_temporary() + self.phase.temporaries)
            .map(|register| {
                let name = kernel.register_name(register);
                if register < kernel.first_scalar() { format!("{name}[k]") } else { name }
            })
            .collect();
        for (number, code) in self.phase.code.iter().enumerate() {
            let to = usize::from(code.to);
            let value = match code.work {
                Work::Apply(op, args) => {
                    let args: Vec<&str> =
                        args[..op.arity()].iter().map(|arg| names[usize::from(*arg)].as_str()).collect();
                    functions.on_elements(op, &args)?
                }
                Work::Noise(_) | Work::Sum(_) => return Err(Error::Rule("noise and sums have no form".into())),
            };
            if to >= kernel.first_temporary() {
                names[to] = format!("t{number}");
                _ = writeln!(text, "                const {element} t{number} = {value};");
            } else {
                _ = writeln!(text, "                {} = {value};", names[to]);
            }
        }
        Ok(())
    }
}
