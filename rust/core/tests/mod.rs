//! Tests of what is public: kernels and their executors, against their meaning.

mod accumulate;
mod float_env;
mod functions;
mod fusion;
mod half;
mod kernel;
mod large;
pub mod meaning;
mod native;
mod quantized;
mod rows;
mod sum;
mod totals;

/// A property is tested for this many random cases, or as many as the environment variable `PROPTEST_CASES` says.
fn random_cases(count: u32) -> proptest::test_runner::Config {
    use proptest::test_runner::Config;
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => Config::default(), // which reads it
        None => Config::with_cases(count),
    }
}
