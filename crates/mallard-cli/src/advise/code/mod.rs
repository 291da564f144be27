//! The example code of a card, which shows how the change looks in C++, C and Rust.
//!
//! Each example is a file of `tests/compile/advice` or `crates/mallard-alloc/tests/advice`, where
//! the tests compile it. An example has a sample function, whose name and place are replaced by
//! those of the card.

mod examples;
mod made;

#[cfg(test)]
mod tests;

pub use made::Made;

use examples::EXAMPLES;
use serde::Serialize;

/// The place in the program where a change is made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The short form of the function's name.
    pub function: String,
    /// The source file.
    pub file: Option<String>,
    /// The line in the source file.
    pub line: Option<u32>,
    /// Whether a library written in C allocates there. The program can only pass an allocator to
    /// the library as a parameter.
    pub in_c_library: bool,
    /// The language of the function.
    pub language: Language,
    /// The purpose of most blocks that the function allocates. `None` if the purpose is not known.
    pub made: Option<Made>,
}

/// The example code of a card. `None` for a language without an example.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Code {
    /// C++ with the standard's memory resources.
    pub cpp_pmr: Option<String>,
    /// C++ with Mallard.
    pub cpp_mallard: Option<String>,
    /// C with Mallard.
    pub c: Option<String>,
    /// Rust with the crate mallard-alloc.
    pub rust: Option<String>,
}

/// The language of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// C++. Also used if the language is unknown.
    #[default]
    Cpp,
    /// C.
    C,
    /// Rust.
    Rust,
}

impl Language {
    /// Returns the language of a function, from the extension of its source file. Without debug
    /// information, or in a header of C or C++, the names of the program's functions decide,
    /// because names of C functions have no parameters and no scopes. A place without a name counts
    /// as C++.
    pub fn of<'a>(file: Option<&str>, mut names: impl Iterator<Item = &'a str>) -> Language {
        let ending = file.and_then(|file| file.rsplit_once('.')).map(|(_, ending)| ending);
        match ending {
            Some("c") => Language::C,
            Some("rs") => Language::Rust,
            None | Some("h") if names.all(|name| !name.contains(['(', ':', '+'])) => Language::C,
            _ => Language::Cpp,
        }
    }
}

impl Place {
    /// Returns the function and its place, such as `render_document (render.cpp:40)`.
    pub fn shown(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{} ({file}:{line})", self.function),
            (Some(file), None) => format!("{} ({file})", self.function),
            (None, _) => self.function.clone(),
        }
    }

    /// Returns the last part of the function's name, if this part is a name in all three languages.
    /// Otherwise returns a fixed name.
    pub fn identifier(&self) -> String {
        let plain = self.function.replace("<…>", "");
        let plain = plain.split('[').next().unwrap_or_default(); // without [abi:cxx11]
        let last = plain.rsplit("::").next().unwrap_or_default();
        let is_name = last.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && last.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match is_name && !RESERVED.split(' ').any(|name| name == last) {
            true => last.to_string(),
            false => OTHER.to_string(),
        }
    }
}

/// The name of a function in an example if the name of the program's function cannot be used there.
const OTHER: &str = "this_part";

/// Names that a function in an example cannot have, because they are keywords or the examples use
/// them.
const RESERVED: &str =
    "main operator new delete malloc calloc realloc free memcpy memset do for if while switch \
    return class struct union enum template typename namespace using auto const static int \
    long void char fn let mut impl trait match type use mod crate self move structure object \
    objects memory";

/// The sample function of the examples, and its place.
const SAMPLE: &str = "render_document";
const SAMPLE_PLACE: &str = "render_document (render.cpp:40)";

/// Returns the example code of a rule for a place. Returns no code for a rule without a local
/// allocator.
pub fn of(rule: &str, place: &Place) -> Code {
    let name = rule.replace('-', "_");
    let of_made = place.made.map_or("", Made::word);
    // Strings and objects without a separate example get the example for a vector, if there is one.
    let others = if matches!(place.made, Some(Made::Text | Made::Object)) { "vector" } else { "" };
    let made = |ending| example(&name, &[of_made, others, ""], ending).map(|of| fill(of, place));
    let plain = name.trim_start_matches("wink_out_");
    let library = Some(()).filter(|()| place.in_c_library);
    let library = library.and_then(|()| example(plain, &["library"], ".c"));
    Code {
        cpp_pmr: made("_pmr.cpp"),
        cpp_mallard: made(".cpp"),
        c: library.or(example(&name, &[""], ".c")).map(|of| fill(of, place)),
        rust: made(".rs"),
    }
}

/// Finds an example of a rule. Tries `kinds` in order, and returns the first example whose file
/// exists.
fn example(rule: &str, kinds: &[&str], ending: &str) -> Option<&'static str> {
    let file = |kind: &&str| match *kind {
        "" => format!("{rule}{ending}"),
        kind => format!("{rule}_{kind}{ending}"),
    };
    let text = |file: String| EXAMPLES.iter().find(|(name, _)| *name == file).map(|(_, of)| *of);
    kinds.iter().map(file).find_map(text)
}

fn fill(text: &str, place: &Place) -> String {
    let (name, mut shown) = (place.identifier(), place.shown().replace(['\n', '\r'], " "));
    if name == OTHER {
        shown += &format!(": {OTHER} stands for the part that allocates");
    }
    let parts = text.split(SAMPLE_PLACE).map(|part| part.replace(SAMPLE, &name));
    parts.collect::<Vec<_>>().join(&shown)
}

impl Code {
    /// Returns the example that the terminal shows, with a title. JSON has the examples of all
    /// languages.
    pub fn for_language(&self, language: Language) -> Option<(&'static str, &str)> {
        let (name, text) = match language {
            Language::Cpp => ("C++ with Mallard", &self.cpp_mallard),
            Language::C => ("C with Mallard", &self.c),
            Language::Rust => ("Rust with mallard-alloc", &self.rust),
        };
        text.as_deref().map(|text| (name, text))
    }
}
