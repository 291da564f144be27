//! Tests which example belongs to a place, and that the tests compile each example.

use super::{fill, of, Language, Made, Place, EXAMPLES, SAMPLE};
use crate::advise::rules::RULES;
use std::collections::BTreeSet;
use std::path::Path;

fn place(function: &str, file: &str) -> Place {
    let (function, file) = (function.to_string(), Some(file.to_string()));
    Place { function, file, line: Some(40), ..Place::default() }
}

#[test]
fn lines_that_cannot_be_wrapped_fit_80_columns() {
    for (name, text) in EXAMPLES {
        // The advice must not wrap a string or a directive, and indents code by 4 columns.
        let is_whole = |line: &&str| line.contains('"') || line.starts_with('#');
        let wide: Vec<_> = text.lines().filter(is_whole).filter(|line| line.len() > 76).collect();
        assert_eq!(wide, [] as [&str; 0], "{name}");
    }
}

#[test]
fn the_proposed_code_of_each_rule_is_in_a_file_that_is_compiled() {
    let sample = place(SAMPLE, "render.cpp");
    let made = [Made::Vector, Made::Map, Made::HashMap, Made::Text, Made::Object].map(Some);
    let mut shown = BTreeSet::new();
    for (rule, made) in
        RULES.iter().flat_map(|rule| made.map(|of| (rule, of)).into_iter().chain([(rule, None)]))
    {
        for in_c_library in [false, true] {
            let code = of(rule.id, &Place { made, in_c_library, ..sample.clone() });
            shown.extend([code.cpp_pmr, code.cpp_mallard, code.c, code.rust].into_iter().flatten());
        }
    }
    for (name, text) in EXAMPLES {
        assert_eq!(fill(text, &sample), *text, "{name} has another place than the sample");
        assert!(shown.contains(*text), "{name} belongs to no rule");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = ["tests/compile/advice", "crates/mallard-alloc/tests/advice"].map(|folder| {
        std::fs::read_dir(root.join(folder)).unwrap().map(|file| file.unwrap().file_name())
    });
    let files: BTreeSet<String> =
        files.into_iter().flatten().map(|name| name.into_string().unwrap()).collect();
    assert_eq!(files, EXAMPLES.iter().map(|(name, _)| name.to_string()).collect());
}

#[test]
fn rules_with_a_strategy_propose_code_in_each_language() {
    for rule in &RULES {
        let code = of(rule.id, &place("f", "f.cpp"));
        let texts = [&code.cpp_pmr, &code.cpp_mallard, &code.c, &code.rust];
        assert!(texts.iter().all(|text| text.is_some() == (rule.strategy > 0)), "{}", rule.id);
        let texts = texts.into_iter().flatten();
        for text in texts {
            assert!(
                !text.contains(SAMPLE) && text.ends_with("}\n") | text.ends_with("};\n"),
                "{text}"
            );
        }
    }
}

#[test]
fn proposed_code_uses_the_name_of_the_recorded_function() {
    let code = of("arena", &place("app::parser<…>::read_line", "parser.cpp"));
    let text = code.cpp_pmr.unwrap();
    assert!(text.starts_with("// In app::parser<…>::read_line (parser.cpp:40)\n"), "{text}");
    assert!(text.contains("std::size_t read_line()\n"), "{text}");
}

#[test]
fn an_invalid_function_name_is_replaced_in_the_proposed_code() {
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
fn the_proposed_code_explains_each_placeholder_name() {
    let code = of("arena", &place("main", "a.c")).c.unwrap();
    let first = "/* In main (a.c:40): this_part stands for the part that allocates */\n";
    assert!(code.starts_with(first), "{code}");
}

#[test]
fn the_language_of_code_is_derived_from_the_file_name_or_else_from_function_names() {
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
fn code_is_proposed_in_the_language_of_the_function() {
    let code = of("arena", &place("f", "a.c"));
    assert_eq!(code.for_language(Language::C).unwrap().0, "C with Mallard");
    assert_eq!(of("leak", &place("f", "a.c")).for_language(Language::C), None);
}

#[test]
fn a_line_break_in_a_name_does_not_end_the_comment() {
    let code = of("arena", &place("f", "a\nb.cpp"));
    assert!(code.cpp_pmr.unwrap().starts_with("// In f (a b.cpp:40)\n"));
}

#[test]
fn a_function_whose_name_contains_the_name_in_the_template_keeps_its_name() {
    let code = of("arena", &place("my_render_document", "a.c")).c.unwrap();
    assert!(code.starts_with("/* In my_render_document (a.c:40) */\n"), "{code}");
    assert!(code.contains("\nsize_t my_render_document(mallard_arena*"), "{code}");
}
