//! Compares the names of functions and of inlined functions with those that llvm-symbolizer finds,
//! in programs built by every installed compiler and linker, with many options.
//!
//! llvm-symbolizer returns mangled names, which this test demangles with the library that Mallard
//! uses. That library does not understand some conditions in templates. In such cases, Mallard
//! shows the name without template arguments and parameters, and the test compares it with the name
//! that c++filt or llvm-cxxfilt demangles. Two programs are used, because c++filt does not know the
//! newest mangling of clang, and llvm-cxxfilt does not know that of g++ for the condition of
//! `std::swap`.
//!
//! The test needs the recorder (MALLARD_RECORDER has its path).

use crate::streams::{call, StreamOf};
use crate::support::{skip, Folder};
use addr2line::demangle_auto;
use mallard_trace::format::op;
use mallard_trace::import::{import, Options};
use mallard_trace::Trace;
use object::{Object, ObjectSegment};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process::{Command, Stdio};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/chains.cpp");
/// The address at which the stream of this test maps the program.
const MAPPED: u64 = 1 << 40;

/// Options with which the program is compiled and linked.
const COMPILED: [&str; 12] = [
    "-O0 -g",
    "-O1 -g -no-pie",
    "-O2 -g -Wl,--build-id",
    "-O3 -g",
    "-O2 -g1",
    "-O2 -g3 -gdwarf-4",
    "-O2 -g -flto",
    "-O2 -g -fno-asynchronous-unwind-tables",
    "-O2 -g -ffunction-sections -fdebug-types-section",
    "-O2 -g -gsplit-dwarf",
    "-O2 -g -gsplit-dwarf -gdwarf-4",
    "-O2 -gline-tables-only",
];

/// Options with which the program is linked again, after it was compiled with `-O2 -g`, and the
/// linker that the options name.
const LINKED: [(&str, &str); 9] = [
    ("-rdynamic", ""),
    ("-no-pie -static-libstdc++", ""),
    ("-Wl,-z,separate-code", ""),
    ("-Wl,-z,noseparate-code", ""),
    ("-Wl,-z,max-page-size=0x200000", ""),
    ("-no-pie -Wl,-z,max-page-size=0x200000", ""),
    ("-fuse-ld=lld", "ld.lld"),
    ("-fuse-ld=gold", "ld.gold"),
    ("-fuse-ld=mold", "ld.mold"),
];

/// Commands that change the file of a program, `$0`, but keep its code.
const CHANGED: [&str; 9] = [
    "objcopy --compress-debug-sections=zlib $0",
    "objcopy --compress-debug-sections=zlib-gnu $0",
    "objcopy --compress-debug-sections=zstd $0",
    "dwz $0",
    "cp $0 $0.other && dwz -m $0.common $0 $0.other",
    "objcopy --only-keep-debug $0 $0.debug && strip $0 && objcopy --add-gnu-debuglink=$0.debug $0",
    "cp $0 $0.other && dwz -m $0.common $0 $0.other && objcopy --only-keep-debug $0 $0.debug && \
     strip $0 && objcopy --add-gnu-debuglink=$0.debug $0",
    "objcopy --only-keep-debug $0 debug && objcopy --strip-debug debug symbols && strip $0 && \
     xz -f symbols && objcopy --add-section .gnu_debugdata=symbols.xz $0",
    "strip --strip-debug $0",
];

/// The functions at one address, the outermost first.
type Chain = Vec<String>;

/// The numbers of what was compared.
#[derive(Clone, Copy, Default)]
struct Counts {
    builds: usize,
    frames: usize,
    equal: usize,
}

/// All that was compared.
#[derive(Default)]
struct Compared {
    by_compiler: BTreeMap<String, Counts>,
    differences: Vec<String>,
    left_out: BTreeSet<String>,
}

