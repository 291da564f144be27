//! Reads compiled plans, and rejects corrupt ones.

use super::format::*;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{u32_at, u64_at};
use crate::replay::format::mix_bytes;
use std::collections::HashSet;
use std::path::Path;

/// The maximum size of a file in bytes. A compiled plan with the maximum number of records of each
/// kind, and as much text, is smaller.
const FILE_BYTES_MAX: u64 = 1 << 28;

impl CompiledPlan {
    /// Reads a compiled plan from a file, and checks it.
    pub fn read(path: &Path) -> Result<CompiledPlan> {
        let name = path.display().to_string();
        let bytes = std::fs::metadata(path).and_then(|of| {
            // A pipe or a device is rejected, because reading might never end.
            let is_too_large = !of.is_file() || of.len() > FILE_BYTES_MAX;
            if is_too_large {
                Ok(Vec::new())
            } else {
                std::fs::read(path)
            }
        });
        let bytes = bytes.map_err(|error| {
            let kind = match error.kind() {
                std::io::ErrorKind::NotFound => ErrorKind::Missing,
                _ => ErrorKind::System,
            };
            refused(kind, format!("cannot read the plan {name}: {error}"))
        })?;
        CompiledPlan::from_bytes(&bytes, &name)
    }

    /// Reads a compiled plan from the bytes of its file, and checks it. `name` is the file name in
    /// errors.
    pub fn from_bytes(bytes: &[u8], name: &str) -> Result<CompiledPlan> {
        let parts = Parts::of(bytes, name)?;
        parts.check_words(bytes)?;
        let plan = parts.plan()?;
        check(&plan).map_err(|what| parts.damaged(what))?;
        Ok(plan)
    }
}

fn refused(kind: ErrorKind, what: impl Into<String>) -> Error {
    let help = "mallard plan make TRACE -o FILE makes a plan of a recording";
    Error::new(kind, what, "the plan is not used", help)
}

