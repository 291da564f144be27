//! Tests that compiled plans are written and read as spec/plan_format.md defines, and that corrupt
//! plans are rejected. Plans made from recordings must have the callers, call stacks and code of
//! their rules.

use crate::support::run::seeds;
use crate::support::{call, import_in, root, StreamOf};
use crate::symbols::{build_id, mapping_of, this_program};
use mallard_trace::error::{Error, ErrorKind};
use mallard_trace::format::op;
use mallard_trace::import::Options;
use mallard_trace::plan::{
    make, Answer, Caller, Choice, CodeRange, CompiledPlan, LocalAllocator, Made, Place, PlanModule,
    PlanRule, PlanStack, Rules,
};
use std::collections::{BTreeMap, BTreeSet};

const HEADER_BYTES: usize = 64;

fn place(module: u32, address: u64) -> Place {
    Place { module, address }
}

fn rule(name: &str, allocator: LocalAllocator, block_bytes: u32, peak_bytes: u64) -> PlanRule {
    PlanRule { name: name.into(), allocator, block_bytes, peak_bytes }
}

/// Returns the example plan in spec/plan_format.md.
fn golden() -> CompiledPlan {
    let program = PlanModule {
        name: "orders".into(),
        is_program: true,
        build_id: (1..=20).collect(),
        key: 0,
    };
    let library = PlanModule {
        name: b"libparse.so.1".into(),
        key: 0x1234_5678_9abc_def0,
        ..PlanModule::default()
    };
    let caller = |place, answer| Caller { place, answer };
    let stack = |frames: &[Place], choice| PlanStack { frames: frames.to_vec(), choice };
    let range = |module, begin, end, rule| CodeRange { module, begin, end, rule };
    CompiledPlan {
        modules: vec![program, library],
        rules: vec![
            rule("parse", LocalAllocator::Arena, 1024, 70_000),
            rule("make_node", LocalAllocator::Pool, 48, 4_800_000),
            rule("names", LocalAllocator::Multipool, 16_384, 0),
            rule("visit", LocalAllocator::MultipoolOverArena, 256, 1),
        ],
        callers: vec![
            caller(place(0, 0x1150), Answer::Same(Choice::Rule(1))),
            caller(place(0, 0x1200), Answer::Same(Choice::Malloc)),
            caller(place(0, 0x1234), Answer::ByStack(3)),
            caller(place(1, 0x900), Answer::Same(Choice::Rule(2))),
        ],
        stacks: vec![
            stack(&[place(0, 0x1234), place(0, 0x1300), place(1, 0xa10)], Choice::Rule(0)),
            stack(&[place(0, 0x1234), place(0, 0x1300), place(0, 0x1400)], Choice::Rule(3)),
            stack(&[place(0, 0x1234), place(0, 0x1500)], Choice::Malloc),
        ],
        ranges: vec![
            range(0, 0x1280, 0x1440, 3),
            range(0, 0x1280, 0x1310, 0),
            range(1, 0xa00, 0xa80, 0),
        ],
    }
}

fn refusal(bytes: &[u8]) -> Error {
    let error = CompiledPlan::from_bytes(bytes, "a.plan").expect_err("a refusal");
    let text = error.to_string();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(error.what().starts_with("a.plan "), "{text}");
    assert!(error.help().contains("mallard plan make"), "{text}");
    error
}

#[test]
fn the_golden_plan_is_written_and_read() {
    let path = root().join("spec/plan_format.golden");
    let bytes = std::fs::read(&path).unwrap();
    assert!(golden().to_bytes() == bytes, "{} differs from what is written", path.display());
    assert_eq!(CompiledPlan::read(&path).unwrap(), golden());
}