#[test]
#[ignore = "needs compilers, linkers and llvm-symbolizer"]
fn functions_and_inlined_functions_equal_those_of_llvm_symbolizer_in_every_build() {
    if newest("llvm-symbolizer").is_none() {
        return skip("no llvm-symbolizer");
    }
    let mut compared = Compared::default();
    let compilers = (11..=15).map(|version| format!("g++-{version}"));
    for compiler in compilers.chain((14..=20).map(|version| format!("clang++-{version}"))) {
        if installed(&compiler) {
            compared.add_compiler(&compiler);
        } else {
            compared.left_out.insert(compiler);
        }
    }
    compared.add_aarch64();
    println!("{}", compared.differences.join("\n"));
    let Compared { by_compiler, left_out, .. } = compared;
    let mut all = Counts::default();
    for (compiler, Counts { builds, frames, equal }) in by_compiler {
        println!("{compiler}: {equal} of {frames} frames in {builds} builds are equal");
        all.builds += builds;
        all.frames += frames;
        all.equal += equal;
    }
    let Counts { builds, frames, equal } = all;
    println!("all: {equal} of {frames} frames in {builds} builds are equal");
    println!("not here: {}", left_out.into_iter().collect::<Vec<_>>().join(", "));
    assert!(builds > 0 && (frames - equal) * 1000 <= frames, "{equal} of {frames}");
}

/// Returns whether a program is installed.
fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// Returns the newest version of a program of LLVM that is installed.
fn newest(program: &str) -> Option<String> {
    let versions = (14..=20).rev().map(|version| format!("{program}-{version}"));
    versions.chain([program.to_string()]).find(|program| installed(program))
}

/// Runs a script in a directory. Returns whether the script succeeded.
fn runs(folder: &Folder, script: &str) -> bool {
    folder.command("sh").args(["-c", script]).output().unwrap().status.success()
}

/// Compiles the program in two steps, as build systems do. Returns whether the compiler supports
/// the options.
fn compile(folder: &Folder, compiler: &str, options: &str) -> bool {
    let compile = format!("{compiler} -std=c++17 {options} -c -w {SOURCE} -o program.o");
    runs(folder, &format!("{compile} && {compiler} {options} program.o -o program"))
}

/// Returns the return addresses in a program, and the functions that llvm-symbolizer finds before
/// each address.
fn reference(folder: &Folder, program: &str) -> Vec<(u64, Chain)> {
    let addresses = return_addresses(folder, program);
    let mut child = folder
        .command(&newest("llvm-symbolizer").unwrap())
        .args(["--output-style=JSON", "--no-demangle", "--functions=linkage", "--obj", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text: String = addresses.iter().map(|address| format!("{:#x}\n", address - 1)).collect();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut input, text.as_bytes()));
    let said = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let lines = said.lines().filter(|line| !line.trim().is_empty());
    let chains = lines.map(|line| {
        let answer: Value = serde_json::from_str(line).unwrap();
        let answer = if answer.is_array() { answer[0].clone() } else { answer };
        let functions = answer["Symbol"].as_array().unwrap().iter().rev();
        functions.map(|function| demangled(function["FunctionName"].as_str().unwrap())).collect()
    });
    let found: Vec<_> = addresses.iter().copied().zip(chains).collect();
    assert_eq!(found.len(), addresses.len());
    found
}

/// Returns the addresses after each call in the program.
fn return_addresses(folder: &Folder, program: &str) -> Vec<u64> {
    let is_aarch64 = program.contains("aarch64");
    let objdump = if is_aarch64 { "aarch64-linux-gnu-objdump" } else { "objdump" };
    let said =
        folder.command(objdump).args(["-d", "--no-show-raw-insn", "-j.text", program]).output();
    let said = String::from_utf8(said.unwrap().stdout).unwrap();
    let instructions: Vec<(u64, &str)> = said
        .lines()
        .filter_map(|line| {
            let (address, instruction) = line.trim_start().split_once(":\t")?;
            Some((u64::from_str_radix(address, 16).ok()?, instruction))
        })
        .collect();
    let is_call = |text: &str| {
        let name = text.split_whitespace().next().unwrap_or_default();
        name.starts_with("call") || name == "bl" || name == "blr"
    };
    instructions.windows(2).filter(|two| is_call(two[0].1)).map(|two| two[1].0).collect()
}

