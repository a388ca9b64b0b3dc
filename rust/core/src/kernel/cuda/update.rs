//! The `Update` entries: one phase over one chunk.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::functions::Functions;
use super::memory::Array;
use super::source::{Layout, THREADS};
use crate::array::dtype::Dtype;
use crate::error::{Error, Result};
use crate::kernel::compiled::{Kernel, Phase};
use crate::kernel::instruction::Work;

/// Bytes of shared memory that every device has.
const SHARED: usize = 48 << 10;

/// The `Update` of one phase.
pub(super) struct Update<'a> {
    pub kernel: &'a Kernel,
    pub number: usize,
    pub layout: &'a Layout<'a>,
}

impl<'a> Update<'a> {
    fn phase(&self) -> &'a Phase {
        &self.kernel.phases[self.number]
    }

    /// The arrays that are read, by input.
    fn inputs(&self) -> Vec<Array> {
        self.phase().reads.iter().map(|input| self.layout.array(usize::from(*input))).collect()
    }

    /// The outputs that are written, each with its array.
    fn outputs(&self) -> Vec<(u16, Array)> {
        let array = |output: u16| self.layout.array(self.layout.written[usize::from(output)]);
        self.phase().writes.iter().map(|write| (write.output, array(write.output))).collect()
    }

    /// The draws of noise of the rule.
    fn draws(&self) -> BTreeSet<u32> {
        let draw = |work: &Work| if let Work::Noise(draw) = work { Some(*draw) } else { None };
        self.phase().code.iter().filter_map(|code| draw(&code.work)).collect()
    }

    /// Whether random numbers are drawn, by the rule or to round.
    pub fn is_random(&self) -> bool {
        !self.draws().is_empty() || self.outputs().iter().any(|(_, array)| array.rounding.is_some())
    }

    /// Appends the entry to `text`.
    pub fn print(&self, functions: &mut Functions, text: &mut String) -> Result<()> {
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let (each, threads) = (self.each(), self.threads()?);
        self.head(functions, each, threads, text);
        let tile = threads * each;
        _ = writeln!(text, "    for (ox_u32 tile = 0; tile < length; tile += {tile}) {{\n        OX_THREADS {{");
        text.push_str(&Self::position(each));
        for array in &inputs {
            let name = format!("in{}", array.number);
            _ = writeln!(
                text,
                "            {} {name}[{each}];\n            {}",
                functions.element(),
                array.load(&name)
            );
        }
        for (output, _) in &outputs {
            _ = writeln!(text, "            {} out{output}[{each}];", functions.element());
        }
        _ = writeln!(text, "#pragma unroll\n            for (int k = 0; k < {each}; ++k) {{");
        self.code(functions, each, text)?;
        text.push_str("            }\n");
        for (output, array) in &outputs {
            _ = writeln!(text, "            {}", array.store(*output));
        }
        text.push_str("        }\n");
        self.after_barrier(&outputs, each, threads, text);
        text.push_str("    }\n");
        self.partials(text);
        text.push_str("}\n\n");
        Ok(())
    }

    fn head(&self, functions: &Functions, each: usize, threads: usize, text: &mut String) {
        let element = functions.element();
        _ = writeln!(
            text,
            "extern \"C\" __global__ void __launch_bounds__({threads}) update_{}(const __grid_constant__ OxLaunch launch)\n{{",
            self.number
        );
        if self.kernel.guard.is_some_and(|(phase, _)| self.number >= phase) {
            text.push_str("    if (launch.control->stopped) return;\n");
        }
        text.push_str(
            "    const OxTask task = launch.tasks[blockIdx.x];\n    const OxLeaf &leaf = launch.leaves[task.leaf];\n    OX_GLOBAL(&leaf)\n    \
             const ox_u64 start = (ox_u64)task.chunk * 4096;\n    const ox_u64 left = leaf.length - start;\n    const \
             ox_u32 length = left < 4096 ? (ox_u32)left : 4096;\n",
        );
        for place in self.kernel.scalars_of(self.number) {
            let step = self.kernel.splats[place];
            _ = writeln!(text, "    const {element} s{step} = ({element})ox_value(launch, leaf.row, {place});");
        }
        if self.is_random() {
            text.push_str("    const ox_u64 key = ox_key(launch, leaf);\n");
        }
        for draw in self.draws() {
            _ = writeln!(text, "    const OxStream n{draw} = ox_stream(key, {draw}, start);");
        }
        let mut addresses = Vec::new();
        for array in self.arrays() {
            let number = array.number;
            text.push_str(&array.pointers());
            addresses.push(format!("(ox_u64)a{number}"));
        }
        for (_, array) in self.outputs() {
            text.push_str(&array.stream());
        }
        let addresses = if addresses.is_empty() { "0".into() } else { addresses.join(" | ") };
        _ = writeln!(text, "    const bool aligned = (({addresses}) & 15) == 0;");
        for (output, _) in self.outputs().iter().filter(|(_, array)| array.is_codes()) {
            _ = writeln!(text, "    OX_STATE(float, c{output}, {each});");
            _ = writeln!(text, "    __shared__ uint2 largest{output}[{threads}];");
        }
        for sum in &self.phase().sums {
            let term = if self.is_dot(*sum) { "double" } else { element };
            _ = writeln!(text, "    __shared__ {term} tile{sum}[{}];", threads * each);
            _ = writeln!(text, "    __shared__ double totals{sum}[16];");
        }
        if !self.phase().sums.is_empty() {
            text.push_str("    OX_THREADS {\n        if (threadIdx.x < 16) {\n");
            for sum in &self.phase().sums {
                _ = writeln!(text, "            totals{sum}[threadIdx.x] = 0.0;");
            }
            text.push_str("        }\n    }\n    OX_BARRIER\n");
        }
    }

    /// The elements of a thread in a tile.
    fn position(each: usize) -> String {
        format!(
            "            const ox_u32 first = tile + threadIdx.x * {each};\n            const ox_u32 count = first < length ? \
             length - first : 0;\n            const bool wide = aligned && count >= {each};\n"
        )
    }

    /// The instructions, on element `k`.
    fn code(&self, functions: &mut Functions, each: usize, text: &mut String) -> Result<()> {
        let kernel = self.kernel;
        let element = functions.element();
        let mut names: Vec<String> = (0..kernel.first_temporary() + self.phase().temporaries)
            .map(|register| {
                let name = kernel.register_name(register);
                if register < kernel.first_scalar() { format!("{name}[k]") } else { name }
            })
            .collect();
        for (number, code) in self.phase().code.iter().enumerate() {
            let value = match code.work {
                Work::Apply(op, args) => {
                    let args: Vec<&str> =
                        args[..op.arity()].iter().map(|arg| names[usize::from(*arg)].as_str()).collect();
                    functions.on_elements(op, &args)?
                }
                Work::Noise(draw) => format!("({element})ox_uniform(n{draw}, (ox_u32)start + first + k)"),
                Work::Sum(_) | Work::Dot(_) => {
                    let sum = code.to;
                    let value = match code.work {
                        Work::Dot([a, b]) => {
                            format!("(double){} * (double){}", names[usize::from(a)], names[usize::from(b)])
                        }
                        work => names[usize::from(work.arguments()[0])].clone(),
                    };
                    _ = writeln!(
                        text,
                        "                tile{sum}[threadIdx.x * {each} + k] = (ox_u32)k < count ? {value} : 0;"
                    );
                    continue;
                }
            };
            let to = usize::from(code.to);
            if to >= kernel.first_temporary() {
                names[to] = format!("t{number}");
                _ = writeln!(text, "                const {element} t{number} = {value};");
            } else {
                _ = writeln!(text, "                {} = {value};", names[to]);
            }
        }
        Ok(())
    }

    /// The work on a tile that needs the numbers of other threads.
    fn after_barrier(&self, outputs: &[(u16, Array)], each: usize, threads: usize, text: &mut String) {
        let codes: Vec<&(u16, Array)> = outputs.iter().filter(|(_, array)| array.is_codes()).collect();
        if codes.is_empty() && self.phase().sums.is_empty() {
            return;
        }
        text.push_str("        OX_BARRIER\n        OX_THREADS {\n");
        for (at, sum) in self.phase().sums.iter().enumerate() {
            _ = writeln!(text, "            if (threadIdx.x / 16 == {at})");
            _ = writeln!(
                text,
                "                ox_accumulate(tile{sum}, length - tile < {tile} ? length - tile : {tile}, totals{sum}, \
                 threadIdx.x % 16);",
                tile = threads * each
            );
        }
        if !codes.is_empty() {
            text.push_str(&Self::position(each));
        }
        for (output, array) in codes {
            text.push_str(&array.encode(*output, each));
        }
        text.push_str("        }\n        OX_BARRIER\n");
    }

    /// The sums of the chunk.
    fn partials(&self, text: &mut String) {
        if self.phase().sums.is_empty() {
            return;
        }
        text.push_str("    OX_THREADS {\n");
        for (at, sum) in self.phase().sums.iter().enumerate() {
            _ = writeln!(
                text,
                "        if (threadIdx.x == {at}) launch.partials[((ox_u64)leaf.first_chunk + task.chunk) * {} + {sum}] = \
                 ox_balanced(totals{sum});",
                self.kernel.sums
            );
        }
        text.push_str("    }\n");
    }

    /// The threads of a block: as many as have room for their sums and codes in shared memory.
    ///
    /// # Errors
    /// `Rule` if even the fewest have none.
    pub fn threads(&self) -> Result<usize> {
        let size = |sum: &u16| if self.layout.computed() == Dtype::F64 || self.is_dot(*sum) { 8 } else { 4 };
        let size: usize = self.phase().sums.iter().map(size).sum();
        let sums = self.phase().sums.len();
        let codes = self.outputs().iter().filter(|(_, array)| array.is_codes()).count();
        let each = self.each();
        let fits = |threads: &usize| {
            threads * each * size + sums * 128 + codes * threads * 8 <= SHARED && sums <= threads / 16
        };
        [THREADS, THREADS / 2, THREADS / 4].into_iter().find(fits).ok_or_else(|| {
            Error::Rule(format!("found {sums} sums over elements in one pass, which is too many for a device"))
        })
    }

    /// Whether the terms of a sum are products in `double`.
    fn is_dot(&self, sum: u16) -> bool {
        self.phase().code.iter().any(|code| matches!(code.work, Work::Dot(_)) && code.to == sum)
    }

    /// The arrays that are read or written.
    fn arrays(&self) -> BTreeSet<Array> {
        self.inputs().into_iter().chain(self.outputs().into_iter().map(|(_, array)| array)).collect()
    }

    /// The elements of a thread: those of 16 bytes of the smallest dtype.
    fn each(&self) -> usize {
        self.arrays().iter().map(|array| 16 / array.dtype.size()).max().unwrap_or(4)
    }
}