#[test]
fn a_plan_that_is_truncated_or_has_a_changed_byte_is_rejected() {
    let whole = golden().to_bytes();
    for length in 0..whole.len() {
        let error = refusal(&whole[..length]);
        let kind = if length == 0 { ErrorKind::Foreign } else { ErrorKind::Truncated };
        assert_eq!(error.kind(), kind, "{length}: {error}");
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            let error = refusal(&changed);
            match at {
                0..8 => assert_eq!(error.kind(), ErrorKind::Foreign, "{at}: {error}"),
                HEADER_BYTES.. => {
                    assert!(error.what().contains("its checksum is invalid"), "{at}: {error}")
                }
                _ => {}
            }
        }
    }
    let mut longer = whole.clone();
    longer.extend([0; 8]);
    assert!(refusal(&longer).what().contains("has 8 bytes after its end"));
    let mut foreign = whole.clone();
    foreign[8..12].reverse();
    assert_eq!(refusal(&foreign).kind(), ErrorKind::ByteOrder);
    let mut newer = whole;
    newer[12..16].copy_from_slice(&2u32.to_ne_bytes());
    assert_eq!(refusal(&newer).kind(), ErrorKind::Newer);
}

/// A change of the golden plan after which its parts contradict each other.
type Change = fn(&mut CompiledPlan);

#[test]
fn a_plan_with_contradictory_parts_is_rejected() {
    let changes: [(Change, &str); 21] = [
        (|plan| plan.rules.clear(), "it has 0 rules"),
        (|plan| plan.rules = vec![plan.rules[0].clone(); 65], "it has 65 rules"),
        (|plan| plan.modules[1].is_program = true, "two modules are the program"),
        (|plan| plan.modules[1].build_id = vec![1; 33], "a build-id is too long"),
        (|plan| plan.modules[1].name.push(0), "a name is not in its text"),
        (|plan| plan.rules[0].block_bytes = 0, "a rule has an invalid block size"),
        (|plan| plan.rules[0].block_bytes = 16_385, "a rule has an invalid block size"),
        (|plan| plan.callers.swap(0, 1), "its callers are not sorted"),
        (|plan| plan.callers[1] = plan.callers[0], "its callers are not sorted"),
        (|plan| plan.callers[3].place.module = 2, "a return address is in no module"),
        (|plan| plan.stacks[0].frames[2].module = 2, "a return address is in no module"),
        (
            |plan| plan.callers[0].answer = Answer::Same(Choice::Rule(4)),
            "a call stack belongs to no rule",
        ),
        (|plan| plan.callers[0].answer = Answer::Same(Choice::Rule(64)), "unknown answer 0x40"),
        (|plan| plan.callers[2].answer = Answer::ByStack(65), "unknown answer 0x40000041"),
        (|plan| plan.stacks[1].choice = Choice::Rule(4), "a call stack belongs to no rule"),
        (|plan| plan.callers[2].answer = Answer::ByStack(2), "a stack belongs to no caller"),
        (|plan| plan.stacks[0].frames[0].address = 0x1200, "a stack belongs to no caller"),
        (
            |plan| plan.stacks[1].frames = plan.stacks[0].frames.clone(),
            "two stacks have the same frames",
        ),
        (|plan| plan.stacks[1].frames.clear(), "a stack has 0 frames"),
        (|plan| plan.ranges[0].end = 0x1280, "a range is of no code or of no rule"),
        (|plan| plan.ranges.swap(0, 1), "its ranges are not sorted"),
    ];
    for (change, what) in changes {
        let mut plan = golden();
        change(&mut plan);
        let error = refusal(&plan.to_bytes());
        assert!(error.what().contains(what), "{what} is not in: {error}");
    }
}