/// Returns the demangled name of a symbol, without a suffix that marks a part of a function, as in
/// `_Z1fv.cold`.
fn demangled(symbol: &str) -> String {
    let end = symbol.find(['.', '(']).filter(|&end| end > 0 && symbol.as_bytes()[end] == b'.');
    demangle_auto(Cow::Borrowed(&symbol[..end.unwrap_or(symbol.len())]), None).into_owned()
}

/// Returns a name in a trace, without a suffix that marks a part of a function. Empty if the name
/// is unknown.
fn shown(name: &str) -> &str {
    let whole = name.split(" [clone").next().unwrap_or(name);
    match whole.contains('(') {
        true => whole,
        false if whole.contains("+0x") => "",
        false => whole.split('.').next().unwrap_or(whole),
    }
}

/// Returns whether a chain of functions in a trace is the expected one.
fn is_equal(expected: &[String], found: &[String]) -> bool {
    let is_same = |(expected, found): (&String, &String)| {
        expected == found || (expected.starts_with("_Z") && is_short_for(expected, found))
    };
    expected.len() == found.len() && expected.iter().zip(found).all(is_same)
}

/// Returns whether a name is that of a symbol without template arguments and parameters, as c++filt
/// or llvm-cxxfilt demangle the symbol.
fn is_short_for(symbol: &str, name: &str) -> bool {
    let mut programs = ["c++filt".to_string()].into_iter().chain(newest("llvm-cxxfilt"));
    programs.any(|program| {
        let Ok(output) = Command::new(program).arg(symbol).output() else { return false };
        // For a list of template arguments that ends with another list, c++filt writes `> >`, and
        // llvm-cxxfilt `>>`.
        let compact = |name: &str| name.trim_end().replace("> >", ">>");
        let whole = String::from_utf8_lossy(&output.stdout);
        short(&compact(&whole)) == Some(&compact(name))
    })
}

/// Returns the name of a template function without return type, template arguments and parameters,
/// such as `std::swap` for `void std::swap<int>(int&, int&)`.
fn short(whole: &str) -> Option<&str> {
    // The characters outside of brackets. Of each pair of brackets, the first one is kept.
    let (mut outside, mut depth) = (Vec::new(), 0);
    for (at, c) in whole.char_indices() {
        if depth == 0 {
            outside.push((at, c));
        }
        depth += i32::from("<(".contains(c)) - i32::from(">)".contains(c));
    }
    let parameters = outside.iter().position(|&(_, c)| c == '(')?;
    let before = &outside[..parameters];
    let begin = before.iter().rfind(|&&(_, c)| c == ' ').map_or(0, |&(at, _)| at + 1);
    let end = match before.last()? {
        &(template_arguments, '<') => template_arguments,
        _ => outside[parameters].0,
    };
    whole.get(begin..end)
}

#[test]
fn the_short_name_of_a_template_function_contains_no_types() {
    let names = [
        ("std::enable_if<std::is<int>::value, void>::type std::swap<int>(int&, int&)", "std::swap"),
        (
            "std::tuple<int*, std::less<int>>::tuple<true, true>()",
            "std::tuple<int*, std::less<int>>::tuple",
        ),
        ("int app::work(int (*)(int))", "app::work"),
    ];
    for (whole, expected) in names {
        assert_eq!(short(whole), Some(expected));
    }
    assert_eq!(short("_ZSt4swapIi"), None);
}

