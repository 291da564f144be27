//! Compiles a trace to an op stream, and says what the op stream has:
//!
//! ```text
//! cargo run --release -p mallard-trace --example compile -- orders.mallard orders.ops [plan.toml | AS7]
//! ```

use mallard_trace::replay::{compile, Options, Plan};
use mallard_trace::{Result, Trace};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, to, plan @ ..] = arguments.as_slice() else {
        println!("usage: compile NAME.mallard OPS [PLAN.toml | AS1 ... AS14]");
        return Ok(());
    };
    let plan = match plan {
        [] => Plan::default(),
        [plan, ..] => match plan.parse() {
            Ok(strategy) => Plan::of_strategy(strategy),
            Err(()) => Plan::read(Path::new(plan))?,
        },
    };
    let begin = Instant::now();
    let compiled =
        match compile(&Trace::open(Path::new(name))?, &plan, &Options::default(), Path::new(to)) {
            Ok(compiled) => compiled,
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(3);
            }
        };
    println!("{compiled:#?}");
    println!("{:.3} s", begin.elapsed().as_secs_f64());
    Ok(())
}
