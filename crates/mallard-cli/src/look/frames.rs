//! Chooses the functions that identify a call stack.

use mallard_trace::names::is_wrapper;
use mallard_trace::trace::FrameInfo;

/// Leaves out functions that only pass an allocation on, unless all functions do.
pub fn without_wrappers<'a>(functions: &[FrameInfo<'a>]) -> Vec<FrameInfo<'a>> {
    let first = functions.iter().position(|frame| !is_wrapper(frame.function)).unwrap_or(0);
    functions[first..].to_vec()
}

/// The file and line of a call without folders: `parser.cpp:120`. The module if the file is
/// unknown.
pub fn place(frame: &FrameInfo) -> String {
    let file = frame.file.rsplit('/').next().unwrap_or_default();
    match (file, frame.line) {
        ("", _) => module(frame).to_string(),
        (file, Some(line)) => format!("{file}:{line}"),
        (file, None) => file.to_string(),
    }
}

/// The name of a module without the folders.
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
    fn functions_that_pass_the_allocation_on_are_left_out() {
        let all = [
            frame("operator new(unsigned long)"),
            frame("void std::allocator<int>::f()"),
            frame("main"),
        ];
        let shown = without_wrappers(&all);
        assert_eq!(shown.len(), 1);
        assert_eq!(place(&shown[0]), "a.cpp:3");
        assert_eq!(without_wrappers(&all[..1]).len(), 1);
    }
}