impl Compared {
    /// Compares the names in all builds of one compiler.
    fn add_compiler(&mut self, compiler: &str) {
        for options in COMPILED {
            let folder = Folder::new();
            let build = format!("{compiler} {options}");
            if !compile(&folder, compiler, options) {
                self.left_out.insert(build);
                continue;
            }
            let expected = reference(&folder, "program");
            self.add(&folder, &build, &expected, false);
            if options.contains("split") {
                self.add_package(&folder, &build, &expected);
            }
            if options.contains("--build-id") {
                self.add_linked(&folder, compiler);
                self.add_changed(compiler, &folder, &expected);
            }
        }
    }

    /// Links the program with other linkers and with other options.
    fn add_linked(&mut self, folder: &Folder, compiler: &str) {
        std::fs::copy(folder.path("program"), folder.path("original")).unwrap();
        for (options, linker) in LINKED {
            if !linker.is_empty() && !installed(linker) {
                self.left_out.insert(linker.to_string());
            } else if runs(folder, &format!("{compiler} {options} program.o -o program")) {
                let expected = reference(folder, "program");
                self.add(folder, &format!("{compiler} {options}"), &expected, false);
            } else {
                self.left_out.insert(format!("{compiler} {options}"));
            }
        }
        std::fs::rename(folder.path("original"), folder.path("program")).unwrap();
    }

    /// Changes the program file as packages of distributions do.
    fn add_changed(&mut self, compiler: &str, from: &Folder, expected: &[(u64, Chain)]) {
        for command in CHANGED {
            let folder = Folder::new();
            std::fs::copy(from.path("program"), folder.path("program")).unwrap();
            if runs(&folder, &command.replace("$0", "program")) {
                let is_outer =
                    command.contains(".gnu_debugdata") || command.contains("strip-debug");
                self.add(&folder, &format!("{compiler}, {command}"), expected, is_outer);
            } else {
                self.left_out.insert(format!("{compiler}, {command}"));
            }
        }
    }

    /// Moves the split debug information of the program into one file, `program.dwp`.
    fn add_package(&mut self, folder: &Folder, build: &str, expected: &[(u64, Chain)]) {
        // Of the versions in use, dwp cannot read DWARF 5, and some versions of llvm-dwp never
        // finish if the DWARF comes from g++.
        let packer = match (build.contains("-gdwarf-4"), build.starts_with("clang")) {
            (true, _) => "dwp",
            (false, true) => "llvm-dwp",
            (false, false) => return,
        };
        let build = format!("{build}, {packer}");
        if runs(folder, &format!("{packer} -e program -o program.dwp && rm *.dwo")) {
            self.add(folder, &build, expected, false);
        } else {
            self.left_out.insert(build);
        }
    }

    /// Compares the names of a build, and checks the call stacks of a recording. With `is_outer`,
    /// compares only the functions that were not inlined.
    fn add(&mut self, folder: &Folder, build: &str, reference: &[(u64, Chain)], is_outer: bool) {
        self.add_names(folder, "program", build, reference, is_outer);
        let ran = folder.mallard(&["record", "--force", "-o", "recorded", "--", "./program"]);
        assert_eq!(ran.status(), 0, "{build}: {}", ran.errors());
        let trace = Trace::open(&folder.path("recorded.mallard")).unwrap();
        let stacks = trace.stacks().unwrap();
        for site in trace.sites().unwrap() {
            let functions = stacks.functions(site.stack);
            assert!(functions.iter().all(|function| !function.function.is_empty()), "{build}");
            // Before main, the C++ library allocates memory for exceptions.
            let has = |name| functions.iter().any(|function| function.function == name);
            let is_whole = has("main") && !has("[outer frames unknown]");
            assert!(is_whole || has("call_init"), "{build}: {functions:?}");
        }
    }

