//! The tape on numbers: recording and replaying the chain `y = y * c; y = y + x`.
//!
//! `cargo bench -p oxigrad-core --features benches --bench tape`. Divide by the elements that a row names: they are ops.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::hint::black_box;

use chain::{Number, host, record};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use oxigrad_core::autodiff::tape::{Id, Tape};

mod chain;

fn numbers(criterion: &mut Criterion) {
    let mut host = host();
    let mut replay = |(mut tape, x, y): (Tape<Number, ()>, Id, Id)| {
        tape.replay(vec![(y, Some(1.0))], &[x], true, &mut host).expect("every op has a rule")[0]
    };
    let expected = 0.999f64.powi(500) + (1.0 - 0.999f64.powi(500)) / 0.001;
    let gradient = replay(record(1000)).expect("x leads to y");
    assert!((gradient / expected - 1.0).abs() < 1e-12, "{gradient} is not {expected}");
    for ops in [1000, 1_000_000] {
        let mut group = criterion.benchmark_group(format!("chain of {ops} ops"));
        group.throughput(Throughput::Elements(ops as u64)).sample_size(20);
        group.bench_function("record", |bencher| bencher.iter(|| black_box(record(ops))));
        let batch = if ops > 1000 { BatchSize::PerIteration } else { BatchSize::SmallInput };
        group.bench_function("replay", |bencher| bencher.iter_batched(|| record(ops), &mut replay, batch));
        group.finish();
    }
}

criterion_group!(benches, numbers);
criterion_main!(benches);
