//! Kernels as CUDA C++ text, with the bits of the host: [`Kernel::cuda`].
//!
//! The text needs no header. It is compiled for a device by NVRTC with `--fmad=false` (and never `--use_fast_math`), or
//! for the host, with `tests/emulators/host.h` before it, by a C++17 compiler with `-ffp-contract=off
//! -fno-strict-aliasing`. Sections between barriers are marked by `OX_THREADS`: nothing on a device, a loop over the
//! threads of a block on the host.
//!
//! # Functions
//!
//! Every op is a `__device__` function, printed once from its one meaning in [`crate::op`]: the meaning runs over the
//! lane of [`crate::simd::traced`]. An op without a traced form, which the host computes element by element, is an
//! error that names the op.
//!
//! # A step
//!
//! A *group* is the leaves of one program, with the same dtypes, on one device; its text is that of
//! [`Kernel::cuda`]. A step launches the [`Source::entries`] of all its groups on one stream, in the order of
//! [`Entry::moment`]; at one moment, those of [`Scope::Once`] of one group only. A program that is *plain* (see
//! [`Source::is_plain`]) may have its scalars computed on the host, by [`Kernel::cuda_values`]: then only the entries of
//! kind [`EntryKind::Update`] are launched, of which there is one.
//!
//! | kind | grid | block | work |
//! |---|---|---|---|
//! | `Scalars` | the leaves | 128 | the scalar values of a leaf, up to the next total; the last one writes results |
//! | `Total` | 1 | 128 | adds up the terms of all leaves of all groups |
//! | `Update` | the tasks | 256 | one phase over one chunk of a leaf |
//! | `Results` | the leaves | 1 | writes results where a guard may stop the step (else the last `Scalars` does) |
//! | `Advance` | 1 | 1 | counts the step in `OxControl`, or that it was stopped |
//!
//! `Scalars` entries are needed where the program is not plain, and where the number of the step is in device memory.
//! Blocks are one-dimensional, as is the grid. Shared memory is static.
//!
//! # Arguments
//!
//! Each entry takes one argument, a structure `OxLaunch` by value, which is the same in all texts. All fields have
//! eight bytes, but for those of type `ox_u32`, which have four; there is no padding.
//!
//! ```text
//! struct OxLaunch {              // 2144 bytes
//!     const OxLeaf *leaves;      // the leaves of the group
//!     const OxTask *tasks;       // one for each chunk of 4096 elements of each leaf
//!     const double *scalars;     // sets of numbers; null: they are in `given`
//!     double *values;            // for each row, `kept` values of the scalar program; null: they are the sets
//!     double *partials;          // for each chunk of the group's leaves, `sums` numbers
//!     double *terms;             // for each leaf of all groups, its term of the present total
//!     double *totals;            // the totals, in order
//!     OxControl *control;        // null: the number of the step is `step`, and the program has no guard
//!     const ox_u32 *batches;     // the end of each batch among the terms
//!     ox_u64 batch_count;
//!     ox_u64 seed;
//!     ox_u64 step;               // the number of the step, from 1 on
//!     double given[256];
//! };
//! struct OxTask { ox_u32 leaf; ox_u32 chunk; };
//! struct OxControl { ox_u64 step; ox_u32 stopped; ox_u32 skipped; };  // 16 bytes
//! struct OxLeaf {
//!     ox_u64 length;             // the elements of each of its arrays
//!     ox_u64 position;           // its number in the model, by which it draws random numbers
//!     ox_u32 set;                // its set of scalars
//!     ox_u32 row;                // its row of `values`: its number in the group; its set where `values` is null
//!     ox_u32 first_chunk;        // the number of chunks of the leaves before it in the group
//!     ox_u32 term;               // its number among all leaves, in the order of the host
//!     void *arrays[..];          // `arrays` of them: gradient, parameter and slots that are arrays
//!     float *scales[..];         // `scales` of them: the scales of those arrays that are codes, in order
//!     double *numbers[..];       // `numbers` of them: slots of one number; `float *` where they are `F32`
//! };
//! ```
//!
//! Who computes the numbers of a set: where `values` is null, they are the [`Source::kept`] values that
//! [`Kernel::cuda_values`] computes on the host; otherwise they are the [`Source::scalars`] scalar inputs of the program,
//! without its slots of one number, which are read from `OxLeaf::numbers`. The first of them is the number of the step;
//! where `control` is not null, it is `control->step + 1` instead.
//!
//! `OxControl` is set to zero (but for `step`, the number of steps taken) when the optimizer is made. `Advance` adds one
//! to `step`, or, if a guard stopped the step, to `skipped`, and clears `stopped`. A program with a guard needs it.
//!
//! Terms are added up in the order of the host: `batches` are the leaves of one program, whatever their dtypes, in
//! the order of its leaves; the sums of batches are added in order.
//!
//! Pointers in `arrays` are aligned to an element. Where all arrays of a leaf are aligned to 16 bytes, memory is
//! accessed 16 bytes at a time (codes of four bits 8). An output may be an input of the same number, and shares no other
//! memory. Codes have a scale for each block of elements: see [`crate::array::quantized`].