    fn add_names(
        &mut self,
        folder: &Folder,
        program: &str,
        build: &str,
        reference: &[(u64, Chain)],
        is_outer: bool,
    ) {
        let compiler = build.split([' ', ',']).next().unwrap().to_string();
        let counts = self.by_compiler.entry(compiler).or_default();
        counts.builds += 1;
        for ((address, expected), found) in reference.iter().zip(found(folder, program, reference))
        {
            let count = if is_outer { 1 } else { expected.len() };
            counts.frames += 1;
            if is_equal(&expected[..count], &found) {
                counts.equal += 1;
            } else {
                self.differences
                    .push(format!("{build}: {address:#x}: {found:?}, not {expected:?}"));
            }
        }
    }

    /// Compares the names in programs for another processor, which cannot run here.
    fn add_aarch64(&mut self) {
        for options in ["-O0 -g", "-O2 -g", "-O2 -g -gsplit-dwarf", "-O2 -g -flto"] {
            let folder = Folder::new();
            let build = format!("aarch64-linux-gnu-g++ {options}");
            if compile(&folder, "aarch64-linux-gnu-g++", options) {
                std::fs::rename(folder.path("program"), folder.path("aarch64")).unwrap();
                let expected = reference(&folder, "aarch64");
                self.add_names(&folder, "aarch64", &build, &expected, false);
            } else {
                self.left_out.insert(build);
            }
        }
    }
}

/// Looks up the return addresses with `mallard import`, in a stream in which each address is a call
/// stack.
fn found(folder: &Folder, program: &str, reference: &[(u64, Chain)]) -> Vec<Chain> {
    let path = folder.path(program);
    let bytes = std::fs::read(&path).unwrap();
    let file = object::File::parse(&bytes[..]).unwrap();
    let offset_of = |address: u64| {
        let segments = file.segments();
        let mut offsets = segments.filter_map(|segment| {
            let inside = address.checked_sub(segment.address())?;
            (inside < segment.file_range().1).then(|| segment.file_range().0 + inside)
        });
        offsets.next().expect("a segment")
    };
    let mut stream = StreamOf::new();
    stream.text(op::PROCESS, 1000, 1, 42, 0, "start /bin/a");
    let id = file.build_id().unwrap().unwrap_or_default();
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let id = if id.is_empty() { "-" } else { &id };
    let end = MAPPED + bytes.len() as u64;
    stream.text(op::MODULE, 1000, 1, MAPPED, 0, &format!("{end:x} 0 {id} {}", path.display()));
    stream.thread(1, 1);
    let calls: Vec<_> = reference
        .iter()
        .enumerate()
        .map(|(i, &(address, _))| {
            let at = MAPPED + offset_of(address - 1) + 1;
            call(op::MALLOC, 1001 + i as u64, 0x1000 + 16 * i as u64, 8, 0, &[at])
        })
        .collect();
    stream.piece(1, &calls);
    let file = folder.path("addresses.stream");
    std::fs::write(&file, stream.finish()).unwrap();
    let options = Options { force: true, ..Options::default() };
    let to = folder.path("addresses.mallard");
    let trace = import(&file, &to, &options, &mut |_| {}).unwrap();
    chains(&trace, reference, &offset_of)
}

/// Returns the functions at each address, in the order of `reference`.
fn chains(trace: &Trace, reference: &[(u64, Chain)], offset_of: &dyn Fn(u64) -> u64) -> Vec<Chain> {
    let stacks = trace.stacks().unwrap();
    // The frames of inlined functions have the same offset as the frame of their caller, and come
    // after it.
    let mut by_offset: HashMap<u64, Chain> = HashMap::new();
    for frame in 0..stacks.frames() as u32 {
        let functions = stacks.functions_at(frame);
        let chain = || {
            functions.iter().rev().map(|function| shown(function.function).to_string()).collect()
        };
        by_offset.entry(stacks.place_of(frame).1.unwrap_or_default()).or_insert_with(chain);
    }
    let of =
        |address: u64| by_offset.get(&(offset_of(address - 1) + 1)).cloned().unwrap_or_default();
    reference.iter().map(|&(address, _)| of(address)).collect()
}
