//! The division of work: the elements of all leaves as one long range, cut into tasks of about the same size.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::batch::{CHUNK, Leaf, Part};
use crate::kernel::Kernel;

/// The minimum and maximum number of elements of a task: its cost should exceed that of scheduling it, and be small
/// compared with a thread's share.
const SMALLEST: usize = 1 << 16;
const LARGEST: usize = 1 << 18;
/// Tasks for each thread, to balance threads that start late or are slow.
const EACH: usize = 8;

/// The state of a run of a kernel over some leaves.
pub(super) struct Plan<'a> {
    kernel: &'a Kernel,
    inputs: &'a [f64],
    leaves: &'a [Leaf<'a>],
    /// The start of each leaf among all elements; one more entry for the end.
    starts: Vec<usize>,
    /// The values of the scalar program: for each set of scalars, or (in later phases) for each leaf.
    values: Vec<Vec<f64>>,
    of_each_leaf: bool,
    /// The sum of each chunk: `kernel.sums` numbers a chunk, as bits.
    partials: Vec<AtomicU64>,
    /// The number of the first chunk of each leaf.
    first_chunks: Vec<usize>,
    /// The sums of whole leaves that were measured before, `kernel.sums` numbers a leaf: those that are known are not
    /// computed from chunks.
    measured: Option<&'a [Option<f64>]>,
}

/// The division of the elements of all leaves into tasks.
pub(super) struct Tasks {
    pub count: usize,
    each: usize,
}

