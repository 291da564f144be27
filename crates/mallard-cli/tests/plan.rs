//! Tests `mallard plan`, `mallard run --plan` and `mallard try --plan`.
//!
//! Some tests need a C compiler, the recorder or the library of plans (MALLARD_RECORDER and MALLARD_PLAN_LIBRARY
//! have their paths). `./x test` runs them.

use crate::support::{orders, Folder, Ran, MALLARD};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A program with a function whose blocks live as long as its call, a function that makes all
/// nodes, and other blocks.
const TREES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { struct node* left; struct node* right; long value; };
__attribute__((noinline)) static struct node* make_node(long value) {
    struct node* n = malloc(sizeof *n);
    n->left = n->right = NULL;
    n->value = value;
    return n;
}
__attribute__((noinline)) static struct node* make_tree(int depth) {
    struct node* n = make_node(depth);
    if (depth > 0) { n->left = make_tree(depth - 1); n->right = make_tree(depth - 1); }
    return n;
}
__attribute__((noinline)) static long sum_and_free(struct node* n) {
    if (n == NULL) return 0;
    long sum = n->value + sum_and_free(n->left) + sum_and_free(n->right);
    free(n);
    return sum;
}
__attribute__((noinline)) long visit(int depth) { return sum_and_free(make_tree(depth)); }
int main(int argc, char** argv) {
    (void)argv;
    struct node* kept = make_node(1);
    char* texts[100];
    for (int i = 0; i < 100; ++i) texts[i] = malloc(100 * (i + 1));
    long sum = 0;
    for (int i = 0; i < 20; ++i) sum += visit(7 + argc);
    for (int i = 0; i < 100; ++i) free(texts[i]);
    printf("%ld\n", sum + kept->value);
    free(kept);
    return 3;
}
"#;
/// The number of calls of `make_node` in `visit`, for 20 trees of 511 nodes.
const NODES: u64 = 20 * 511;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/plan_format.golden")
}

/// Makes a directory with the golden plan `a.plan`, and a library that reports as
/// libmallard-plan.so does.
fn folder_with_library() -> Folder {
    let folder = Folder::new();
    fs::copy(golden(), folder.path("a.plan")).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/plan.c");
    folder.compile_file("libplan.so", &file, &["-shared", "-fPIC", "-D_GNU_SOURCE"]);
    folder
}

/// Runs mallard with the library in the directory.
fn mallard(folder: &Folder, arguments: &[&str]) -> Ran {
    let library = folder.path("libplan.so");
    let mut command = folder.command(MALLARD);
    command.args(arguments).env("MALLARD_PLAN_LIBRARY", library).stdin(Stdio::null());
    Ran(command.output().unwrap())
}

/// Makes a directory with a program, its recording `trees` and the rules `a.toml`.
fn recorded(rules: &str) -> Folder {
    let folder = Folder::new();
    folder.compile("trees", TREES, &["-O1"]);
    let ran = folder.mallard(&["record", "-o", "trees", "--", "./trees"]);
    assert_eq!(ran.status(), 3, "{}", ran.errors());
    fs::write(folder.path("a.toml"), rules).unwrap();
    folder
}

