//! The checks before a kernel touches memory.

use super::batch::{Batch, Leaf};
use crate::array::buffer::{Buffer, Dtype};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// All checks of [`super::run`] before it writes. The result is valid while kernels and buffers are unchanged.
///
/// # Errors
/// As [`super::run`].
pub fn check(batches: &[Batch]) -> Result<()> {
    for Batch { kernel, leaves, .. } in batches {
        for (number, leaf) in leaves.iter().enumerate() {
            self::leaf(kernel, leaf).map_err(|error| error.at(format_args!("leaf {number}")))?;
        }
    }
    together(batches)
}

/// The number of sets of scalars.
pub(super) fn scalar_sets(kernel: &Kernel, scalars: &[f64]) -> Result<usize> {
    let (count, each) = (scalars.len(), kernel.scalar_inputs());
    if each == 0 {
        return Ok(usize::MAX);
    }
    if count % each != 0 {
        return Err(Error::Shape(format!("{count} scalars are no whole number of sets of {each}")));
    }
    Ok(count / each)
}

/// Kernels that run together must have the same totals and the same guard.
pub(super) fn together(batches: &[Batch]) -> Result<()> {
    let mut kernels = batches.iter().map(|batch| batch.kernel);
    let Some(first) = kernels.next() else { return Ok(()) };
    let phase = |kernel: &Kernel| kernel.guard.map(|(phase, _)| phase);
    if kernels.all(|kernel| kernel.totals == first.totals && phase(kernel) == phase(first)) {
        return Ok(());
    }
    Err(Error::Rule(
        "found rules with different totals over all parameters in one step, expected the same totals in each".into(),
    ))
}

/// Checks that a kernel only writes its outputs.
pub(super) fn writes_only(kernel: &Kernel) -> Result<()> {
    if kernel.results.is_empty() && kernel.guard.is_none() {
        return Ok(());
    }
    Err(Error::Rule("a kernel with results or a guard runs by `run` only".into()))
}

/// Checks the index of the leaf's set of scalars.
pub(super) fn scalar_set(leaf: &Leaf, sets: usize) -> Result<()> {
    if leaf.scalar_set < sets {
        return Ok(());
    }
    Err(Error::Shape(format!("there is no set {} of scalars, only {sets}", leaf.scalar_set)))
}

pub(super) fn leaf(kernel: &Kernel, leaf: &Leaf) -> Result<()> {
    if !leaf.dtype.computes() {
        return Err(Error::Dtype(format!("kernels compute in float32 or float64, not in {}", leaf.dtype.name())));
    }
    let (inputs, outputs) = (kernel.leaf_inputs(), kernel.outputs());
    if leaf.inputs.len() < inputs || leaf.outputs.len() != outputs {
        let (has_inputs, has_outputs) = (leaf.inputs.len(), leaf.outputs.len());
        return Err(Error::Shape(format!(
            "{has_inputs} inputs and {has_outputs} outputs, where the kernel has {inputs} and {outputs}"
        )));
    }
    for buffer in leaf.inputs[..inputs].iter().chain(leaf.outputs) {
        if buffer.len() != leaf.length {
            return Err(Error::Shape(format!("a buffer of {} elements in a leaf of {}", buffer.len(), leaf.length)));
        }
    }
    if leaf.outputs.iter().any(|output| output.rows.as_deref() != leaf.rows()) {
        return Err(Error::Shape("the outputs are not the same rows of their tables".into()));
    }
    leaf.outputs
        .iter()
        .enumerate()
        .try_for_each(|(number, output)| writes(&leaf.inputs[..inputs], leaf.outputs, number, output))
}

fn writes(inputs: &[Buffer], outputs: &[Buffer], number: usize, output: &Buffer) -> Result<()> {
    if !(output.dtype().is_floating() || output.dtype() == Dtype::Bool || output.is_quantized()) {
        return Err(Error::Dtype(format!(
            "output {number} is {}, kernels write floating-point numbers, truth values, or codes with scales",
            output.dtype().name()
        )));
    }
    if !output.is_writable() {
        return Err(Error::Memory(format!("output {number} is read-only")));
    }
    if output.overlaps_itself() {
        return Err(Error::Memory(format!("output {number} has elements that share memory")));
    }
    for (other, input) in inputs.iter().enumerate() {
        if !output.is_same_as(input) && meet(output, input) {
            return Err(Error::Alias(format!(
                "output {number} shares memory with input {other}, but is not the same array"
            )));
        }
    }
    for (other, earlier) in outputs[..number].iter().enumerate() {
        if meet(output, earlier) {
            return Err(Error::Alias(format!("outputs {other} and {number} share memory")));
        }
    }
    let span = output.span();
    match output.scales() {
        Some(scales) if scales.span().meets(span) => {
            Err(Error::Alias(format!("the codes and the scales of output {number} share memory")))
        }
        _ => Ok(()),
    }
}

/// Whether some memory, scales included, is in both.
fn meet(a: &Buffer, b: &Buffer) -> bool {
    let spans = |buffer: &Buffer| [Some(buffer.span()), buffer.scales().map(|scales| scales.span())];
    let of_b = spans(b);
    spans(a).iter().flatten().any(|a| of_b.iter().flatten().any(|b| a.meets(*b)))
}
