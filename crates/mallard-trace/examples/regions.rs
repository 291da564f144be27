//! Which regions does a trace have? `cargo run --release -p mallard-trace --example regions -- NAME`
//! prints them, the most useful first; with --json after the name, as JSON.

use mallard_trace::regions::{find, Limits};
use mallard_trace::Trace;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        eprintln!("usage: regions NAME.mallard");
        return ExitCode::from(2);
    };
    let found = Trace::open(Path::new(&name)).and_then(|trace| find(&trace, Limits::default()));
    let regions = match found {
        Ok(regions) => regions,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
    };
    if std::env::args().nth(2).as_deref() == Some("--json") {
        println!("{}", serde_json::to_string(&regions).expect("JSON"));
        return ExitCode::SUCCESS;
    }
    regions.notes.iter().for_each(|note| println!("note: {note}"));
    for region in &regions.all {
        let share = 100.0 * region.call_ns / regions.total_call_ns.max(1.0);
        let bytes = 100.0 * region.bytes as f64 / regions.total_bytes.max(1.0);
        println!(
            "{:<40} {:>7} {:>8} instances {:>5} inputs {:>9} blocks {share:5.1} % time {bytes:5.1} % \
             bytes  escapes {:>8}  U {:.3} V {:.2}  peak {} total {}  teardown {:.3} ms  cpu {:.1} ms",
            region.shown,
            format!("{:?}", region.ends),
            region.instances,
            region.inputs,
            region.blocks,
            region.escapes,
            region.utilisation,
            region.variation_bits,
            region.peak.p50,
            region.total.p50,
            region.teardown_ns / 1e6,
            region.cpu_ns.unwrap_or(0.0) / 1e6,
        );
        if let Some(site) = region.escape_sites.first() {
            println!("    escapes, for example {} of {}", site.blocks, site.function);
        }
    }
    ExitCode::SUCCESS
}