mod functions;
mod memory;
mod scalars;
mod source;
mod update;

use std::fmt::Write;

use super::compiled::Kernel;
use crate::array::dtype::Dtype;
use crate::array::quantized::Codec;
use crate::error::{Error, Result};
use functions::Functions;
use memory::Stored;
use scalars::Scalars;
use source::MOST_ARRAYS;
use update::Update;

pub use source::{Entry, EntryKind, Layout, Scope, Source};

impl Kernel {
    /// The kernel as CUDA C++ text.
    ///
    /// # Errors
    /// `Rule` if an op has no traced form, or sums need too much shared memory; `Dtype` if a dtype is none that kernels
    /// take; `Shape` if there are fewer arrays or scalars than the kernel has inputs.
    pub fn cuda(&self, layout: &Layout) -> Result<Source> {
        self.check_layout(layout)?;
        let (mut functions, mut bodies) = (Functions::new(layout.computed()), String::new());
        let is_plain = self.phases.len() == 1 && self.totals.is_empty() && self.guard.is_none() && layout.numbers == 0;
        let stages = self.stages();
        let stored = self.stored(&stages);
        let scalars = Scalars { kernel: self, layout, stages: &stages, stored: &stored };
        let mut entries = match scalars.print(&mut functions, &mut bodies) {
            // The host computes the scalars, also with ops that have no traced form.
            Err(_) if is_plain => {
                (functions, bodies) = (Functions::new(layout.computed()), String::new());
                Vec::new()
            }
            printed => printed?,
        };
        let computes_scalars = !entries.is_empty();
        let updates = (0..self.phases.len()).map(|number| Update { kernel: self, number, layout });
        let updates: Vec<Update> = updates.filter(|update| !self.phases[update.number].code.is_empty()).collect();
        for update in &updates {
            update.print(&mut functions, &mut bodies)?;
            entries.push(Entry {
                name: format!("update_{}", update.number),
                kind: EntryKind::Update,
                scope: Scope::Tasks,
                block: update.threads()?,
                moment: self.moment_of_update(update.number),
            });
        }
        entries.sort_by_key(|entry| entry.moment);
        let scales = layout.dtypes.iter().filter(|dtype| **dtype == Dtype::U8).count();
        let mut text = constants(layout, scales, stored.len());
        let has_halves = layout.dtypes.iter().any(|dtype| dtype.is_half()) || functions.text().contains("ox_round_to_");
        let parts = [
            (include_str!("prelude.cu"), true),
            (include_str!("halves.cu"), has_halves || bodies.contains("ox_round_to_")),
            (include_str!("random.cu"), updates.iter().any(Update::is_random)),
            (include_str!("codes.cu"), scales > 0),
            (include_str!("pairs.cu"), scales > 0 && layout.codec == Codec::Four),
            (include_str!("sums.cu"), self.sums > 0),
            (include_str!("remainder.cu"), functions.text().contains("ox_rem(") || bodies.contains("ox_rem(")),
            (include_str!("scalars.cu"), computes_scalars),
            (functions.text(), true),
            (&bodies, true),
        ];
        for (part, _) in parts.iter().filter(|(part, is_used)| *is_used && !part.is_empty()) {
            _ = write!(text, "\n{}\n", part.trim_end());
        }
        Ok(Source {
            text,
            entries,
            arrays: layout.dtypes.len(),
            scales,
            numbers: layout.numbers,
            scalars: layout.scalars,
            stored: stored.len(),
            sums: self.sums,
            totals: self.totals.len(),
            is_plain,
            is_guarded: self.guard.is_some(),
            computes_scalars,
        })
    }

