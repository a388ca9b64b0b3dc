//! Lowering of the simplified program: phases are cut at whole-leaf reductions, scalars hoisted, instructions ordered
//! and registers allocated.

use std::collections::HashMap;

use super::compiled::{Kernel, Native, Phase, ScalarStep, Squares, Write};
use super::fingerprint::native_kernel;
use super::fuse::{FusedLoop, fused};
use super::graph::{Graph, reachable};
use super::instruction::{Instruction, Work};
use super::native::generated::NativeKernel;
use super::program::{Node, Wanted};
use crate::error::{Error, Result};
use crate::op::Elementwise;

impl Kernel {
    /// Compiles a program. Nodes that no output needs are dropped, equal ones are computed once.
    ///
    /// # Errors
    /// `Rule` if a node has a later node as argument, or the program is too large for a kernel.
    pub fn compile(nodes: &[Node], outputs: &[u32]) -> Result<Self> {
        Self::compile_wanted(nodes, &Wanted { outputs, ..Wanted::default() })
    }

    /// Compiles a program that has scalar results, or a guard.
    ///
    /// # Errors
    /// As [`Self::compile`], and `Rule` if an array is wanted as a scalar.
    pub fn compile_wanted(nodes: &[Node], wanted: &Wanted) -> Result<Self> {
        kernel(&Graph::new(nodes, wanted)?)
    }
}

pub(super) fn kernel(graph: &Graph) -> Result<Kernel> {
    let count =
        |f: fn(&Node) -> Option<u32>| graph.nodes.iter().filter_map(f).max().map_or(0, |highest| highest as usize + 1);
    let inputs = count(|node| if let Node::Leaf(k) = node { Some(*k) } else { None });
    let scalars = count(|node| if let Node::Scalar(k) = node { Some(*k) } else { None });
    let values = graph.nodes.len() + inputs + scalars + graph.outputs.len();
    if values > usize::from(u16::MAX) {
        return Err(Error::Rule(format!(
            "found a program of {values} values, which is too large for a kernel: split the rule"
        )));
    }
    let mut builder = Builder::new(graph, inputs, graph.phase.iter().copied().max().unwrap_or(0));
    let total = |(node, phase): (&Node, &usize)| if let Node::Total(_, k) = node { Some((*phase, *k)) } else { None };
    let mut totals: Vec<(usize, u32)> = graph.nodes.iter().zip(&graph.phase).filter_map(total).collect();
    totals.sort_by_key(|(phase, _)| *phase);
    builder.number_scalars();
    let mut phases: Vec<Phase> = (0..=builder.last).map(|phase| builder.phase(phase)).collect();
    builder.find_native(&mut phases);
    let (outputs, sums) = (graph.outputs.len(), builder.sums.len());
    let results = graph.results.iter().map(|id| builder.step_of[id]).collect();
    let guard = graph.guard.map(|id| (graph.phase[id], builder.step_of[&id]));
    Ok(Kernel {
        inputs,
        scalars,
        outputs,
        is_of_leaf: ScalarStep::are_of_leaf(&builder.steps),
        scalar_steps: builder.steps,
        splats: builder.splats,
        phases,
        sums,
        results,
        guard,
        totals,
    })
}

struct Builder<'a> {
    graph: &'a Graph,
    inputs: usize,
    last: usize,
    steps: Vec<ScalarStep>,
    /// The number of steps that each phase can read.
    step_counts: Vec<usize>,
    /// The step of each scalar node, and the register that holds a lane of it.
    step_of: HashMap<usize, u16>,
    splats: Vec<u16>,
    splat_of: HashMap<usize, u16>,
    /// The number of the sum of each `Sum` node.
    sums: HashMap<usize, u16>,
}

/// All counts were checked against `u16` before.
fn small(number: usize) -> u16 {
    u16::try_from(number).expect("checked: a program has fewer than 2^16 values")
}

impl<'a> Builder<'a> {
    fn new(graph: &'a Graph, inputs: usize, last: usize) -> Self {
        Self {
            graph,
            inputs,
            last,
            steps: Vec::new(),
            step_counts: Vec::new(),
            step_of: HashMap::new(),
            splats: Vec::new(),
            splat_of: HashMap::new(),
            sums: HashMap::new(),
        }
    }

    /// Orders the scalar program by phase, and assigns a register to each scalar that meets an array.
    fn number_scalars(&mut self) {
        let graph = self.graph;
        for phase in 0..=self.last {
            let ids = (0..graph.nodes.len()).filter(|id| graph.scalar[*id] && graph.phase[*id] == phase);
            for id in ids {
                let step = self.scalar_step(id);
                self.step_of.insert(id, small(self.steps.len()));
                self.steps.push(step);
            }
            self.step_counts.push(self.steps.len());
        }
        for id in (0..graph.nodes.len()).filter(|id| meets_arrays(&graph.nodes[*id], graph, *id)) {
            graph.nodes[id].arguments().for_each(|arg| self.splat(arg));
        }
        graph.outputs.iter().for_each(|output| self.splat(*output));
    }