impl<'a> Plan<'a> {
    pub fn new(kernel: &'a Kernel, inputs: &'a [f64], sets: usize, leaves: &'a [Leaf<'a>]) -> Self {
        let mut starts = Vec::with_capacity(leaves.len() + 1);
        starts.push(0);
        starts.extend(leaves.iter().scan(0, |end, leaf| {
            *end += leaf.length;
            Some(*end)
        }));
        let sets = if kernel.scalar_inputs() == 0 { 1 } else { sets };
        let (mut first_chunks, mut chunks) = (Vec::new(), 0);
        if kernel.sums > 0 {
            for leaf in leaves {
                first_chunks.push(chunks);
                chunks += leaf.length.div_ceil(CHUNK);
            }
        }
        let partials = (0..chunks * kernel.sums).map(|_| AtomicU64::new(0)).collect();
        // The terms of a total may differ between leaves before there is any sum.
        let of_each_leaf = !kernel.totals.is_empty();
        let owners = if of_each_leaf { leaves.len() } else { sets };
        let values = (0..owners).map(|_| Vec::with_capacity(kernel.scalar_steps.len())).collect();
        Self { kernel, inputs, leaves, starts, values, of_each_leaf, partials, first_chunks, measured: None }
    }

    /// A plan for slices, whose leaves have these sums.
    pub fn with_sums(self, measured: &'a [Option<f64>]) -> Self {
        Self { measured: Some(measured), ..self }
    }

    /// Computes the scalars of a phase, or up to the next total: then returns the term of these leaves; the next
    /// call, after `set_total`, continues.
    pub fn enter(&mut self, phase: usize) -> Option<f64> {
        if phase > 0 && !self.of_each_leaf {
            self.values = self.leaves.iter().map(|leaf| self.scalars(0, leaf).to_vec()).collect();
            self.of_each_leaf = true;
        }
        let mut total = None;
        let scalars = self.kernel.scalar_inputs();
        let mut values = std::mem::take(&mut self.values);
        let mut sums = Vec::new();
        let set_of = |owner: usize| if self.of_each_leaf { self.leaves[owner].scalar_set } else { owner };
        for owner in 0..values.len() {
            let set = set_of(owner);
            let inputs = if scalars == 0 { &[] } else { &self.inputs[set * scalars..][..scalars] };
            if self.of_each_leaf {
                self.sum_up(owner, &mut sums);
            }
            let (before, from) = values.split_at_mut(owner);
            let others =
                before.last().filter(|_| scalars == 0 || set_of(owner - 1) == set).map_or(&[][..], Vec::as_slice);
            if let Some(part) = self.kernel.compute_scalars(phase, inputs, &sums, &mut from[0], others) {
                total = Some(total.unwrap_or(0.0) + part);
            }
        }
        self.values = values;
        total
    }

    /// Sets the total that `enter` waits for.
    pub fn set_total(&mut self, total: f64) {
        self.values.iter_mut().for_each(|values| values.push(total));
    }

    /// Whether the guard of the kernel, known in this phase, is zero: nothing is written.
    pub fn stops(&self, phase: usize) -> bool {
        let guard = self.kernel.guard.filter(|(at, _)| *at == phase);
        guard.is_some_and(|(_, value)| self.values.first().is_some_and(|values| values[usize::from(value)] == 0.0))
    }

    /// The results of the kernel, leaf by leaf.
    pub fn results(&self) -> Vec<f64> {
        let of_leaf = |(number, leaf)| {
            let values = self.scalars(number, leaf);
            self.kernel.results.iter().map(|result| values[usize::from(*result)])
        };
        self.leaves.iter().enumerate().flat_map(of_leaf).collect()
    }

    /// Whether a phase has work for each element.
    pub fn works(&self, phase: usize) -> bool {
        self.kernel.phases.get(phase).is_some_and(|phase| !phase.code.is_empty())
    }

    pub fn has_phase(&self, phase: usize) -> bool {
        phase < self.kernel.phases.len()
    }

    fn scalars(&self, number: usize, leaf: &Leaf) -> &[f64] {
        let owner = if self.of_each_leaf {
            number
        } else if self.kernel.scalar_inputs() == 0 {
            0
        } else {
            leaf.scalar_set
        };
        &self.values[owner]
    }

    /// Sets `sums` to those of a leaf, its chunks added in order.
    fn sum_up(&self, number: usize, sums: &mut Vec<f64>) {
        sums.clear();
        sums.resize(self.kernel.sums, 0.0);
        if sums.is_empty() {
            return;
        }
        let chunks = self.leaves[number].length.div_ceil(CHUNK);
        let first = self.first_chunks[number] * self.kernel.sums;
        for partials in self.partials[first..].chunks_exact(self.kernel.sums).take(chunks) {
            for (sum, partial) in sums.iter_mut().zip(partials) {
                *sum += f64::from_bits(partial.load(Relaxed));
            }
        }
        if let Some(measured) = self.measured {
            let measured = &measured[number * self.kernel.sums..];
            sums.iter_mut().zip(measured).for_each(|(sum, measured)| *sum = measured.unwrap_or(*sum));
        }
    }

    /// For each leaf, the sums of its chunks that a phase has computed: chunk by chunk, in the order of the phase.
    pub fn partials(&self, phase: usize) -> Vec<Vec<f64>> {
        let each = self.kernel.sums;
        let mut partials = vec![Vec::new(); self.leaves.len()];
        for ((of_leaf, leaf), first) in partials.iter_mut().zip(self.leaves).zip(&self.first_chunks) {
            for chunk in self.partials[first * each..].chunks_exact(each).take(leaf.length.div_ceil(CHUNK)) {
                let sums = self.kernel.phases[phase].sums.iter();
                of_leaf.extend(sums.map(|sum| f64::from_bits(chunk[usize::from(*sum)].load(Relaxed))));
            }
        }
        partials
    }

    /// Forgets the scalars: they are computed anew.
    pub fn forget(&mut self) {
        self.values.iter_mut().for_each(Vec::clear);
    }

    /// Whether a total is of sums over outputs that are written already.
    pub fn totals_written(&self) -> bool {
        self.kernel.totals.iter().any(|(phase, _)| *phase > self.kernel.writing())
    }

    pub fn leaves(&self) -> usize {
        self.leaves.len()
    }

    pub fn phases(&self) -> usize {
        self.kernel.phases.len()
    }

    /// The phase in which outputs are written.
    pub fn writing(&self) -> usize {
        self.kernel.writing()
    }

    /// Stores the sum of one chunk.
    pub fn keep_sum(&self, part: &Part, sum: u16, chunk: usize, value: f64) {
        let number = std::ptr::from_ref(part.leaf).addr().wrapping_sub(self.leaves.as_ptr().addr()) / size_of::<Leaf>();
        let place = (self.first_chunks[number] + chunk) * self.kernel.sums + usize::from(sum);
        self.partials[place].store(value.to_bits(), Relaxed);
    }

    /// Divides the work among `workers` threads.
    pub fn tasks(&self, workers: usize) -> Tasks {
        let total = self.starts[self.leaves.len()];
        if workers == 1 {
            return Tasks { count: usize::from(total > 0), each: total };
        }
        let each = (total / (workers * EACH)).clamp(SMALLEST, LARGEST);
        Tasks { count: total.div_ceil(each), each }
    }

    /// The parts of one task.
    pub fn parts(&self, phase: usize, tasks: &Tasks, task: usize) -> impl Iterator<Item = Part<'_>> {
        let (first, start) = self.cut(tasks, task);
        let (last, end) = self.cut(tasks, task + 1);
        (first..=last.min(self.leaves.len().wrapping_sub(1))).map(move |number| {
            let leaf = &self.leaves[number];
            Part {
                kernel: self.kernel,
                phase: &self.kernel.phases[phase],
                leaf,
                scalars: self.scalars(number, leaf),
                start: if number == first { start } else { 0 },
                end: if number == last { end } else { leaf.length },
            }
        })
    }

    /// The start of a task: a leaf, and an element of it at which a chunk starts.
    fn cut(&self, tasks: &Tasks, task: usize) -> (usize, usize) {
        if task >= tasks.count {
            return (self.leaves.len(), 0);
        }
        let position = task * tasks.each;
        let leaf = self.starts.partition_point(|start| *start <= position) - 1;
        (leaf, (position - self.starts[leaf]) / CHUNK * CHUNK)
    }
}