/// Makes a plan, and returns the JSON object of the command.
fn made(folder: &Folder) -> Value {
    let ran = folder.mallard(&["plan", "make", "trees", "a.toml", "--force", "--json"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    serde_json::from_str(&ran.out()).unwrap()
}

const RULES: &str = r#"
[[rule]]
name = "trees"
region = "visit"
strategy = "arena"

[[rule]]
functions = "^make_node$"
strategy = "malloc"
"#;

#[test]
fn rules_that_result_in_no_plan_are_rejected() {
    let folder = orders();
    let made = |rules: &str| {
        fs::write(folder.path("a.toml"), rules).unwrap();
        folder.mallard(&["plan", "make", "orders", "a.toml"])
    };
    made("rule = 3").refuses(3, "a.toml: `rule` has a value of another type");
    made("[[rule]]\nregion = 'no_such'\nstrategy = 'arena'")
        .refuses(3, "no call stack has the function no_such");
    made("[[rule]]\nfunctions = '('\nstrategy = 'arena'")
        .refuses(3, "'(' is not a valid regular expression");
    made("[[rule]]\nstrategy = 'arena'").refuses(3, "a.toml would serve no block");
    made("").refuses(3, "a.toml has no rule with a local allocator");
    folder
        .mallard(&["plan", "make", "orders", "no.toml"])
        .refuses(3, "cannot read the plan no.toml");
    folder.mallard(&["plan", "make", "nothing", "a.toml"]).refuses(3, "nothing");
    assert!(!folder.path("a.plan").exists());
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_plan_is_not_overwritten_without_force() {
    let folder = recorded("[[rule]]\nstrategy = 'arena'");
    let made = |options: &[&str]| {
        folder.mallard(&[&["plan", "make", "trees", "a.toml"], options].concat())
    };
    let ran = made(&[]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    assert!(ran.out().starts_with("a.plan: "), "{}", ran.out());
    made(&[]).refuses(3, "a.plan exists already");
    assert_eq!(made(&["--force"]).status(), 0);
    assert_eq!(made(&["-o", "b.plan"]).status(), 0);
    assert_eq!(fs::read(folder.path("a.plan")).unwrap(), fs::read(folder.path("b.plan")).unwrap());
    fs::rename(folder.path("trees"), folder.path("moved")).unwrap();
    let out = made(&["--force"]).out();
    assert!(out.contains("trees is not the recorded file"), "{out}");
}

#[test]
fn a_plan_is_shown_without_its_modules() {
    let folder = Folder::new();
    fs::copy(golden(), folder.path("a.plan")).unwrap();
    let ran = folder.mallard(&["plan", "show", "a.plan"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let text = ran.out();
    for part in [
        "a.plan: 4 rules of orders",
        "multipool over arena",
        "orders at 0x1234 from orders at 0x1300 from libparse.so.1 at 0xa10",
        "libparse.so.1  key 123456789abcdef0: not found",
        "next: mallard plan check a.plan -- PROG ARGS",
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    let shown: Value =
        serde_json::from_str(&folder.mallard(&["plan", "show", "a.plan", "--json"]).out()).unwrap();
    assert_eq!(shown["rules"][1]["allocator"], "pool");
    assert_eq!(shown["rules"][0]["call_stacks"][0][2]["address"], 0xa10);
    assert_eq!(shown["rules"][3]["ranges"][0]["end"], 0x1440);
    assert_eq!(shown["modules"][0]["is_program"], true);
}

#[test]
fn a_corrupt_plan_is_rejected_before_a_program_starts() {
    let folder = Folder::new();
    let mut bytes = fs::read(golden()).unwrap();
    bytes[100] ^= 1;
    fs::write(folder.path("a.plan"), bytes).unwrap();
    let commands: [&[&str]; 4] = [
        &["plan", "show", "a.plan"],
        &["plan", "check", "a.plan", "--", "touch", "started"],
        &["run", "--plan", "a.plan", "--", "touch", "started"],
        &["try", "--plan", "a.plan", "--", "touch", "started"],
    ];
    for command in commands {
        folder.mallard(command).refuses(3, "a.plan is corrupt: its checksum is invalid");
    }
    folder
        .mallard(&["run", "--plan", "b.plan", "--", "touch", "started"])
        .refuses(3, "cannot read the plan b.plan");
    assert!(!folder.path("started").exists());
}

#[test]
fn a_missing_plan_library_is_named_in_the_error() {
    let folder = Folder::new();
    fs::copy(golden(), folder.path("a.plan")).unwrap();
    for command in [
        &["plan", "check", "a.plan"][..],
        &["run", "--plan", "a.plan"],
        &["try", "--plan", "a.plan"],
    ] {
        let ran = mallard(&folder, &[command, &["--", "true"]].concat());
        ran.refuses(125, "which MALLARD_PLAN_LIBRARY names, cannot be used");
    }
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn a_program_runs_with_the_plan_library_preloaded_first() {
    let folder = folder_with_library();
    let script = "echo $LD_PRELOAD; echo $MALLARD_PLAN; echo ${MALLARD_PLAN_CONTROL-none}; exit 5";
    let ran = mallard(&folder, &["run", "--plan", "a.plan", "--", "sh", "-c", script]);
    assert_eq!(ran.status(), 5, "{}", ran.errors());
    let [library, plan] =
        ["libplan.so", "a.plan"].map(|name| folder.path(name).display().to_string());
    assert_eq!(ran.out(), format!("{library}\n{plan}\nnone\n"));
    let mine = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/malloc.c");
    let mine = folder.compile_file("libmine.so", &mine, &["-shared", "-fPIC", "-D_GNU_SOURCE"]);
    let with =
        ["run", "--plan", "a.plan", "--allocator", "mine=./libmine.so", "--", "sh", "-c", script];
    assert_eq!(mallard(&folder, &with).out(), format!("{library}:{mine}\n{plan}\nnone\n"));
    assert_eq!(mallard(&folder, &["run", "--", "true"]).status(), 2);
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn the_blocks_that_a_plan_would_serve_are_reported() {
    let folder = folder_with_library();
    folder.compile(
        "program",
        "#include <stdio.h>\nint main(void) { puts(\"out\"); return 4; }",
        &[],
    );
    let ran = mallard(&folder, &["plan", "check", "a.plan", "--", "./program", "a b"]);
    assert_eq!((ran.status(), ran.out().as_str()), (4, "out\n"));
    let text = ran.errors();
    for part in [
        "the plan would serve 1,500 of 2,000 blocks",
        "75 %",
        "  20 blocks have call stacks that the recording does not have",
        "  liba.so is missing, or is another build than the recorded one",
        "next: mallard try --plan a.plan -- ./program 'a b'",
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    let ran = mallard(&folder, &["plan", "check", "--serve", "--json", "a.plan", "--", "true"]);
    let result: Value = serde_json::from_str(&ran.errors()).unwrap();
    assert_eq!(result["processes"][0]["control"], false);
    assert_eq!(result["processes"][0]["rules"][0]["large"], 3);
    assert_eq!(result["status"], 0);
    let silent = mallard(&folder, &["plan", "check", "a.plan", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(silent.status(), 128 + 9);
    assert!(
        silent.errors().contains("the library that applies the plan has reported nothing"),
        "{}",
        silent.errors()
    );
}

#[test]
#[ignore = "needs a C compiler; ./x test runs it"]
fn a_plan_is_compared_with_mallocs_and_with_its_control() {
    let folder = folder_with_library();
    let source = "#include <stdio.h>\nint main(void) { for (volatile long i = 0; i < 3000000; ++i); puts(\"x\"); return 0; }";
    folder.compile("program", source, &["-O1"]);
    let options = [
        "try",
        "--json",
        "--budget",
        "6s",
        "-a",
        "glibc:arenas=1",
        "--plan",
        "a.plan",
        "--",
        "./program",
    ];
    let mut command = folder.command(MALLARD);
    command.env("MALLARD_PLAN_LIBRARY", folder.path("libplan.so")).env("SLOW", "1");
    let ran = Ran(command.args(options).stdin(Stdio::null()).output().unwrap());
    let result: Value =
        serde_json::from_str(&ran.out()).unwrap_or_else(|_| panic!("{}", ran.errors()));
    let names: Vec<&str> = result["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["glibc:arenas=1", "plan", "plan control"]);
    let plan = &result["plan"];
    assert_eq!(plan["file"], folder.path("a.plan").display().to_string());
    assert!(plan["saving"]["saving"].as_f64().unwrap() < -1.0, "{plan}");
    assert!(plan["deciding"]["saving"].as_f64().unwrap().abs() < 0.5, "{plan}");
    assert_eq!(result["candidates"][2]["environment"]["MALLARD_PLAN_CONTROL"], "1");
    assert_eq!(result["candidates"][1]["environment"]["MALLARD_PLAN_CONTROL"], Value::Null);
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_plan_made_from_a_recording_names_the_blocks_that_it_serves() {
    let folder = recorded(RULES);
    let result = made(&folder);
    assert_eq!(
        (result["rules"].as_array().unwrap().len(), &result["file"]),
        (1, &Value::from("a.plan"))
    );
    // The rule with `functions` comes before the region, so malloc serves all nodes.
    assert_eq!(result["rules"][0]["blocks"], 0);
    fs::write(folder.path("a.toml"), RULES.split("\n\n").next().unwrap()).unwrap();
    let result = made(&folder);
    let rule = &result["rules"][0];
    assert_eq!(
        (&rule["blocks"], &rule["block_bytes"]),
        (&Value::from(NODES), &Value::from(32)),
        "{result}"
    );
    assert_eq!(rule["peak_bytes"], 511 * 24);
    let shown = folder.mallard(&["plan", "show", "a.plan"]).out();
    for part in
        ["a.plan: 1 rule of trees", "make_node (trees.c:6) from make_tree (trees.c:", "build-id"]
    {
        assert!(shown.contains(part), "{part} is not in: {shown}");
    }
    let again = folder.mallard(&["plan", "show", "a.plan", "--json"]).out();
    let shown: Value = serde_json::from_str(&again).unwrap();
    assert!(!shown["rules"][0]["ranges"].as_array().unwrap().is_empty(), "{shown}");
    // The same rules can be used as the plan of a replay.
    let ran = folder.mallard(&["replay", "trees", "--plan", "a.toml", "--write", "ops"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
}

#[test]
#[ignore = "needs the recorder and the library of plans; ./x test has them"]
fn functions_of_a_stripped_program_are_named_by_module_and_offset() {
    let folder = Folder::new();
    folder.compile("trees", TREES, &["-O1", "-s"]);
    assert_eq!(folder.mallard(&["record", "-o", "trees", "--", "./trees"]).status(), 3);
    let sites = folder.mallard(&["sites", "trees", "--json"]).out();
    let sites = sites.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let names = |site: Value| -> Vec<String> {
        let functions = site["functions"].as_array().unwrap().iter();
        functions.map(|of| of["function"].as_str().unwrap().to_string()).collect()
    };
    let nodes: Vec<_> = sites.filter(|site| site["size_max"] == 24).map(names).collect();
    let in_main = nodes[0].iter().position(|name| name == "__libc_start_call_main").unwrap() - 1;
    let visit = &nodes[0][in_main];
    let site = &nodes[0][0];
    for (scope, name, blocks) in [("site", site, NODES + 1), ("region", visit, NODES)] {
        assert!(name.starts_with("trees+0x"), "{name}");
        let rules = format!("[[rule]]\n{scope} = '{name}'\nstrategy = 'multipool'\n");
        fs::write(folder.path("a.toml"), rules).unwrap();
        assert_eq!(made(&folder)["rules"][0]["blocks"], blocks, "{scope}");
        let ran =
            folder.mallard(&["plan", "check", "--json", "--serve", "a.plan", "--", "./trees"]);
        let result: Value = serde_json::from_str(ran.errors().lines().last().unwrap()).unwrap();
        assert_eq!(result["processes"][0]["rules"][0]["blocks"], blocks, "{scope}: {result}");
    }
}

#[test]
#[ignore = "needs the recorder; ./x test has it"]
fn a_plan_for_a_region_without_code_is_rejected() {
    let folder = recorded(RULES.split("\n\n").next().unwrap());
    let stripped = folder.command("strip").arg("trees").status().unwrap();
    assert!(stripped.success());
    let ran = folder.mallard(&["plan", "make", "trees", "a.toml"]);
    ran.refuses(3, "a.toml: rule 1: no code of visit was found");
    // The call stacks in the recording keep their old names.
    fs::write(folder.path("a.toml"), "[[rule]]\nfunctions = '^visit$'\nstrategy = 'arena'\n")
        .unwrap();
    assert_eq!(made(&folder)["rules"][0]["blocks"], NODES);
}

#[test]
#[ignore = "needs the recorder and the library of plans; ./x test has them"]
fn a_plan_serves_the_blocks_that_were_recorded() {
    let folder =
        recorded(&RULES.split("\n\n").next().unwrap().replace("arena", "multipool over arena"));
    made(&folder);
    let served = |options: &[&str], program: &[&str]| {
        let ran = folder
            .mallard(&[&["plan", "check", "--json"], options, &["a.plan", "--"], program].concat());
        assert_eq!(ran.status(), 3, "{}", ran.errors());
        let result: Value = serde_json::from_str(ran.errors().lines().last().unwrap()).unwrap();
        (ran.out(), result["processes"][0].clone())
    };
    let bare = folder.command("./trees").output().unwrap();
    for options in [&[][..], &["--serve"]] {
        let (out, process) = served(options, &["./trees"]);
        assert_eq!(out.as_bytes(), bare.stdout);
        assert_eq!(process["rules"][0]["blocks"], NODES, "{process}");
        assert_eq!(process["unknown_blocks"], 0, "{process}");
    }
    // Deeper trees have call stacks that are not in the recording, so whether a block belongs to
    // the region depends on the region's code.
    let (_, process) = served(&[], &["./trees", "deeper"]);
    assert_eq!(process["rules"][0]["blocks"].as_u64(), Some(20 * 1023), "{process}");
    let run = folder.mallard(&["run", "--plan", "a.plan", "--", "./trees"]);
    assert_eq!((run.status(), run.out().as_bytes()), (3, &bare.stdout[..]));
}

#[test]
#[ignore = "needs the recorder and the library of plans; ./x test has them"]
fn a_plan_for_another_build_serves_nothing_and_reports_it() {
    let folder = recorded(RULES.split("\n\n").next().unwrap());
    made(&folder);
    folder.compile("trees", &TREES.replace("return 3", "return 0"), &["-O1"]);
    let ran = folder.mallard(&["plan", "check", "a.plan", "--", "./trees"]);
    assert_eq!(ran.status(), 0, "{}", ran.errors());
    let text = ran.errors();
    assert!(text.contains("trees is missing, or is another build than the recorded one"), "{text}");
    assert!(text.contains("next: mallard record and mallard plan make again"), "{text}");
    let ran = folder.mallard(&["try", "--plan", "a.plan", "--", "./trees"]);
    ran.refuses(3, "trees is not the build for which the plan a.plan was made");
    let ran = folder.mallard(&["run", "--strict", "--plan", "a.plan", "--", "./trees"]);
    assert_eq!((ran.status(), ran.out().as_str()), (125, ""), "{}", ran.errors());
}