/// The parts of a compiled plan's file.
struct Parts<'a> {
    name: &'a str,
    modules: &'a [u8],
    rules: &'a [u8],
    callers: &'a [u8],
    stacks: &'a [u8],
    frames: &'a [u8],
    ranges: &'a [u8],
    text: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Checks the header, and splits the file into its parts.
    fn of(bytes: &'a [u8], name: &'a str) -> Result<Parts<'a>> {
        let damaged =
            |what: String| refused(ErrorKind::Damaged, format!("{name} is corrupt: {what}"));
        let known = bytes.len().min(MAGIC.len());
        if known == 0 || bytes[..known] != MAGIC[..known] {
            return Err(refused(ErrorKind::Foreign, format!("{name} is not a compiled plan")));
        }
        if bytes.len() < HEADER_BYTES {
            let what = format!("{name} is truncated: it ends after {} bytes", bytes.len());
            return Err(refused(ErrorKind::Truncated, what));
        }
        let word = |index: usize| u32_at(bytes, 8 + 4 * index);
        if word(0) == BYTE_ORDER.swap_bytes() {
            let what = format!("{name} was made on a machine of the other byte order");
            return Err(refused(ErrorKind::ByteOrder, what));
        }
        if word(0) != BYTE_ORDER {
            return Err(damaged("it has no byte order".to_string()));
        }
        if word(1) > VERSION {
            let what = format!(
                "{name} has version {} of the format, but this mallard reads version {VERSION}",
                word(1)
            );
            return Err(refused(ErrorKind::Newer, what));
        }
        if word(1) != VERSION {
            return Err(damaged("it has no version".to_string()));
        }
        let count = |index: usize, what: &str, least: usize, most: usize| {
            let count = word(index) as usize;
            match (least..=most).contains(&count) {
                true => Ok(count),
                false => Err(damaged(format!("it has {count} {what}"))),
            }
        };
        let lengths = [
            HEADER_BYTES,
            MODULE_BYTES * count(2, "modules", 0, MODULES_MAX)?,
            RULE_BYTES * count(3, "rules", 1, RULES_MAX)?,
            PLACE_BYTES * count(4, "callers", 0, ENTRIES_MAX)?,
            STACK_BYTES * count(5, "stacks", 0, ENTRIES_MAX)?,
            PLACE_BYTES * count(6, "frames", 0, ENTRIES_MAX)?,
            RANGE_BYTES * count(7, "ranges", 0, ENTRIES_MAX)?,
            count(8, "bytes of text", 0, FILE_BYTES_MAX as usize)?,
        ];
        let length: usize = lengths.iter().sum();
        if length % 8 != 0 {
            return Err(damaged("its text does not end at a word".to_string()));
        }
        if bytes.len() < length {
            let what = format!("{name} is truncated: it has {} bytes of {length}", bytes.len());
            return Err(refused(ErrorKind::Truncated, what));
        }
        if bytes.len() > length {
            let what = format!("it has {} bytes after its end", bytes.len() - length);
            return Err(damaged(what));
        }
        let mut rest = bytes;
        let mut take = |length: usize| {
            let (part, more) = rest.split_at(length);
            rest = more;
            part
        };
        let [_, modules, rules, callers, stacks, frames, ranges, text] = lengths.map(&mut take);
        Ok(Parts { name, modules, rules, callers, stacks, frames, ranges, text })
    }

    fn damaged(&self, what: impl AsRef<str>) -> Error {
        refused(ErrorKind::Damaged, format!("{} is corrupt: {}", self.name, what.as_ref()))
    }

    /// Fails if the checksum is wrong, or if a reserved number is not 0.
    fn check_words(&self, bytes: &[u8]) -> Result<()> {
        let (header, body) = bytes.split_at(HEADER_BYTES);
        let (begin, checksum) = header.split_at(HEADER_BYTES - 8);
        if mix_bytes(mix_bytes(0, body), begin) != u64_at(checksum, 0) {
            return Err(self.damaged("its checksum is invalid"));
        }
        let of_rules = self.rules.chunks_exact(RULE_BYTES).map(|rule| u64_at(rule, 24));
        let of_stacks = self.stacks.chunks_exact(STACK_BYTES).map(|stack| u32_at(stack, 12).into());
        let of_frames = self.frames.chunks_exact(PLACE_BYTES).map(|frame| u32_at(frame, 12).into());
        let of_header = [44, 48, 52].into_iter().map(|at| u32_at(header, at).into());
        let mut reserved = of_rules.chain(of_stacks).chain(of_frames).chain(of_header);
        match reserved.all(|number| number == 0) {
            true => Ok(()),
            false => Err(self.damaged("a reserved number is not 0")),
        }
    }

    fn plan(&self) -> Result<CompiledPlan> {
        let records = |part: &'a [u8], bytes: usize| part.chunks_exact(bytes);
        Ok(CompiledPlan {
            modules: records(self.modules, MODULE_BYTES)
                .map(|m| self.module(m))
                .collect::<Result<_>>()?,
            rules: records(self.rules, RULE_BYTES).map(|r| self.rule(r)).collect::<Result<_>>()?,
            callers: records(self.callers, PLACE_BYTES)
                .map(|c| self.caller(c))
                .collect::<Result<_>>()?,
            stacks: self.stacks()?,
            ranges: records(self.ranges, RANGE_BYTES).map(range).collect(),
        })
    }

    /// Returns the text that a record refers to.
    fn text(&self, record: &[u8]) -> Result<Vec<u8>> {
        let (at, bytes) = (u32_at(record, 0) as usize, u32_at(record, 4) as usize);
        let part = self.text.get(at..).and_then(|rest| rest.get(..bytes));
        let part = part.filter(|part| !part.contains(&0));
        Ok(part.ok_or_else(|| self.damaged("a name is not in its text"))?.to_vec())
    }

    fn module(&self, record: &[u8]) -> Result<PlanModule> {
        let (build_id, is_program) = (u32_at(record, 8) as usize, u32_at(record, 12));
        let whole = &record[24..];
        if build_id > BUILD_ID_MAX || whole[build_id..].iter().any(|&byte| byte != 0) {
            return Err(self.damaged("a build-id is too long"));
        }
        if is_program > 1 {
            return Err(self.damaged("a module is neither the program nor a library"));
        }
        Ok(PlanModule {
            name: self.text(record)?,
            is_program: is_program == 1,
            build_id: whole[..build_id].to_vec(),
            key: u64_at(record, 16),
        })
    }

    fn rule(&self, record: &[u8]) -> Result<PlanRule> {
        let kind = u32_at(record, 8);
        let mut kinds = LocalAllocator::ALL.into_iter();
        let allocator = kinds.find(|&of| of as u32 == kind);
        Ok(PlanRule {
            name: self.text(record)?,
            allocator: allocator
                .ok_or_else(|| self.damaged(format!("a rule has the unknown allocator {kind}")))?,
            block_bytes: u32_at(record, 12),
            peak_bytes: u64_at(record, 16),
        })
    }

    fn choice(&self, number: u32) -> Result<Choice> {
        match number {
            MALLOC => Ok(Choice::Malloc),
            rule if (rule as usize) < RULES_MAX => Ok(Choice::Rule(rule)),
            _ => Err(self.damaged(format!("a call stack has the unknown answer {number:#x}"))),
        }
    }

    fn caller(&self, record: &[u8]) -> Result<Caller> {
        let number = u32_at(record, 12);
        let frames = number.wrapping_sub(BY_STACK);
        let answer = match (2..=FRAMES_MAX as u32).contains(&frames) {
            true => Answer::ByStack(frames),
            false => Answer::Same(self.choice(number)?),
        };
        Ok(Caller { place: place(record), answer })
    }

    fn stacks(&self) -> Result<Vec<PlanStack>> {
        let mut rest = self.frames.chunks_exact(PLACE_BYTES).map(place);
        let mut first = 0;
        let mut stacks = Vec::new();
        for record in self.stacks.chunks_exact(STACK_BYTES) {
            let frames = u32_at(record, 4);
            if u32_at(record, 0) != first {
                return Err(self.damaged("its stacks do not follow each other"));
            }
            if !(1..=FRAMES_MAX as u32).contains(&frames) {
                return Err(self.damaged(format!("a stack has {frames} frames")));
            }
            first += frames;
            let frames: Vec<Place> = rest.by_ref().take(frames as usize).collect();
            stacks.push(PlanStack { frames, choice: self.choice(u32_at(record, 8))? });
        }
        match rest.next().is_none() && first as usize == self.frames.len() / PLACE_BYTES {
            true => Ok(stacks),
            false => Err(self.damaged("its stacks do not have all its frames")),
        }
    }
}

