//! Traits of the functions that entries call.

use crate::prelude::*;

/// The traits of a function that entries call.
#[pyclass(frozen, module = "oxigrad._core")]
#[allow(clippy::struct_excessive_bools, reason = "one answer each")]
pub struct TargetTraits {
    /// Whether plain arguments are constants.
    pub takes_constants: bool,
    /// Whether values of another transform take the call over.
    pub is_dispatched: bool,
    pub is_ufunc: bool,
    /// Whether the type of the result follows from types of arguments, and from integers.
    pub is_shaped: bool,
    /// Whether a real number is its own result.
    pub is_self: bool,
    /// Whether the result depends on the shape and dtype of the argument alone.
    pub is_of_shapes: bool,
    /// Whether that has the order of the argument.
    pub is_of_order: bool,
    /// Whether an array with axes has the order of its indices, and one of two axes.
    pub is_ordered: bool,
    pub is_ordered_matrix: bool,
    /// Whether the type of the result may depend on values: "never", on "numbers" among the arguments, on a "key", or "always".
    pub values: Values,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Values {
    Never,
    Numbers,
    Key,
    Always,
}

#[pymethods]
impl TargetTraits {
    #[new]
    #[pyo3(signature = (*, takes_constants, is_dispatched, is_ufunc, is_shaped, is_self, is_of_shapes, is_of_order, is_ordered, is_ordered_matrix, values))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools, reason = "one keyword an answer")]
    fn new(
        takes_constants: bool,
        is_dispatched: bool,
        is_ufunc: bool,
        is_shaped: bool,
        is_self: bool,
        is_of_shapes: bool,
        is_of_order: bool,
        is_ordered: bool,
        is_ordered_matrix: bool,
        values: &str,
    ) -> Self {
        let values = match values {
            "never" => Values::Never,
            "numbers" => Values::Numbers,
            "key" => Values::Key,
            _ => Values::Always,
        };
        Self {
            takes_constants,
            is_dispatched,
            is_ufunc,
            is_shaped,
            is_self,
            is_of_shapes,
            is_of_order,
            is_ordered,
            is_ordered_matrix,
            values,
        }
    }
}
