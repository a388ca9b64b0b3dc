//! From the simplified program to instructions: what each phase computes, in which order, in which slots.

use std::collections::HashMap;

use super::fuse::{Pass, PassWork, passes};
use super::graph::{Graph, arguments, reachable};
use super::{Instruction, Kernel, Node, Phase, ScalarStep, Work, Write};
use crate::error::{Error, Result};
use crate::kernel::native::Printed;
use crate::op::Elementwise;

pub(super) fn kernel(graph: &Graph) -> Result<Kernel> {
    let count =
        |f: fn(&Node) -> Option<u32>| graph.nodes.iter().filter_map(f).max().map_or(0, |highest| highest as usize + 1);
    let inputs = count(|node| if let Node::Leaf(k) = node { Some(*k) } else { None });
    let scalars = count(|node| if let Node::Scalar(k) = node { Some(*k) } else { None });
    let slots = graph.nodes.len() + inputs + scalars + graph.outputs.len();
    if slots > usize::from(u16::MAX) {
        return Err(Error::Rule(format!("a program of {slots} values is too large for a kernel; split the rule")));
    }
    let mut builder = Builder::new(graph, inputs, graph.phase.iter().copied().max().unwrap_or(0));
    let total = |(node, phase): (&Node, &usize)| if let Node::Total(_, k) = node { Some((*phase, *k)) } else { None };
    let mut totals: Vec<(usize, u32)> = graph.nodes.iter().zip(&graph.phase).filter_map(total).collect();
    totals.sort_by_key(|(phase, _)| *phase);
    builder.number_scalars();
    let phases: Vec<Phase> = (0..=builder.last).map(|phase| builder.phase(phase)).collect();
    let mut reads = vec![false; inputs];
    phases.iter().flat_map(|phase| &phase.reads).for_each(|input| reads[usize::from(*input)] = true);
    let (outputs, sums) = (graph.outputs.len(), builder.sums.len());
    let results = graph.results.iter().map(|id| builder.step_of[id]).collect();
    let guard = graph.guard.map(|id| (graph.phase[id], builder.step_of[&id]));
    let printed = None;
    let mut kernel = Kernel {
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
        reads,
        printed,
    };
    kernel.printed = Printed::of(&kernel.to_string());
    Ok(kernel)
}