/// A pseudo-random number generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Makes a random plan that a reader accepts.
fn any_plan(seed: u64) -> CompiledPlan {
    let mut numbers = Numbers(seed);
    let mut plan = CompiledPlan::default();
    for number in 0..numbers.below(4) {
        let name = vec![b'a' + number as u8; numbers.below(30) as usize];
        let build_id = vec![number as u8 + 1; numbers.below(33) as usize];
        let key = numbers.below(1 << 31);
        plan.modules.push(PlanModule { name, is_program: number == 1, build_id, key });
    }
    for number in 0..=numbers.below(8) {
        let allocator = LocalAllocator::ALL[numbers.below(4) as usize];
        let block_bytes = 1 + numbers.below(16_384) as u32;
        plan.rules.push(rule(
            &"r".repeat(number as usize),
            allocator,
            block_bytes,
            numbers.below(1 << 31),
        ));
    }
    let modules = plan.modules.len() as u64;
    if modules == 0 {
        return plan;
    }
    let rules = plan.rules.len() as u64;
    let choice = |numbers: &mut Numbers| match numbers.below(rules + 1) {
        0 => Choice::Malloc,
        rule => Choice::Rule(rule as u32 - 1),
    };
    let any_place = |numbers: &mut Numbers| {
        place(numbers.below(modules) as u32, numbers.below(50) << numbers.below(40))
    };
    let callers: BTreeSet<Place> =
        (0..numbers.below(30)).map(|_| any_place(&mut numbers)).collect();
    let mut stacks = BTreeMap::new();
    for caller in callers {
        let answer = match numbers.below(3) {
            0 => {
                let most = 2 + numbers.below(63);
                for _ in 0..numbers.below(5) {
                    let more = numbers.below(most);
                    let outer = (0..more).map(|_| any_place(&mut numbers));
                    let frames: Vec<Place> = [caller].into_iter().chain(outer).collect();
                    let choice = choice(&mut numbers);
                    stacks.insert(frames, choice);
                }
                Answer::ByStack(most as u32)
            }
            _ => Answer::Same(choice(&mut numbers)),
        };
        plan.callers.push(Caller { place: caller, answer });
    }
    plan.stacks = stacks.into_iter().map(|(frames, choice)| PlanStack { frames, choice }).collect();
    for _ in 0..numbers.below(20) {
        let Place { module, address: begin } = any_place(&mut numbers);
        let (end, rule) = (begin + 1 + numbers.below(1000), numbers.below(rules) as u32);
        plan.ranges.push(CodeRange { module, begin, end, rule });
    }
    plan.ranges.sort_by_key(CodeRange::order);
    plan
}

#[test]
fn a_written_plan_is_read_back_unchanged() {
    for seed in seeds(300) {
        let plan = any_plan(seed);
        let bytes = plan.to_bytes();
        assert_eq!(bytes.len() % 8, 0);
        assert_eq!(CompiledPlan::from_bytes(&bytes, "a.plan").unwrap(), plan, "seed {seed}");
        let mut numbers = Numbers(seed);
        refusal(&bytes[..numbers.below(bytes.len() as u64) as usize]);
        for _ in 0..20 {
            let mut changed = bytes.clone();
            changed[numbers.below(bytes.len() as u64) as usize] ^= 1 + numbers.below(255) as u8;
            refusal(&changed);
        }
    }
}

#[test]
fn a_file_that_is_not_a_plan_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let error = CompiledPlan::read(&folder.path().join("missing")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing);
    let error = CompiledPlan::read(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Foreign);
    assert_eq!(refusal(b"[[rule]]").kind(), ErrorKind::Foreign);
}

/// Functions of this program that are on the call stacks of the recordings. Their code must be
/// longer than 8 bytes, since return addresses are at offset 4.
macro_rules! functions {
    ($($name:ident $number:literal)*) => {$(
        #[inline(never)]
        fn $name(number: u64) -> u64 {
            std::hint::black_box(number * $number) + std::hint::black_box($number)
        }
    )*};
}
functions! { planned_new_node 3 planned_parse 5 planned_visit 7 planned_main 11 }

type Function = fn(u64) -> u64;

/// Returns the return address of a call in a function, as an address in memory.
fn inside(function: Function) -> u64 {
    function as usize as u64 + 4
}