    fn scalar_step(&mut self, id: usize) -> ScalarStep {
        match self.graph.nodes[id] {
            Node::Scalar(k) => ScalarStep::Input(small(k as usize)),
            Node::Constant(value) => ScalarStep::Constant(value),
            Node::Apply(op, _) => {
                let mut args = [0; 3];
                for (to, arg) in args.iter_mut().zip(self.graph.nodes[id].arguments()) {
                    *to = self.step_of[&arg];
                }
                ScalarStep::Apply(op, args)
            }
            Node::Sum(_) | Node::Dot(_) => {
                let sum = small(self.sums.len());
                self.sums.insert(id, sum);
                ScalarStep::Sum(sum)
            }
            Node::Total(arg, _) => ScalarStep::Total(self.step_of[&(arg as usize)]),
            Node::Leaf(_) | Node::Noise(_) => unreachable!("arrays are not scalars"),
        }
    }

    fn splat(&mut self, id: usize) {
        if self.graph.scalar[id] && !self.splat_of.contains_key(&id) {
            self.splat_of.insert(id, small(self.splats.len()));
            self.splats.push(self.step_of[&id]);
        }
    }

    fn phase(&self, phase: usize) -> Phase {
        let graph = self.graph;
        let sums: Vec<usize> =
            (0..graph.nodes.len()).filter(|id| graph.nodes[*id].is_sum() && graph.phase[*id] == phase + 1).collect();
        let outputs = if phase == graph.writing() { &graph.outputs[..] } else { &[] };
        let roots = sums.iter().flat_map(|id| graph.nodes[*id].arguments()).chain(outputs.iter().copied());
        let needed = reachable(&graph.nodes, roots, |id| !graph.scalar[id]);
        let arrays: Vec<usize> = (0..graph.nodes.len()).filter(|id| needed[*id] && !graph.scalar[*id]).collect();

        let mut writer = Writer::new(self, &arrays, &sums, outputs);
        arrays.iter().enumerate().for_each(|(at, id)| writer.node(at, *id));
        writer.sums(&sums);
        writer.copies();
        writer.finish(self.step_counts[phase])
    }

    /// Gives the phases their native code: that of the program, or of all of it but sums that native code can compute.
    fn find_native(&self, phases: &mut [Phase]) {
        let whole = native_kernel(self.graph).map(|kernel| (kernel, None));
        let Some((kernel, squares)) = whole.or_else(|| self.native_with_squares()) else { return };
        for (phase, code) in phases.iter_mut().zip(kernel.phases()) {
            let draws = self.first_temporary()..;
            let inputs = phase.reads.iter().copied().chain(draws.take(phase.draws.len())).collect();
            phase.native = Some(Native { code: *code, inputs, squares });
        }
    }

    /// The native code of the program without its sums, and these, if it computes them too.
    fn native_with_squares(&self) -> Option<(NativeKernel, Option<Squares>)> {
        if self.sums.is_empty() {
            return None;
        }
        let (squares, outputs) = (self.squares()?, self.graph.without_sums()?);
        let is_read = |input: u16| outputs.nodes.contains(&Node::Leaf(input.into()));
        // The sums read no further inputs, and the gradient is the first.
        Some((native_kernel(&outputs).filter(|_| is_read(0) && is_read(squares.parameter))?, Some(squares)))
    }

    /// The sums of the program, if native code can compute all of them.
    fn squares(&self) -> Option<Squares> {
        let nodes = &self.graph.nodes;
        let new = *self.graph.outputs.first()?;
        let mut squares = Squares { of: [None; 3], parameter: 0 };
        for (id, sum) in &self.sums {
            let Node::Dot([of, same]) = nodes[*id] else { return None };
            let kind = match nodes[of as usize] {
                _ if of != same => return None,
                _ if of as usize == new => 2,
                Node::Leaf(0) => 0,
                Node::Apply(Elementwise::Subtract, [from, parameter, _]) if from as usize == new => {
                    let Node::Leaf(input) = nodes[parameter as usize] else { return None };
                    squares.parameter = small(input as usize);
                    1
                }
                _ => return None,
            };
            squares.of[kind] = Some(*sum);
        }
        Some(squares)
    }

    fn first_scalar(&self) -> usize {
        self.inputs + self.graph.outputs.len()
    }

    fn first_temporary(&self) -> u16 {
        small(self.first_scalar() + self.splats.len())
    }
}

/// Whether the scalar arguments of a node are read by loops over elements.
fn meets_arrays(node: &Node, graph: &Graph, id: usize) -> bool {
    match node {
        Node::Sum(_) | Node::Dot(_) => true,
        Node::Apply(..) => !graph.scalar[id],
        Node::Leaf(_) | Node::Scalar(_) | Node::Constant(_) | Node::Noise(_) | Node::Total(..) => false,
    }
}

/// Writes the instructions of one phase.
struct Writer<'a> {
    builder: &'a Builder<'a>,
    phase: Phase,
    /// The register of each value.
    place: HashMap<usize, u16>,
    /// The position in the order after which each value is no longer read.
    last_use: HashMap<usize, usize>,
    /// The outputs to write, and which of them are written by the instruction that computes them.
    outputs: &'a [usize],
    written: Vec<bool>,
    free: Vec<u16>,
}

