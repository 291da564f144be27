//! Chooses the functions that identify a call stack.

use mallard_measure::output::width::{shortened, width};
use mallard_trace::names::{is_wrapper, short};
use mallard_trace::trace::FrameInfo;
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// A name is not shortened below this width, even if the place next to it is very long.
const NAME_MIN: usize = 16;

/// Matches a function without a name, which is shown by its offset in a module: `libx.so+0x123`.
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"([^\s'(]+)\+(0x[0-9a-f]+)\b").expect("the pattern is right"));

/// Leaves out the innermost functions that are allocation wrappers, unless all functions are.
pub fn without_wrappers<'a>(functions: &[FrameInfo<'a>]) -> Vec<FrameInfo<'a>> {
    let first = functions.iter().position(|frame| !is_wrapper(frame.function)).unwrap_or(0);
    functions[first..].to_vec()
}

/// The number of spaces before a function in a list.
pub const LISTED: usize = 8;

/// Formats the function and the place of a call, for a list. A function without a name is described
/// in words. A long name is shortened, so that the line fits after `before` characters.
pub fn line(frame: &FrameInfo, before: usize) -> String {
    let name = short(frame.function);
    let shown = in_words(&name);
    if shown != name {
        return shown;
    }
    let place = frame.place();
    let used = before + place.chars().count() + 2;
    let name = shortened(&name, width().saturating_sub(used).max(NAME_MIN));
    format!("{name}  {place}").trim_end().to_string()
}

/// Describes functions without a name in words. For example, `libx.so+0x123` becomes `a function of
/// libx.so without symbols (+0x123)`.
pub fn in_words(text: &str) -> String {
    let words = |of: &Captures| format!("a function of {} without symbols (+{})", &of[1], &of[2]);
    PLACE.replace_all(text, words).into_owned()
}

/// Returns the file name of a module, without directories.
pub fn module<'a>(frame: &FrameInfo<'a>) -> &'a str {
    frame.module.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str) -> FrameInfo<'_> {
        FrameInfo {
            function,
            file: "src/a.cpp",
            line: Some(3),
            module: "/bin/a",
            is_inlined: false,
        }
    }

    #[test]
    fn a_function_without_a_name_is_described_in_words() {
        let words = "a function of libx.so.1 without symbols (+0x1f3)";
        assert_eq!(in_words("libx.so.1+0x1f3"), words);
        assert_eq!(
            in_words("AS4 in a+0x1, b+0x2: (c+0x3)"),
            "AS4 in a function of a without symbols (+0x1), a function of b without symbols (+0x2): \
             (a function of c without symbols (+0x3))"
        );
        assert_eq!(in_words(words), words);
        for name in ["operator+", "f(int)", "a +0x1", "0x123", "x+0xyz"] {
            assert_eq!(in_words(name), name);
        }
        assert_eq!(line(&FrameInfo { file: "", ..frame("libx.so.1+0x1f3") }, 0), words);
        assert_eq!(line(&frame("f(int)"), 0), "f  a.cpp:3");
    }

    #[test]
    fn allocation_wrappers_are_omitted_from_call_stacks() {
        let all = [
            frame("operator new(unsigned long)"),
            frame("void std::allocator<int>::f()"),
            frame("main"),
        ];
        let shown = without_wrappers(&all);
        assert_eq!(shown.len(), 1);
        assert_eq!(shown[0].place(), "a.cpp:3");
        assert_eq!(without_wrappers(&all[..1]).len(), 1);
    }
}
