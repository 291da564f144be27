//! Matches the call stacks of two traces by their functions and modules.

use super::metrics::Numbers;
use crate::look::frames::module;
use mallard_measure::error::Failure;
use mallard_trace::tables::schema::MODULES;
use mallard_trace::trace::FrameInfo;
use mallard_trace::{SiteRow, Trace};
use std::collections::{BTreeMap, HashMap};

/// A function of a call stack, described so that it can be found in both traces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function {
    /// The name of the function.
    pub name: String,
    /// The file name of the module, without directories.
    pub module: String,
    /// The source file and line, from the trace that was read last.
    pub place: Place,
}

/// The source position of a function. Functions are compared without their positions, because the
/// line of a function moves when code before the function changes.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The source file; empty if it is not known.
    pub file: String,
    /// The line of the call.
    pub line: Option<u32>,
}

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}
impl Eq for Place {}
impl std::hash::Hash for Place {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}
impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Place {
    fn cmp(&self, _: &Place) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

/// Which of the two traces have a call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Only the second trace has allocations of this call stack.
    New,
    /// Only the first trace has allocations of this call stack.
    Gone,
    /// Both traces have allocations of this call stack.
    Both,
}

/// A call stack with its numbers in both traces.
#[derive(Clone, Debug)]
pub struct Site {
    /// The functions, the innermost first.
    pub functions: Vec<Function>,
    /// Which traces have the call stack.
    pub state: State,
    /// The numbers of the call stack in the first trace.
    pub before: Numbers,
    /// The numbers of the call stack in the second trace.
    pub after: Numbers,
}

impl Site {
    /// Returns how the numbers of the call stack have changed.
    pub fn change(&self) -> Numbers {
        self.after.since(&self.before)
    }
}

/// Functions of both traces, each with an index, and the call stacks as lists of these indices.
#[derive(Default)]
pub struct Matching {
    numbers: HashMap<Function, u32>,
    functions: Vec<Function>,
    sites: HashMap<Box<[u32]>, [Option<Numbers>; 2]>,
}

impl Matching {
    /// Adds a site of the first trace (0) or of the second (1). Sites of one trace that have equal
    /// functions are added up.
    fn add(&mut self, trace: usize, key: Box<[u32]>, row: &SiteRow) {
        let site = self.sites.entry(key).or_default();
        site[trace].get_or_insert_default().add(&Numbers::of(row));
    }

    fn number(&mut self, function: Function) -> u32 {
        let next = self.functions.len() as u32;
        let number = *self.numbers.entry(function.clone()).or_insert(next);
        if number == next {
            self.functions.push(function);
        } else {
            self.functions[number as usize].place = function.place;
        }
        number
    }

    /// Returns all call stacks, in no particular order.
    fn into_sites(self) -> Vec<Site> {
        let Matching { functions, sites, .. } = self;
        let site = |(key, numbers): (Box<[u32]>, [Option<Numbers>; 2])| {
            let state = match numbers {
                [None, _] => State::New,
                [_, None] => State::Gone,
                _ => State::Both,
            };
            let [before, after] = numbers.map(Option::unwrap_or_default);
            let functions = key.iter().map(|&number| functions[number as usize].clone()).collect();
            Site { functions, state, before, after }
        };
        sites.into_iter().map(site).collect()
    }
}

/// Matches the sites of two traces.
pub fn matched(before: &Trace, after: &Trace) -> Result<Vec<Site>, Failure> {
    let builds = [builds(before)?, builds(after)?];
    let mut matching = Matching::default();
    for (number, trace) in [before, after].into_iter().enumerate() {
        let stacks = trace.stacks()?;
        // Most frames occur in many call stacks, so each frame is converted only once. The key of a
        // frame has the addresses of its strings, and its line.
        let mut known: HashMap<_, u32> = HashMap::new();
        for row in trace.sites()? {
            let frames = stacks.functions(row.stack);
            let key = frames.iter().map(|frame| {
                let place = (frame.function.as_ptr(), frame.module.as_ptr(), frame.line);
                let add = || matching.number(function(frame, &builds));
                *known.entry(place).or_insert_with(add)
            });
            let key = key.collect();
            matching.add(number, key, &row);
        }
    }
    Ok(matching.into_sites())
}

