//! The sums of a step over slices, which are gathered from all who step other slices of the same parameters.

use oxigrad_core::exec::{self, Batch, CHUNK, Measured, Partials};
use oxigrad_core::simd::dispatch::Isa;
use pyo3::types::PyBytes;
use rayon::ThreadPool;

use super::parameters::prepared::Prepared;
use crate::prelude::*;

impl Prepared {
    /// Measures the phases before the one that writes. `gather` is called with the partial sums of these slices, as the
    /// bytes of float64, parameter by parameter; it returns those of all slices, chunk by chunk.
    pub(super) fn measured(
        &self,
        batches: &[Batch],
        gather: &Object<'_>,
        isa: Isa,
        pool: Option<&ThreadPool>,
    ) -> PyResult<Measured> {
        let py = gather.py();
        let mut measured = Measured::default();
        for _ in 0..Measured::phases(batches) {
            // SAFETY: as for the update, whose memory the caller keeps.
            let own = py.detach(|| unsafe { exec::measure(batches, &measured, isa, pool) }).python()?;
            let all = gather.call1((PyBytes::new(py, &self.bytes(&own)),))?;
            let partials = self.partials(all.cast::<PyBytes>()?.as_bytes(), &measured, batches)?;
            measured.fold(batches, &partials).python()?;
        }
        Ok(measured)
    }

    /// The place of each parameter: the number of its batch, and of its leaf there.
    fn places(&self, batches: usize) -> impl Iterator<Item = (usize, usize)> {
        let mut counts = vec![0; batches];
        self.parameters.iter().map(move |parameter| {
            counts[parameter.program] += 1;
            (parameter.program, counts[parameter.program] - 1)
        })
    }

    fn bytes(&self, partials: &Partials) -> Vec<u8> {
        let numbers = self.places(partials.len()).flat_map(|(batch, leaf)| &partials[batch][leaf]);
        numbers.flat_map(|number| number.to_le_bytes()).collect()
    }

    fn partials(&self, bytes: &[u8], measured: &Measured, batches: &[Batch]) -> PyResult<Partials> {
        let widths: Vec<usize> = measured.widths(batches).collect();
        let mut partials: Partials = batches.iter().map(|batch| vec![Vec::new(); batch.leaves.len()]).collect();
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
        let mut count = 0;
        for (parameter, (batch, leaf)) in self.parameters.iter().zip(self.places(batches.len())) {
            let wanted = parameter.whole.div_ceil(CHUNK) * widths[batch];
            partials[batch][leaf].extend(numbers.by_ref().take(wanted));
            count += wanted;
        }
        if bytes.len() == count * size_of::<f64>() {
            return Ok(partials);
        }
        let found = bytes.len();
        Err(ShapeError::new_err(format!("found {found} bytes of partial sums, expected {count} numbers of float64")))
    }
}
