//! The requirements of a step on each array, and the errors that name the array.

use oxigrad_core::array::buffer::Buffer;
use oxigrad_core::array::view::ArrayView;
use oxigrad_core::error::{Error, Result};

use crate::arrays::memory::host_array::HostArray;
use crate::arrays::memory::torch::Torch;
use crate::prelude::*;

pub fn unexported(path: &str, what: &str) -> PyErr {
    ArrayMemoryError::new_err(format!("{path}: the {what} does not share its memory: expected an array in host memory"))
}

/// Refuses a tensor whose storage was shrunk, so that its elements lie outside.
pub fn whole(path: &str, what: &str, object: &Object<'_>, view: &ArrayView) -> PyResult<()> {
    match Torch::of_class(&object.get_type())? {
        Some(torch) if torch.is_shrunk(object, view)? => Err(ArrayMemoryError::new_err(format!(
            "{path}: the {what} is a tensor whose storage was shrunk: expected one that has all of its elements"
        ))),
        _ => Ok(()),
    }
}

/// Refuses memory that cannot be written.
pub fn writable(path: &str, what: &str, buffer: &Buffer) -> Result<()> {
    if !buffer.is_writable() {
        return Err(Error::Memory(format!("{path}: the {what} is read-only")));
    }
    if buffer.overlaps_itself() {
        return Err(Error::Alias(format!(
            "{path}: the {what} overlaps itself: expected an array whose elements share no memory"
        )));
    }
    Ok(())
}

/// The buffer of an array that will be written.
pub fn written(path: &str, what: &str, memory: &HostArray) -> Result<Buffer> {
    let buffer = memory.floating().map_err(|error| error.at(format_args!("{path}: {what}")))?;
    writable(path, what, &buffer)?;
    Ok(buffer)
}

/// A shape as Python writes it.
pub fn tuple(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("({}{})", sizes.join(", "), if shape.len() == 1 { "," } else { "" })
}

pub fn moved(path: &str) -> PyErr {
    ArrayMemoryError::new_err(format!(
        "{path}: its memory was moved during the checks of the step, by code that the export of another array called"
    ))
}