/// Describes a function without anything that differs between runs or builds.
fn function(frame: &FrameInfo, builds: &[Builds; 2]) -> Function {
    let module = module(frame).to_string();
    let name = name(frame.function, &module, builds);
    let place = Place { file: frame.file.to_string(), line: frame.line };
    Function { name, module, place }
}

/// The build IDs of modules, by file name.
type Builds = BTreeMap<String, String>;

fn builds(trace: &Trace) -> Result<Builds, Failure> {
    let table = trace.table(&MODULES)?;
    let names = table.texts("path")?;
    let names = names.iter().map(|path| path.rsplit('/').next().unwrap_or_default().to_string());
    Ok(names.zip(table.texts("build_id")?).collect())
}

/// Returns the name by which a function is compared. Code without a symbol is named by its offset
/// in the module if both traces have the same build of the module. Otherwise offsets do not match,
/// and all such code of the module has one name. Code outside all modules also has one name,
/// because its addresses differ between runs.
fn name(function: &str, module: &str, builds: &[Builds; 2]) -> String {
    let rest = function.strip_prefix(module).unwrap_or(function);
    if module.is_empty() && rest.starts_with("0x") {
        return "(code of no module)".to_string();
    }
    let is_offset = !module.is_empty() && rest.len() < function.len() && rest.starts_with("+0x");
    let [before, after] = builds.each_ref().map(|builds| builds.get(module));
    let is_same_build = before == after && before.is_some_and(|build| !build.is_empty());
    if is_offset && !is_same_build {
        return format!("(code of {module})");
    }
    function.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_at(name: &str, line: u32) -> Function {
        let place = Place { file: "a.c".to_string(), line: Some(line) };
        Function { name: name.to_string(), module: "a".to_string(), place }
    }

    fn row(bytes: i64) -> SiteRow {
        SiteRow { bytes, allocs: 1, ..SiteRow::default() }
    }

    #[test]
    fn call_stacks_match_by_functions_and_not_by_lines() {
        let mut matching = Matching::default();
        let mut add = |trace, functions: Vec<Function>, bytes| {
            let key = functions.into_iter().map(|function| matching.number(function)).collect();
            matching.add(trace, key, &row(bytes));
        };
        let stack =
            |lines: [u32; 2]| vec![function_at("f", lines[0]), function_at("main", lines[1])];
        add(0, stack([1, 2]), 10);
        add(0, stack([3, 4]), 5);
        add(1, stack([7, 8]), 20);
        add(1, vec![function_at("g", 1)], 3);
        add(0, vec![], 4);
        let mut sites = matching.into_sites();
        sites.sort_by_key(|site| site.state);
        let states: Vec<State> = sites.iter().map(|site| site.state).collect();
        assert_eq!(states, [State::New, State::Gone, State::Both]);
        assert_eq!(sites[2].change().0[..2], [5, -1]);
        assert_eq!(sites[2].functions[0].place.line, Some(7));
    }

    #[test]
    fn code_offsets_identify_functions_only_within_one_build() {
        let build = |id: &str| Builds::from([("libx.so".to_string(), id.to_string())]);
        let same = [build("1"), build("1")];
        assert_eq!(name("libx.so+0x10", "libx.so", &same), "libx.so+0x10");
        for builds in [[build("1"), build("2")], [build(""), build("")], Default::default()] {
            assert_eq!(name("libx.so+0x10", "libx.so", &builds), "(code of libx.so)");
        }
        assert_eq!(name("libx_open", "libx.so", &same), "libx_open");
        assert_eq!(name("0x7f00", "", &same), "(code of no module)");
        assert_eq!(name("allocator 1", "", &same), "allocator 1");
    }
}
