//! The format of compiled plans: constants, types and the writer, as in
//! `include/mallard/trace/plan_format.h`. `spec/plan_format.md` says what they mean.

use crate::replay::format::mix_bytes;
use std::borrow::Cow;

/// The version of the format.
pub const VERSION: u32 = 1;
/// A number that reads differently on a machine of the other byte order.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// The first bytes of a file.
pub const MAGIC: [u8; 8] = *b"\x89MPLAN\r\n";
/// Size of the header, in bytes.
pub const HEADER_BYTES: usize = 64;
/// Size of the record of a module, in bytes.
pub const MODULE_BYTES: usize = 56;
/// Size of the record of a rule, in bytes.
pub const RULE_BYTES: usize = 32;
/// Size of the record of a caller or a frame, in bytes.
pub const PLACE_BYTES: usize = 16;
/// Size of the record of a stack, in bytes.
pub const STACK_BYTES: usize = 16;
/// Size of the record of a range, in bytes.
pub const RANGE_BYTES: usize = 24;
/// The largest size of a build-id, in bytes.
pub const BUILD_ID_MAX: usize = 32;
/// The greatest number of modules.
pub const MODULES_MAX: usize = 1024;
/// The greatest number of rules.
pub const RULES_MAX: usize = 64;
/// The greatest number of callers, of stacks, of frames, and of ranges.
pub const ENTRIES_MAX: usize = 1 << 20;
/// The greatest number of frames of a stack.
pub const FRAMES_MAX: usize = 64;
/// The largest block of a rule, in bytes.
pub const BLOCK_MAX: u32 = 16384;

pub(super) const BY_STACK: u32 = 0x4000_0000;
pub(super) const MALLOC: u32 = 0x7fff_ffff;

/// A compiled plan: which allocations of a program come from which local allocator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompiledPlan {
    /// The program and the shared libraries whose addresses the plan has.
    pub modules: Vec<PlanModule>,
    /// The rules.
    pub rules: Vec<PlanRule>,
    /// The callers, in the order of modules and addresses.
    pub callers: Vec<Caller>,
    /// The call stacks of the callers that do not decide alone.
    pub stacks: Vec<PlanStack>,
    /// The code of the functions of rules, in the order of modules and first addresses, the larger range
    /// first.
    pub ranges: Vec<CodeRange>,
}

/// A module: the program or a shared library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanModule {
    /// The name of the file, without directories, in the bytes of the system.
    pub name: Vec<u8>,
    /// Whether the module is the program itself.
    pub is_program: bool,
    /// The build-id; empty if the module has none.
    pub build_id: Vec<u8>,
    /// Identifies a module without a build-id: see `spec/plan_format.md`. Otherwise 0.
    pub key: u64,
}

impl PlanModule {
    /// Returns the name for messages. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub fn shown(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }
}

/// The kind of local allocator of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalAllocator {
    /// Blocks of one size.
    Pool = 1,
    /// Blocks of several sizes. Freed blocks are used again by size.
    Multipool = 2,
    /// Blocks one after the other. Chunks without blocks are used again.
    Arena = 3,
    /// A multipool that starts anew when all its blocks are free.
    MultipoolOverArena = 4,
}

impl LocalAllocator {
    /// All kinds.
    pub const ALL: [LocalAllocator; 4] = [
        LocalAllocator::Pool,
        LocalAllocator::Multipool,
        LocalAllocator::Arena,
        LocalAllocator::MultipoolOverArena,
    ];

    /// Returns the words for the kind, as a plan has them.
    pub fn words(self) -> &'static str {
        match self {
            LocalAllocator::Pool => "pool",
            LocalAllocator::Multipool => "multipool",
            LocalAllocator::Arena => "arena",
            LocalAllocator::MultipoolOverArena => "multipool over arena",
        }
    }
}

/// A rule: the allocations of its call stacks come from one kind of local allocator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRule {
    /// The name for messages.
    pub name: Vec<u8>,
    /// The kind of local allocator.
    pub allocator: LocalAllocator,
    /// The largest block in bytes; of a pool, the only size.
    pub block_bytes: u32,
    /// The peak of the rule's blocks in the recorded run, in bytes; 0 if it is not known.
    pub peak_bytes: u64,
}

impl PlanRule {
    /// Returns the name for messages. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub fn shown(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }
}

