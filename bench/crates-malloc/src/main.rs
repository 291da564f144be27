//! `crates-malloc PROGRAM [TIMES]` does typical work with one global allocator, which is chosen at
//! build time. It prints a checksum that is the same under all allocators.

mod json;
mod lines;
mod parser;
mod search;
mod text;

#[cfg(feature = "mallard")]
#[global_allocator]
static A: mallard_malloc::Mallard = mallard_malloc::Mallard;

#[cfg(any(feature = "mimalloc", feature = "mimalloc2"))]
#[global_allocator]
static A: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static A: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(feature = "snmalloc")]
#[global_allocator]
static A: snmalloc_rs::SnMalloc = snmalloc_rs::SnMalloc;

#[cfg(feature = "rpmalloc")]
#[global_allocator]
static A: rpmalloc::RpMalloc = rpmalloc::RpMalloc;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().unwrap_or_default();
    let times: usize = arguments.next().map_or(1, |n| n.parse().expect("TIMES is a number"));
    let sum = match program.as_str() {
        "search" => search::run(times),
        "json" => json::run(times),
        "parser" => parser::run(times),
        "lines" => lines::run(times),
        _ => {
            eprintln!("crates-malloc: there is no program {program:?}");
            eprintln!("  nothing was run");
            eprintln!("  help: crates-malloc search|json|parser|lines [TIMES]");
            std::process::exit(2);
        }
    };
    println!("{sum:016x}");
}
