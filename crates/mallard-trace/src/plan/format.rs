//! The format of compiled plans: constants, types and the writer, as in
//! `include/mallard/trace/plan_format.h`. `spec/plan_format.md` explains them.

use crate::replay::format::mix_bytes;
use std::borrow::Cow;

/// The version of the format.
pub const VERSION: u32 = 1;
/// A number that shows the byte order of the writer. On a machine with the other byte order, its
/// bytes are reversed.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// The first bytes of a compiled plan.
pub const MAGIC: [u8; 8] = *b"\x89MPLAN\r\n";
/// Size of the header, in bytes.
pub const HEADER_BYTES: usize = 64;
/// Size of a module record, in bytes.
pub const MODULE_BYTES: usize = 56;
/// Size of a rule record, in bytes.
pub const RULE_BYTES: usize = 32;
/// Size of a caller record or frame record, in bytes.
pub const PLACE_BYTES: usize = 16;
/// Size of a stack record, in bytes.
pub const STACK_BYTES: usize = 16;
/// Size of a range record, in bytes.
pub const RANGE_BYTES: usize = 24;
/// The maximum size of a build-id, in bytes.
pub const BUILD_ID_MAX: usize = 32;
/// The maximum number of modules.
pub const MODULES_MAX: usize = 1024;
/// The maximum number of rules.
pub const RULES_MAX: usize = 64;
/// The maximum number of callers, of stacks, of frames, and of ranges.
pub const ENTRIES_MAX: usize = 1 << 20;
/// The maximum number of frames of a stack.
pub const FRAMES_MAX: usize = 64;
/// The maximum size of a block that a rule serves, in bytes.
pub const BLOCK_MAX: u32 = 16384;

pub(super) const BY_STACK: u32 = 0x4000_0000;
pub(super) const MALLOC: u32 = 0x7fff_ffff;

/// A compiled plan: which local allocator serves which allocations of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompiledPlan {
    /// The program and the shared libraries that contain the return addresses of the plan.
    pub modules: Vec<PlanModule>,
    /// The rules.
    pub rules: Vec<PlanRule>,
    /// The callers, sorted by module and address.
    pub callers: Vec<Caller>,
    /// The call stacks of the callers with the answer [`Answer::ByStack`].
    pub stacks: Vec<PlanStack>,
    /// The code of the functions that rules select, sorted by module and first address. If two
    /// ranges have the same first address, the larger range comes first.
    pub ranges: Vec<CodeRange>,
}

/// A module: the program or a shared library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanModule {
    /// The file name without directories, as bytes that need not be UTF-8.
    pub name: Vec<u8>,
    /// Whether the module is the program itself.
    pub is_program: bool,
    /// The build-id; empty if the module has no build-id.
    pub build_id: Vec<u8>,
    /// A number that identifies a module without a build-id, as `spec/plan_format.md` defines. 0
    /// for other modules.
    pub key: u64,
}

impl PlanModule {
    /// Returns the name for messages. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub fn shown(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }
}

/// The kinds of local allocators that a rule may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalAllocator {
    /// A pool for blocks of one size.
    Pool = 1,
    /// A multipool, for blocks of several sizes. Freed blocks are reused for blocks of the same
    /// size class.
    Multipool = 2,
    /// An arena, which allocates blocks contiguously. A chunk is reused when all its blocks are
    /// free.
    Arena = 3,
    /// A multipool that is reset when all its blocks are free.
    MultipoolOverArena = 4,
}

impl LocalAllocator {
    /// All kinds of local allocators.
    pub const ALL: [LocalAllocator; 4] = [
        LocalAllocator::Pool,
        LocalAllocator::Multipool,
        LocalAllocator::Arena,
        LocalAllocator::MultipoolOverArena,
    ];

    /// Returns the words for the kind, as written in plans.
    pub fn words(self) -> &'static str {
        match self {
            LocalAllocator::Pool => "pool",
            LocalAllocator::Multipool => "multipool",
            LocalAllocator::Arena => "arena",
            LocalAllocator::MultipoolOverArena => "multipool over arena",
        }
    }
}

/// A rule: one kind of local allocator serves the allocations of some call stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRule {
    /// The name for messages.
    pub name: Vec<u8>,
    /// The kind of local allocator.
    pub allocator: LocalAllocator,
    /// The maximum block size in bytes. For a pool, the only block size.
    pub block_bytes: u32,
    /// The peak of the bytes in use by the rule's blocks in the recorded run; 0 if unknown.
    pub peak_bytes: u64,
}

impl PlanRule {
    /// Returns the name for messages. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub fn shown(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }
}

/// A return address in a module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The index of the module.
    pub module: u32,
    /// The return address, as a link-time address (without the load address of the module).
    pub address: u64,
}

/// The source of a block.
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

/// How the plan chooses the allocator for a call of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// All call stacks of the caller have this choice.
    Same(Choice),
    /// The first frames of the call stack determine the choice. The number of frames is from 2 to
    /// [`FRAMES_MAX`].
    ByStack(u32),
}

/// A function that allocates, identified by the return address of its call of `malloc` or of an
/// operator new. The answer determines how the plan chooses an allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The return address.
    pub place: Place,
    /// How the plan chooses the allocator for a call.
    pub answer: Answer,
}

/// A call stack of a caller with the answer [`Answer::ByStack`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanStack {
    /// The frames, the caller first.
    pub frames: Vec<Place>,
    /// The allocator of the blocks with this call stack.
    pub choice: Choice,
}

/// The code of a function that a rule selects, or of an inlined copy of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeRange {
    /// The index of the module.
    pub module: u32,
    /// The link-time address of the first byte.
    pub begin: u64,
    /// The address after the last byte.
    pub end: u64,
    /// The index of the rule.
    pub rule: u32,
}

impl CodeRange {
    /// Returns the key by which a plan sorts its ranges. If two ranges have the same first address,
    /// the larger range comes first.
    pub fn order(&self) -> (u32, u64, std::cmp::Reverse<u64>) {
        (self.module, self.begin, std::cmp::Reverse(self.end))
    }
}

impl CompiledPlan {
    /// Returns the content of the file. Does not check the plan, because every reader checks it.
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

/// Collects the bytes of a file.
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