/// Returns the same address as a link-time address.
fn in_file(function: Function) -> u64 {
    use object::read::{File, Object, ObjectSegment};
    let (start, _, offset) = mapping_of(inside(function));
    let bytes = std::fs::read(this_program()).unwrap();
    let file = File::parse(&bytes[..]).unwrap();
    let at = inside(function) - start + offset;
    let segment = file
        .segments()
        .find(|of| (of.file_range().0..of.file_range().0 + of.file_range().1).contains(&at));
    let segment = segment.expect("a segment");
    segment.address() + at - segment.file_range().0
}

/// Makes a plan from a recording of this program. `planned_parse` allocates 3 blocks of 40 bytes
/// and one of 5,000 by `planned_new_node`, `planned_visit` allocates 2 blocks of 100 bytes by
/// `planned_new_node`, and `planned_main` allocates a block.
fn plan_of(rules: &str, module_path: &std::path::Path) -> mallard_trace::Result<Made> {
    let folder = tempfile::tempdir().unwrap();
    let (start, end, offset) = mapping_of(inside(planned_main));
    let mut stream = StreamOf::new();
    let path = module_path.display();
    stream.text(op::PROCESS, 1000, 1, 42, 0, &format!("start {path}"));
    let id = build_id().unwrap_or("-".to_string());
    stream.text(op::MODULE, 1000, 1, start, 0, &format!("{end:x} {offset:x} {id} {path}"));
    stream.thread(1, 1);
    let [new_node, parse, visit, main] =
        [planned_new_node, planned_parse, planned_visit, planned_main]
            .map(|of| inside(of as Function));
    let mut events = Vec::new();
    let sizes = [(40, parse), (40, parse), (100, visit), (40, parse), (5000, parse), (100, visit)];
    for (number, (size, by)) in sizes.into_iter().enumerate() {
        let (t, address) = (1001 + 2 * number as u64, 0x1000 * (1 + number as u64));
        events.push(call(op::MALLOC, t, address, size, 0, &[main, by, new_node]));
        if number == 1 {
            events.push(call(op::FREE, t + 1, address, 0, 0, &[main]));
        }
    }
    events.push(call(op::MALLOC, 1100, 0x9000, 64, 0, &[main]));
    stream.piece(1, &events);
    let trace = import_in(folder.path(), &stream.finish(), &Options::default()).unwrap();
    make(&trace, &Rules::parse(rules, "a.toml")?)
}

fn plan_of_this_program(rules: &str) -> Made {
    plan_of(rules, &this_program()).unwrap()
}

fn at(function: Function) -> Place {
    place(0, in_file(function))
}

#[test]
fn a_plan_made_from_a_recording_has_its_modules_callers_and_call_stacks() {
    assert_eq!(planned_new_node(1) + planned_parse(1) + planned_visit(1) + planned_main(1), 52);
    let rules = "[[rule]]\nname = 'nodes'\nfunctions = '::planned_parse$'\nstrategy = 'pool'\n";
    let Made { plan, served, blocks, notes } = plan_of_this_program(rules);
    assert_eq!(plan.modules.len(), 1);
    assert!(plan.modules[0].is_program);
    assert_eq!(plan.modules[0].name, this_program().file_name().unwrap().as_encoded_bytes());
    assert_eq!(plan.modules[0].build_id.is_empty(), build_id().is_none());
    assert_eq!(plan.rules, [rule("nodes", LocalAllocator::Pool, 48, 40 + 40 + 5000)]);
    let mut callers = vec![
        Caller { place: at(planned_new_node), answer: Answer::ByStack(2) },
        Caller { place: at(planned_main), answer: Answer::Same(Choice::Malloc) },
    ];
    callers.sort_by_key(|caller| caller.place);
    assert_eq!(plan.callers, callers);
    let stack =
        |of: Function, choice| PlanStack { frames: vec![at(planned_new_node), at(of)], choice };
    let mut stacks =
        vec![stack(planned_parse, Choice::Rule(0)), stack(planned_visit, Choice::Malloc)];
    stacks.sort_by(|a, b| a.frames.cmp(&b.frames));
    assert_eq!(plan.stacks, stacks);
    assert!(plan.ranges.is_empty());
    assert_eq!((served[0].stacks, served[0].blocks, served[0].bytes), (1, 4, 5120));
    assert_eq!((blocks, notes), (7, vec![]));
}

