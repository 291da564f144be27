//! Implements `mallard plan show`, which prints the rules of a plan, and which call stacks they
//! serve.

use super::must_be_whole;
use mallard_measure::error::Failure;
use mallard_measure::output::shell::{as_called, quoted_path};
use mallard_measure::output::terminal::{plain_table, say, write};
use mallard_measure::output::units::{bytes, count, plural};
use mallard_measure::process::installed::library_folders;
use mallard_trace::names::{is_standard, is_wrapper, short};
use mallard_trace::plan::{names_in, Answer, Choice, CompiledPlan, Named, Place, PlanModule};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Shows the rules of a plan, and which call stacks they serve.
///
/// Functions have names if the modules of the plan are found: in the directories of PATH and of
/// libraries, next to the plan, in the current directory, or as a further argument. Another build
/// of a module has other addresses and is not used.
#[derive(clap::Args)]
pub struct Command {
    /// The plan.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Programs and libraries of the plan.
    #[arg(value_name = "MODULE")]
    modules: Vec<PathBuf>,
    /// How many call stacks of each rule are listed; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Writes the plan as a JSON object, with all call stacks.
    #[arg(long)]
    json: bool,
}

impl Command {
    /// Prints the plan.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let plan = must_be_whole(&self.file)?;
        let names = Names::look_up(&plan, |module| self.places_of(module));
        if self.json {
            write(&format!("{}\n", as_json(&plan, &names)))?;
        } else {
            say(&self.text(&plan, &names))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the paths at which the file of a module may be.
    fn places_of(&self, module: &PlanModule) -> Vec<PathBuf> {
        let name = OsStr::from_bytes(&module.name);
        let named = self.modules.iter().filter(|path| path.file_name() == Some(name)).cloned();
        let beside = self.file.parent().unwrap_or(Path::new("")).to_path_buf();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let libraries = ["/", "/usr", "/usr/local"]
            .into_iter()
            .flat_map(|prefix| library_folders().map(|folder| Path::new(prefix).join(folder)));
        let folders = [PathBuf::new(), beside].into_iter().chain(std::env::split_paths(&path));
        named.chain(folders.chain(libraries).map(|folder| folder.join(name))).collect()
    }

    fn text(&self, plan: &CompiledPlan, names: &Names) -> String {
        let served = served(plan);
        let lines = plan.rules.iter().zip(0..).map(|(rule, number)| {
            let of_rule = plan.ranges.iter().filter(|range| range.rule == number);
            let peak = match rule.peak_bytes {
                0 => "unknown".to_string(),
                peak => bytes(peak),
            };
            vec![
                short(&rule.shown()),
                rule.allocator.words().to_string(),
                bytes(rule.block_bytes.into()),
                peak,
                count(served.get(&number).map_or(0, |stacks| stacks.len() as u64)),
                plural(of_rule.count() as u64, "range"),
            ]
        });
        let titles = ["rule", "allocator", "largest block", "recorded peak", "call stacks", "code"];
        let mut text = format!(
            "{}: {} of {}\n\n{}\n",
            self.file.display(),
            plural(plan.rules.len() as u64, "rule"),
            program(plan),
            plain_table(&titles, lines)
        );
        for (rule, number) in plan.rules.iter().zip(0..) {
            let Some(stacks) = served.get(&number) else { continue };
            text += &format!("\n{} serves\n", short(&rule.shown()));
            let mut lines: BTreeMap<String, u64> = BTreeMap::new();
            stacks.iter().for_each(|stack| *lines.entry(names.line(plan, stack)).or_default() += 1);
            let most = if self.top == 0 { lines.len() } else { self.top };
            text.extend(lines.iter().take(most).map(|(line, calls)| match calls {
                1 => format!("    {line}\n"),
                calls => format!("    {line}, {calls} calls\n"),
            }));
            if lines.len() > most {
                text += &format!("    … {} more: --top 0\n", lines.len() - most);
            }
        }
        text += "\nmodules\n";
        for (module, number) in plan.modules.iter().zip(0..) {
            let found = names.found.get(&number).map(|path| path.display().to_string());
            let found =
                found.unwrap_or_else(|| "not found, so its functions have no names".to_string());
            text += &format!("    {}  {}: {found}\n", module.shown(), identity(module));
        }
        let next = format!("mallard plan check {} -- PROG ARGS", quoted_path(&self.file));
        text + &format!("\n  next: {}\n", as_called(&next))
    }
}

/// Returns the name of the plan's program.
fn program(plan: &CompiledPlan) -> String {
    let program = plan.modules.iter().find(|module| module.is_program);
    program.map_or("a program".to_string(), |module| module.shown().into_owned())
}

/// Returns the build ID or the key that identifies a module.
fn identity(module: &PlanModule) -> String {
    match module.build_id.is_empty() {
        true => format!("key {:016x}", module.key),
        false => format!("build-id {}", hex(&module.build_id)),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the call stacks that each rule serves. A stack has only one frame if the calling
/// function alone determines the rule.
fn served(plan: &CompiledPlan) -> BTreeMap<u32, Vec<Vec<Place>>> {
    let mut served: BTreeMap<u32, Vec<Vec<Place>>> = BTreeMap::new();
    let callers = plan.callers.iter().filter_map(|caller| match caller.answer {
        Answer::Same(choice) => Some((choice, vec![caller.place])),
        Answer::ByStack(_) => None,
    });
    let stacks = plan.stacks.iter().map(|stack| (stack.choice, stack.frames.clone()));
    for (choice, frames) in callers.chain(stacks) {
        if let Choice::Rule(rule) = choice {
            served.entry(rule).or_default().push(frames);
        }
    }
    served
}

/// The function names for the addresses in a plan.
#[derive(Default)]
struct Names {
    of: HashMap<Place, Vec<Named>>,
    /// The files of the modules that were found.
    found: BTreeMap<u32, PathBuf>,
}

impl Names {
    fn look_up(plan: &CompiledPlan, places_of: impl Fn(&PlanModule) -> Vec<PathBuf>) -> Names {
        let mut names = Names::default();
        let frames = plan.stacks.iter().flat_map(|stack| stack.frames.iter().copied());
        let places: BTreeSet<Place> =
            plan.callers.iter().map(|caller| caller.place).chain(frames).collect();
        for (module, number) in plan.modules.iter().zip(0..) {
            let own: Vec<Place> =
                places.iter().copied().filter(|place| place.module == number).collect();
            let addresses: Vec<u64> = own.iter().map(|place| place.address).collect();
            for file in places_of(module) {
                let Some(found) = names_in(module, &file, &addresses) else { continue };
                names.of.extend(own.into_iter().zip(found));
                names.found.insert(number, file);
                break;
            }
        }
        names
    }

    /// Formats a call stack in one line, the caller first.
    fn line(&self, plan: &CompiledPlan, stack: &[Place]) -> String {
        let functions = stack.iter().map(|place| self.function(plan, place));
        functions.collect::<Vec<_>>().join(" from ")
    }

    fn function(&self, plan: &CompiledPlan, place: &Place) -> String {
        let functions = self.of.get(place).map_or(&[][..], Vec::as_slice);
        // Skip inlined library functions, because the program's function around them is more
        // informative.
        let is_own = |of: &&Named| !is_wrapper(&of.function) && !is_standard(&of.function);
        let Some(named) = functions.iter().find(is_own).or(functions.last()) else {
            let module = plan.modules[place.module as usize].shown();
            return format!("{module} at {:#x}", place.address);
        };
        let file = named.file.rsplit('/').next().unwrap_or_default();
        let name = short(&named.function);
        match (file, named.line) {
            ("", _) => name,
            (file, Some(line)) => format!("{name} ({file}:{line})"),
            (file, None) => format!("{name} ({file})"),
        }
    }
}

fn as_json(plan: &CompiledPlan, names: &Names) -> Value {
    let served = served(plan);
    let frame = |place: &Place| {
        let functions = names.of.get(place).into_iter().flatten();
        let functions =
            functions.map(|of| json!({"function": of.function, "file": of.file, "line": of.line}));
        json!({
            "module": place.module,
            "address": place.address,
            "functions": functions.collect::<Vec<_>>(),
        })
    };
    let rules = plan.rules.iter().zip(0..).map(|(rule, number)| {
        let stacks = served.get(&number).into_iter().flatten();
        let stacks = stacks.map(|stack| stack.iter().map(frame).collect::<Vec<_>>());
        let ranges = plan.ranges.iter().filter(|range| range.rule == number);
        let ranges =
            ranges.map(|of| json!({"module": of.module, "begin": of.begin, "end": of.end}));
        json!({
            "name": rule.shown(),
            "allocator": rule.allocator.words(),
            "block_bytes": rule.block_bytes,
            "peak_bytes": rule.peak_bytes,
            "call_stacks": stacks.collect::<Vec<_>>(),
            "ranges": ranges.collect::<Vec<_>>(),
        })
    });
    let rules: Vec<Value> = rules.collect();
    let modules = plan.modules.iter().zip(0..).map(|(module, number)| {
        json!({
            "name": module.shown(),
            "is_program": module.is_program,
            "build_id": (!module.build_id.is_empty()).then(|| hex(&module.build_id)),
            "key": module.build_id.is_empty().then_some(module.key),
            "file": names.found.get(&number),
        })
    });
    json!({ "rules": rules, "modules": modules.collect::<Vec<_>>() })
}
