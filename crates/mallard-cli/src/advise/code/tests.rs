//! Compares the code of a sample card with the files in the folders that compile it.
//!
//! After a change of the texts, `MALLARD_WRITE=1 cargo test -p mallard-cli advise::code` writes the
//! files.

use super::{of, Language, Library, Made, Place};
use crate::advise::rules::RULES;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn place(function: &str, file: &str) -> Place {
    let (function, file) = (function.to_string(), Some(file.to_string()));
    Place { function, file, line: Some(40), ..Place::default() }
}

const MADE: [(&str, Made); 4] = [
    ("vector", Made::Vector),
    ("map", Made::Map),
    ("hash_map", Made::HashMap),
    ("objects", Made::Object),
];

/// A text, if it differs from all that are known.
fn new(text: Option<String>, files: &BTreeMap<PathBuf, String>) -> Option<String> {
    text.filter(|text| files.values().all(|known| known != text))
}

/// The files of the sample cards: their paths and texts.
fn files() -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cpp = root.join("tests/compile/advice");
    let rust = root.join("crates/mallard-alloc/tests/advice");
    let mut files = BTreeMap::new();
    for rule in &RULES {
        let name = rule.id.replace('-', "_");
        let document = place("render_document", "render.cpp");
        let code = of(rule.id, &document);
        let of_cmark = of(rule.id, &Place { library: Library::Cmark, ..document.clone() });
        let of_lua = of(rule.id, &Place { library: Library::Lua, ..document.clone() });
        let c = [("", code.c), ("_cmark", of_cmark.c), ("_lua", of_lua.c)];
        for (what, text) in c {
            // The texts for a library are the same for all rules.
            let is_first = what.is_empty() || rule.id == RULES[0].id;
            let text = text.filter(|_| is_first);
            files.extend(text.map(|text| (cpp.join(format!("{name}{what}.c")), text)));
        }
        for (what, text) in [("_pmr", code.cpp_pmr), ("", code.cpp_mallard)] {
            files.extend(text.map(|text| (cpp.join(format!("{name}{what}.cpp")), text)));
        }
        files.extend(code.rust.map(|text| (rust.join(format!("{name}.rs")), text)));
        for (what, made) in MADE {
            let of = of(rule.id, &Place { made: Some(made), ..document.clone() });
            for (kind, text) in [("_pmr", of.cpp_pmr), ("", of.cpp_mallard)] {
                let path = cpp.join(format!("{name}_{what}{kind}.cpp"));
                files.extend(new(text, &files).map(|text| (path, text)));
            }
            let path = rust.join(format!("{name}_{what}.rs"));
            files.extend(new(of.rust, &files).map(|text| (path, text)));
        }
    }
    files
}

#[test]
fn the_code_of_each_rule_is_in_a_file_that_is_compiled() {
    let files = files();
    assert_eq!(files.len(), 6 * 4 + 2 + 30);
    for (path, text) in &files {
        if std::env::var_os("MALLARD_WRITE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let compiled = std::fs::read_to_string(path).unwrap_or_default();
        let help = "MALLARD_WRITE=1 cargo test -p mallard-cli advise::code";
        assert_eq!(&compiled, text, "{} is old: {help}", path.display());
    }
    for path in files.keys() {
        for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
            let file = file.unwrap().path();
            assert!(files.contains_key(&file), "{} belongs to no rule", file.display());
        }
    }
}

#[test]
fn rules_with_a_strategy_have_code_in_each_language() {
    for rule in &RULES {
        let code = of(rule.id, &place("f", "f.cpp"));
        let texts = [&code.cpp_pmr, &code.cpp_mallard, &code.c, &code.rust];
        assert!(texts.iter().all(|text| text.is_some() == (rule.strategy > 0)), "{}", rule.id);
        let texts = texts.into_iter().flatten();
        for text in texts {
            assert!(
                !text.contains('@') && text.ends_with("}\n") | text.ends_with("};\n"),
                "{text}"
            );
        }
    }
}

#[test]
fn the_code_has_the_name_of_the_function() {
    let code = of("arena", &place("app::parser<…>::read_line", "parser.cpp"));
    let text = code.cpp_pmr.unwrap();
    assert!(text.starts_with("// In app::parser<…>::read_line (parser.cpp:40)\n"), "{text}");
    assert!(text.contains("std::size_t read_line()\n"), "{text}");
}

#[test]
fn a_name_that_a_function_cannot_have_is_replaced() {
    let names = [
        ("render_document", "render_document"),
        ("app::parser<…>::read", "read"),
        ("line[abi:cxx11]", "line"),
        ("main", "this_part"),
        ("app::operator<<", "this_part"),
        ("app::run::{lambda}", "this_part"),
        ("std::vector<…>::~vector", "this_part"),
        ("", "this_part"),
        ("0x1234", "this_part"),
        ("new", "this_part"),
    ];
    for (function, expected) in names {
        assert_eq!(place(function, "").identifier(), expected, "{function}");
    }
}

#[test]
fn the_code_says_what_a_name_stands_for_that_the_function_does_not_have() {
    let code = of("arena", &place("main", "a.c")).c.unwrap();
    let first = "/* In main (a.c:40): this_part stands for the part that allocates */\n";
    assert!(code.starts_with(first), "{code}");
}

#[test]
fn the_language_is_that_of_the_file_or_else_of_the_names() {
    let language = |file: &str| Language::of(Some(file), ["f(int)"].into_iter());
    assert_eq!(language("src/a.c"), Language::C);
    assert_eq!(language("src/a.rs"), Language::Rust);
    assert_eq!(language("src/a.cpp"), Language::Cpp);
    let without = |names: &[&str]| Language::of(None, names.iter().copied());
    assert_eq!(without(&["main", "Perl_sv_grow"]), Language::C);
    assert_eq!(without(&["main", "render(int)"]), Language::Cpp);
    assert_eq!(without(&["main", "app::render"]), Language::Cpp);
    assert_eq!(without(&["main", "app+0x123"]), Language::Cpp);
}

#[test]
fn a_place_has_code_in_its_language() {
    let code = of("arena", &place("f", "a.c"));
    assert_eq!(code.for_language(Language::C).unwrap().0, "C with Mallard");
    assert_eq!(of("leak", &place("f", "a.c")).for_language(Language::C), None);
}

#[test]
fn a_line_break_in_a_name_does_not_leave_the_comment() {
    let code = of("arena", &place("f", "a\nb.cpp"));
    assert!(code.cpp_pmr.unwrap().starts_with("// In f (a b.cpp:40)\n"));
}

#[test]
fn a_library_is_recognized_by_the_names_of_its_functions() {
    for name in ["lua_newstate", "luaL_newstate", "luaM_malloc_"] {
        assert_eq!(Library::of(name), Library::Lua, "{name}");
    }
    assert_eq!(Library::of("cmark_node_new"), Library::Cmark);
    for name in ["luau", "lua", "lua::state", "render", "my_cmark_"] {
        assert_eq!(Library::of(name), Library::None, "{name}");
    }
}