impl<'a> Writer<'a> {
    fn new(builder: &'a Builder<'a>, arrays: &[usize], sums: &[usize], outputs: &'a [usize]) -> Self {
        let nodes = &builder.graph.nodes;
        let mut last_use = HashMap::new();
        for (at, id) in arrays.iter().enumerate() {
            nodes[*id].arguments().for_each(|arg| _ = last_use.insert(arg, at));
        }
        let results = sums.iter().flat_map(|id| nodes[*id].arguments()).chain(outputs.iter().copied());
        results.for_each(|id| _ = last_use.insert(id, usize::MAX));
        let written = vec![false; outputs.len()];
        Self { builder, phase: Phase::default(), place: HashMap::new(), last_use, outputs, written, free: Vec::new() }
    }

    fn node(&mut self, at: usize, id: usize) {
        let work = match self.builder.graph.nodes[id] {
            Node::Leaf(k) => {
                self.phase.reads.push(small(k as usize));
                self.place.insert(id, small(k as usize));
                return;
            }
            Node::Noise(draw) => {
                self.phase.draws.push(draw);
                Work::Noise(draw)
            }
            Node::Apply(op, _) => {
                let mut args = [0; 3];
                for (to, arg) in args.iter_mut().zip(self.builder.graph.nodes[id].arguments()) {
                    *to = self.register(arg);
                }
                Work::Apply(op, args)
            }
            Node::Scalar(_) | Node::Constant(_) | Node::Sum(_) | Node::Dot(_) | Node::Total(..) => {
                unreachable!("scalars are not arrays")
            }
        };
        self.release(at, id);
        let to = self.destination(id);
        self.place.insert(id, to);
        self.phase.code.push(Instruction { work, to });
    }

    /// The register that a value is read from.
    fn register(&self, id: usize) -> u16 {
        match self.builder.splat_of.get(&id) {
            Some(splat) if self.builder.graph.scalar[id] => small(self.builder.first_scalar()) + splat,
            _ => self.place[&id],
        }
    }

    /// Frees the registers that the node `id`, at position `at`, is the last to read: it may write there.
    fn release(&mut self, at: usize, id: usize) {
        let mut args: Vec<usize> = self.builder.graph.nodes[id].arguments().collect();
        args.sort_unstable();
        args.dedup();
        for arg in args.into_iter().filter(|arg| self.last_use[arg] == at) {
            if let Some(register) = self.place.get(&arg).copied().filter(|register| self.is_temporary(*register)) {
                self.free.push(register);
            }
        }
    }

    fn is_temporary(&self, register: u16) -> bool {
        register >= self.builder.first_temporary()
    }

    /// An output's own memory if the value is one, else a register.
    fn destination(&mut self, id: usize) -> u16 {
        if let Some(output) = self.outputs.iter().position(|output| *output == id) {
            self.written[output] = true;
            return small(self.builder.inputs + output);
        }
        self.free.pop().unwrap_or_else(|| {
            self.phase.temporaries += 1;
            self.builder.first_temporary() + small(self.phase.temporaries - 1)
        })
    }

    fn sums(&mut self, sums: &[usize]) {
        for id in sums {
            let sum = self.builder.sums[id];
            let work = match self.builder.graph.nodes[*id] {
                Node::Dot(args) => Work::Dot(args.map(|arg| self.register(arg as usize))),
                Node::Sum(arg) => Work::Sum(self.register(arg as usize)),
                _ => unreachable!("these are sums"),
            };
            self.phase.sums.push(sum);
            self.phase.code.push(Instruction { work, to: sum });
        }
    }

    /// Outputs that no instruction computes: inputs, scalars, and values that are two outputs.
    fn copies(&mut self) {
        for output in (0..self.outputs.len()).filter(|output| !self.written[*output]).collect::<Vec<_>>() {
            let from = self.register(self.outputs[output]);
            let work = Work::Apply(Elementwise::Positive, [from, 0, 0]);
            self.phase.code.push(Instruction { work, to: small(self.builder.inputs + output) });
        }
    }

    fn finish(mut self, known_scalars: usize) -> Phase {
        self.phase.known_scalars = known_scalars;
        let inputs = small(self.builder.inputs);
        self.phase.loops = fused(&self.phase.code, inputs, self.builder.first_temporary());
        self.phase.reads.sort_unstable();
        // Native code has all draws at once.
        self.phase.temporaries = self.phase.temporaries.max(self.phase.draws.len());
        for output in 0..small(self.outputs.len()) {
            let read_later = self.read_after_writing(inputs + output).filter(|register| *register < inputs).collect();
            self.phase.writes.push(Write { output, read_later });
        }
        self.phase
    }

    /// The registers that are read after the loop that writes `register`.
    fn read_after_writing(&self, register: u16) -> impl Iterator<Item = u16> {
        let is_written = move |this: &&FusedLoop| this.to != register || !this.work.writes();
        let after = self.phase.loops.iter().skip_while(is_written).skip(1);
        after.flat_map(|this| this.work.arguments()).copied()
    }
}