    /// The values of a set that kernels read, in `f64`, of its scalar inputs.
    ///
    /// # Errors
    /// `Rule` if they depend on values that only the device has; `Shape` if there are too few inputs.
    pub fn cuda_values(&self, inputs: &[f64]) -> Result<Vec<f64>> {
        if self.phases.len() > 1 || !self.totals.is_empty() || self.guard.is_some() {
            return Err(Error::Rule(
                "the scalars of the program depend on sums: its `scalars` entries compute them".into(),
            ));
        }
        if inputs.len() < self.scalars {
            return Err(Error::Shape(format!("found {} scalars, expected {}", inputs.len(), self.scalars)));
        }
        let mut values = Vec::new();
        self.compute_scalars(0, inputs, &[], &mut values, &[]);
        Ok(self.stored(&self.stages()).into_iter().map(|step| values[step]).collect())
    }

    fn check_layout(&self, layout: &Layout) -> Result<()> {
        let arrays = layout.dtypes.len();
        let expected = self.inputs.max(2).max(layout.written.iter().max().map_or(0, |highest| highest + 1));
        if arrays < expected || arrays > MOST_ARRAYS {
            return Err(Error::Shape(format!("found dtypes of {arrays} arrays, expected {expected} to {MOST_ARRAYS}")));
        }
        if layout.written.len() != self.outputs {
            let (found, expected) = (layout.written.len(), self.outputs);
            return Err(Error::Shape(format!("found {found} arrays to write, expected {expected}")));
        }
        if layout.scalars + layout.numbers < self.scalars || layout.scalars == 0 {
            let (found, expected) = (layout.scalars + layout.numbers, self.scalars.max(1));
            return Err(Error::Shape(format!("found {found} scalars, expected {expected}")));
        }
        if self.results.len() > layout.numbers {
            let (found, expected) = (self.results.len(), layout.numbers);
            return Err(Error::Shape(format!("found {found} results, expected at most {expected}")));
        }
        if !matches!(layout.number_dtype, Dtype::F64 | Dtype::F32) {
            let found = layout.number_dtype.name();
            return Err(Error::Dtype(format!("found slots of one number of {found}, expected float64 or float32")));
        }
        if self.guard.is_some_and(|(_, step)| self.is_of_leaf[usize::from(step)]) {
            return Err(Error::Rule("found a guard that differs between leaves, expected one of totals".into()));
        }
        for (number, dtype) in layout.dtypes.iter().enumerate() {
            if Stored::of(*dtype, layout.codec).is_none() || (*dtype == Dtype::U8 && number < 2) {
                return Err(Error::Dtype(format!(
                    "array {number} has dtype {}: expected a floating-point dtype, or uint8 for the codes of a slot",
                    dtype.name()
                )));
            }
        }
        Ok(())
    }
}

/// The constants of the text, and the fields of a leaf that differ from group to group.
fn constants(layout: &Layout, scales: usize, stored: usize) -> String {
    let mut fields = format!("void *arrays[{}];", layout.dtypes.len());
    if scales > 0 {
        _ = write!(fields, " float *scales[{scales}];");
    }
    if layout.numbers > 0 {
        let kind = if layout.number_dtype == Dtype::F32 { "float" } else { "double" };
        _ = write!(fields, " {kind} *numbers[{}];", layout.numbers);
    }
    format!("#define OX_KEPT {stored}\n#define OX_LEAF_FIELDS {fields}\n")
}
