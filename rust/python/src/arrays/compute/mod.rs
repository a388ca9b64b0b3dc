//! Computation on host arrays by the core: `elementwise`, `run` (several ops), `reduce`, `scatter`, `products`; by NumPy: `numpy_functions`, `matrices`. Results are
//! written to memory of the `array_pool`.

pub mod array_pool;
pub mod elementwise;
pub mod matrices;
pub mod numpy_functions;
pub mod products;
pub mod reduce;
pub mod run;
pub mod scatter;
