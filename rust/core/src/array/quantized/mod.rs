//! Numbers as codes of a few bits, with a scale for each block of them: an optimizer's moments in a quarter of the memory
//! ([`eight`]), or an eighth ([`four`]).
//!
//! The sign of a scale says which code its block has: one for numbers of either sign, or one for numbers of which none is
//! negative. A block that holds NaN or an infinity is NaN as a whole: its scale says so.

mod codec;
pub mod eight;
pub mod four;

pub use codec::{BLOCK, Codec, Coding};
pub use eight::Eight;
pub use four::Four;
