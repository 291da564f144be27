//! Runs the cases under Criterion: `cargo bench`, or `cargo bench -- bumpalo/alloc`.

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use mallard_bench_crates::harness::Effort;
use std::time::Duration;

fn all(c: &mut Criterion) {
    for e in mallard_bench_crates::suite() {
        let figure = &e.figures[0];
        let variant = if figure.variant.is_empty() { "" } else { ", " };
        let mut group = c.benchmark_group(format!("{}{variant}{}", figure.case, figure.variant));
        group.throughput(Throughput::Elements(e.ops as u64));
        for entrant in &e.entrants {
            // Omits contenders that cannot run. (`./x bench crates` prints the reason for each of
            // them.)
            if (entrant.prepare)(Effort::Smoke).is_err() {
                continue;
            }
            let mut prepared = None; // prepared on first use, because there are hundreds
            let id = BenchmarkId::from_parameter(&entrant.name);
            group.bench_function(id, |b| {
                let body = prepared.get_or_insert_with(|| (entrant.prepare)(Effort::Full));
                let Ok(body) = body else { return };
                b.iter_custom(|passes| {
                    let mut spent = vec![0.0; e.figures.len()];
                    body(passes, &mut spent);
                    Duration::from_nanos(spent[0] as u64)
                });
            });
        }
        group.finish();
    }
}

criterion_group!(cases, all);
criterion_main!(cases);