#[test]
fn a_plan_for_a_region_contains_the_code_range_of_its_function() {
    let rules = "[[rule]]\nregion = 'planned_parse'\nstrategy = 'arena'\n";
    let error = plan_of(rules, &this_program()).err().unwrap();
    assert!(error.what().contains("no call stack has the function planned_parse"), "{error}");
    let name = format!("{}::planned_parse", module_path!());
    let rules = format!("[[rule]]\nregion = '{name}'\nstrategy = 'arena'\nblock_bytes = 64\n\n[[rule]]\nsite = '{}::planned_main'\nstrategy = 'multipool'\n", module_path!());
    let plan = plan_of_this_program(&rules).plan;
    assert_eq!(plan.rules[0], rule(&name, LocalAllocator::Arena, 64, 5080));
    assert_eq!((plan.rules[1].block_bytes, plan.rules[1].peak_bytes), (64, 64));
    assert!(!plan.ranges.is_empty());
    let begin = in_file(planned_parse) - 4;
    assert!(plan
        .ranges
        .iter()
        .all(|range| range.rule == 0 && range.begin <= begin && begin < range.end));
    let main = plan.callers.iter().find(|caller| caller.place == at(planned_main)).unwrap();
    assert_eq!(main.answer, Answer::Same(Choice::Rule(1)));
}

#[test]
fn a_rule_for_the_whole_program_covers_all_code_and_another_rule_can_keep_malloc() {
    let rules = "[[rule]]\nstrategy = 'multipool over arena'\n[[rule]]\nfunctions = 'planned_visit'\nstrategy = 'malloc'\n";
    let Made { plan, served, .. } = plan_of_this_program(rules);
    assert_eq!(plan.rules, [rule("everything", LocalAllocator::MultipoolOverArena, 5008, 5144)]);
    assert_eq!(served[0].blocks, 5);
    let main = plan.callers.iter().find(|caller| caller.place == at(planned_main)).unwrap();
    assert_eq!(main.answer, Answer::Same(Choice::Rule(0)));
    let visit = plan.stacks.iter().find(|stack| stack.frames[1] == at(planned_visit)).unwrap();
    assert_eq!(visit.choice, Choice::Malloc);
    assert!(plan
        .ranges
        .iter()
        .any(|range| (range.begin..range.end).contains(&in_file(planned_visit))));
}

#[test]
fn a_plan_for_a_recording_whose_program_file_is_missing_is_an_error_that_says_so() {
    let rules = "[[rule]]\nstrategy = 'arena'\n";
    let error = plan_of(rules, std::path::Path::new("/no/such/program")).err().unwrap();
    let what = "a.toml would serve no block: /no/such/program is missing, or is another build";
    assert_eq!(error.what(), what);
    assert!(error.help().starts_with("mallard record"), "{error}");
}

#[test]
fn rules_that_result_in_no_plan_are_rejected() {
    let refused = |rules: &str, what: &str| {
        let error = plan_of(rules, &this_program()).err().expect(what);
        assert!(error.what().contains(what), "{error}");
        assert_eq!(error.state(), "no plan was made");
    };
    refused("", "a.toml has no rule with a local allocator");
    refused("[[rule]]\nstrategy = 'malloc'", "a.toml has no rule with a local allocator");
    let many: String =
        (0..65).map(|n| format!("[[rule]]\nfunctions = 'main|{n}'\nstrategy = 'pool'\n")).collect();
    refused(&many, "a.toml has 65 rules with local allocators");
    refused(
        "[[rule]]\nfunctions = 'nobody'\nstrategy = 'pool'",
        "no call stack has a function that matches nobody",
    );
    refused(
        "[[rule]]\nregion = 'f'\nends = 'exact'\nstrategy = 'arena'",
        "no call stack has the function f",
    );
}