struct Builder<'a> {
    graph: &'a Graph,
    inputs: usize,
    last: usize,
    steps: Vec<ScalarStep>,
    /// How many steps are known before each phase.
    known: Vec<usize>,
    /// Where each scalar node's value is, and which slot splats it.
    step_of: HashMap<usize, u16>,
    splats: Vec<u16>,
    splat_of: HashMap<usize, u16>,
    /// Which sum each `Sum` node is.
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
            known: Vec::new(),
            step_of: HashMap::new(),
            splats: Vec::new(),
            splat_of: HashMap::new(),
            sums: HashMap::new(),
        }
    }

    /// Orders the scalar program by phase, and gives a slot to each scalar that meets an array.
    fn number_scalars(&mut self) {
        let graph = self.graph;
        for phase in 0..=self.last {
            let ids = (0..graph.nodes.len()).filter(|id| graph.scalar[*id] && graph.phase[*id] == phase);
            for id in ids {
                let step = self.scalar_step(id);
                self.step_of.insert(id, small(self.steps.len()));
                self.steps.push(step);
            }
            self.known.push(self.steps.len());
        }
        for id in (0..graph.nodes.len()).filter(|id| meets_arrays(&graph.nodes[*id], graph, *id)) {
            arguments(&graph.nodes[id]).for_each(|arg| self.splat(arg));
        }
        graph.outputs.iter().for_each(|output| self.splat(*output));
    }

    fn scalar_step(&mut self, id: usize) -> ScalarStep {
        match self.graph.nodes[id] {
            Node::Scalar(k) => ScalarStep::Input(small(k as usize)),
            Node::Constant(value) => ScalarStep::Constant(value),
            Node::Apply(op, _) => {
                let mut args = [0; 3];
                for (to, arg) in args.iter_mut().zip(arguments(&self.graph.nodes[id])) {
                    *to = self.step_of[&arg];
                }
                ScalarStep::Apply(op, args)
            }
            Node::Sum(_) => {
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
        let sums: Vec<usize> = (0..graph.nodes.len())
            .filter(|id| matches!(graph.nodes[*id], Node::Sum(_)) && graph.phase[*id] == phase + 1)
            .collect();
        let outputs = if phase == graph.writing() { &graph.outputs[..] } else { &[] };
        let roots = sums.iter().flat_map(|id| arguments(&graph.nodes[*id])).chain(outputs.iter().copied());
        let needed = reachable(&graph.nodes, roots, |id| !graph.scalar[id]);
        let arrays: Vec<usize> = (0..graph.nodes.len()).filter(|id| needed[*id] && !graph.scalar[*id]).collect();

        let mut writer = Writer::new(self, &arrays, &sums, outputs);
        arrays.iter().enumerate().for_each(|(at, id)| writer.node(at, *id));
        writer.sums(&sums);
        writer.copies();
        writer.finish(self.known[phase])
    }

    fn first_scalar(&self) -> usize {
        self.inputs + self.graph.outputs.len()
    }
}

/// Whether the scalar arguments of a node are read by loops over elements.
fn meets_arrays(node: &Node, graph: &Graph, id: usize) -> bool {
    match node {
        Node::Sum(_) => true,
        Node::Apply(..) => !graph.scalar[id],
        Node::Leaf(_) | Node::Scalar(_) | Node::Constant(_) | Node::Noise(_) | Node::Total(..) => false,
    }
}

/// Writes the instructions of one phase.
struct Writer<'a> {
    builder: &'a Builder<'a>,
    phase: Phase,
    /// Where each value is.
    place: HashMap<usize, u16>,
    /// After which position of the order each value is not read any more.
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
            arguments(&nodes[*id]).for_each(|arg| _ = last_use.insert(arg, at));
        }
        let kept = sums.iter().flat_map(|id| arguments(&nodes[*id])).chain(outputs.iter().copied());
        kept.for_each(|id| _ = last_use.insert(id, usize::MAX));
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
            Node::Noise(draw) => Work::Noise(draw),
            Node::Apply(op, _) => {
                let mut args = [0; 3];
                for (to, arg) in args.iter_mut().zip(arguments(&self.builder.graph.nodes[id])) {
                    *to = self.slot(arg);
                }
                Work::Apply(op, args)
            }
            Node::Scalar(_) | Node::Constant(_) | Node::Sum(_) | Node::Total(..) => {
                unreachable!("scalars are not arrays")
            }
        };
        self.release(at, id);
        let to = self.destination(id);
        self.place.insert(id, to);
        self.phase.code.push(Instruction { work, to });
    }

    /// Where a value is read from.
    fn slot(&self, id: usize) -> u16 {
        match self.builder.splat_of.get(&id) {
            Some(splat) if self.builder.graph.scalar[id] => small(self.builder.first_scalar()) + splat,
            _ => self.place[&id],
        }
    }

    /// Frees the registers that the node `id`, at position `at`, is the last to read: it may write there.
    fn release(&mut self, at: usize, id: usize) {
        let mut args: Vec<usize> = arguments(&self.builder.graph.nodes[id]).collect();
        args.sort_unstable();
        args.dedup();
        for arg in args.into_iter().filter(|arg| self.last_use[arg] == at) {
            if let Some(slot) = self.place.get(&arg).copied().filter(|slot| self.is_register(*slot)) {
                self.free.push(slot);
            }
        }
    }

    fn first_register(&self) -> u16 {
        small(self.builder.first_scalar() + self.builder.splats.len())
    }

    fn is_register(&self, slot: u16) -> bool {
        slot >= self.first_register()
    }

    /// An output's own memory if the value is one, else a register.
    fn destination(&mut self, id: usize) -> u16 {
        if let Some(output) = self.outputs.iter().position(|output| *output == id) {
            self.written[output] = true;
            return small(self.builder.inputs + output);
        }
        self.free.pop().unwrap_or_else(|| {
            self.phase.registers += 1;
            self.first_register() + small(self.phase.registers - 1)
        })
    }

    fn sums(&mut self, sums: &[usize]) {
        for id in sums {
            let sum = self.builder.sums[id];
            let arg = arguments(&self.builder.graph.nodes[*id]).next().expect("a sum has an argument");
            self.phase.sums.push(sum);
            self.phase.code.push(Instruction { work: Work::Sum(self.slot(arg)), to: sum });
        }
    }

    /// Outputs that no instruction computes: inputs, scalars, and values that are two outputs.
    fn copies(&mut self) {
        for output in (0..self.outputs.len()).filter(|output| !self.written[*output]).collect::<Vec<_>>() {
            let from = self.slot(self.outputs[output]);
            let work = Work::Apply(Elementwise::Positive, [from, 0, 0]);
            self.phase.code.push(Instruction { work, to: small(self.builder.inputs + output) });
        }
    }

    fn finish(mut self, known_scalars: usize) -> Phase {
        self.phase.known_scalars = known_scalars;
        let inputs = small(self.builder.inputs);
        self.phase.passes = passes(&self.phase.code, inputs, self.first_register());
        for output in 0..small(self.outputs.len()) {
            let read_later = self.read_after_writing(inputs + output).filter(|slot| *slot < inputs).collect();
            self.phase.writes.push(Write { output, read_later });
        }
        self.phase
    }

    /// The slots that are read after the pass that writes `slot`.
    fn read_after_writing(&self, slot: u16) -> impl Iterator<Item = u16> {
        let is_written = move |pass: &&Pass| pass.to != slot || matches!(pass.work, PassWork::Sum(_));
        let after = self.phase.passes.iter().skip_while(is_written).skip(1);
        after.flat_map(|pass| pass.work.arguments()).copied()
    }
}