/// A return address in a module, as the file of the module has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The index of the module.
    pub module: u32,
    /// The return address, as an address of the file.
    pub address: u64,
}

/// Where a block comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// The local allocator of the rule with this index.
    Rule(u32),
    /// The malloc of the program.
    Malloc,
}

impl Choice {
    pub(super) fn number(self) -> u32 {
        match self {
            Choice::Rule(rule) => rule,
            Choice::Malloc => MALLOC,
        }
    }
}

/// What is known about a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// All call stacks of the caller have this choice.
    Same(Choice),
    /// This many frames, from 2 to [`FRAMES_MAX`], tell the call stacks of the caller apart.
    ByStack(u32),
}

/// A function that allocates: the return address of `malloc` or of an operator new, and the answer for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The return address.
    pub place: Place,
    /// The answer.
    pub answer: Answer,
}

/// A call stack of a caller that does not decide alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanStack {
    /// The frames, the caller first.
    pub frames: Vec<Place>,
    /// Where the blocks of the call stack come from.
    pub choice: Choice,
}

/// The code of a function that a rule is for, or of a copy of it that was inlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeRange {
    /// The index of the module.
    pub module: u32,
    /// The first byte of code, as an address of the file.
    pub begin: u64,
    /// The address after the last byte.
    pub end: u64,
    /// The index of the rule.
    pub rule: u32,
}

impl CodeRange {
    /// Returns the key by which a plan orders its ranges. The larger of two ranges with the same begin comes
    /// first.
    pub fn order(&self) -> (u32, u64, std::cmp::Reverse<u64>) {
        (self.module, self.begin, std::cmp::Reverse(self.end))
    }
}

impl CompiledPlan {
    /// Returns the bytes of the file. Does not check the plan: a reader does.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut add_text = |name: &[u8]| {
            let at = text.len() as u32;
            text.extend(name);
            [at, name.len() as u32]
        };
        let mut body = Body::default();
        for module in &self.modules {
            body.u32s(&add_text(&module.name));
            body.u32s(&[module.build_id.len() as u32, module.is_program.into()]);
            body.u64s(&[module.key]);
            let mut build_id = [0; BUILD_ID_MAX];
            for (to, byte) in build_id.iter_mut().zip(&module.build_id) {
                *to = *byte;
            }
            body.0.extend(build_id);
        }
        for rule in &self.rules {
            body.u32s(&add_text(&rule.name));
            body.u32s(&[rule.allocator as u32, rule.block_bytes]);
            body.u64s(&[rule.peak_bytes, 0]);
        }
        for caller in &self.callers {
            body.place(
                caller.place,
                match caller.answer {
                    Answer::Same(choice) => choice.number(),
                    Answer::ByStack(frames) => BY_STACK + frames,
                },
            );
        }
        let mut first = 0;
        for stack in &self.stacks {
            let frames = stack.frames.len() as u32;
            body.u32s(&[first, frames, stack.choice.number(), 0]);
            first += frames;
        }
        let frames = self.stacks.iter().flat_map(|stack| &stack.frames);
        frames.for_each(|&frame| body.place(frame, 0));
        for range in &self.ranges {
            body.u64s(&[range.begin, range.end]);
            body.u32s(&[range.module, range.rule]);
        }
        text.resize(text.len().next_multiple_of(8), 0);
        let mut header = Body(MAGIC.to_vec());
        header.u32s(&[BYTE_ORDER, VERSION]);
        let lengths = [self.modules.len(), self.rules.len(), self.callers.len(), self.stacks.len()];
        header.u32s(&lengths.map(|length| length as u32));
        header.u32s(&[first, self.ranges.len() as u32, text.len() as u32, 0, 0, 0]);
        body.0.extend(text);
        let checksum = mix_bytes(mix_bytes(0, &body.0), &header.0);
        header.u64s(&[checksum]);
        header.0.extend(body.0);
        header.0
    }
}

/// Bytes of a file.
#[derive(Default)]
struct Body(Vec<u8>);

impl Body {
    fn u32s(&mut self, numbers: &[u32]) {
        self.0.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
    }

    fn u64s(&mut self, numbers: &[u64]) {
        self.0.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
    }

    fn place(&mut self, place: Place, answer: u32) {
        self.u64s(&[place.address]);
        self.u32s(&[place.module, answer]);
    }
}