fn place(record: &[u8]) -> Place {
    Place { address: u64_at(record, 0), module: u32_at(record, 8) }
}

fn range(record: &[u8]) -> CodeRange {
    let (begin, end) = (u64_at(record, 0), u64_at(record, 8));
    CodeRange { begin, end, module: u32_at(record, 16), rule: u32_at(record, 20) }
}

/// Returns an error if a plan is inconsistent.
fn check(plan: &CompiledPlan) -> std::result::Result<(), &'static str> {
    let must = |holds: bool, what: &'static str| if holds { Ok(()) } else { Err(what) };
    let has_module = |module: u32| (module as usize) < plan.modules.len();
    let has_choice = |choice: Choice| match choice {
        Choice::Rule(rule) => (rule as usize) < plan.rules.len(),
        Choice::Malloc => true,
    };
    let programs = plan.modules.iter().filter(|module| module.is_program).count();
    must(programs <= 1, "two modules are the program")?;
    let has_bytes = |rule: &PlanRule| (1..=BLOCK_MAX).contains(&rule.block_bytes);
    must(plan.rules.iter().all(has_bytes), "a rule has an invalid block size")?;
    let places = || plan.callers.iter().map(|caller| caller.place);
    let frames = || plan.stacks.iter().flat_map(|stack| &stack.frames);
    let mut modules = places().chain(frames().copied()).map(|place| place.module);
    must(modules.all(has_module), "a return address is in no module")?;
    must(places().is_sorted_by(|a, b| a < b), "its callers are not sorted")?;
    let of_callers = plan.callers.iter().filter_map(|caller| match caller.answer {
        Answer::Same(choice) => Some(choice),
        Answer::ByStack(_) => None,
    });
    let mut choices = of_callers.chain(plan.stacks.iter().map(|stack| stack.choice));
    must(choices.all(has_choice), "a call stack belongs to no rule")?;
    let most = |stack: &PlanStack| {
        let at = plan.callers.binary_search_by_key(&stack.frames[0], |caller| caller.place).ok()?;
        match plan.callers[at].answer {
            Answer::ByStack(frames) => Some(frames as usize),
            Answer::Same(_) => None,
        }
    };
    let is_of_caller =
        |stack: &PlanStack| most(stack).is_some_and(|most| stack.frames.len() <= most);
    must(plan.stacks.iter().all(is_of_caller), "a stack belongs to no caller")?;
    let mut seen = HashSet::new();
    let is_new = |stack: &PlanStack| seen.insert(stack.frames.clone());
    must(plan.stacks.iter().all(is_new), "two stacks have the same frames")?;
    let is_right = |range: &CodeRange| {
        range.begin < range.end && has_module(range.module) && has_choice(Choice::Rule(range.rule))
    };
    must(plan.ranges.iter().all(is_right), "a range is of no code or of no rule")?;
    must(plan.ranges.is_sorted_by_key(CodeRange::order), "its ranges are not sorted")
}
