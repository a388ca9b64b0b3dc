//! The parameters of a step: one `parameter` with its `slot`s, all of them as they were `prepared`, the `requirements`
//! on each array and the `checks` of all.

pub mod checks;
pub mod parameter;
pub mod prepared;
pub mod requirements;
pub mod slot;
