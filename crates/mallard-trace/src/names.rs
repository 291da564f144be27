//! Recognises the names of allocation wrappers and of library functions, and shortens names.

/// Functions that only pass an allocation on, such as `xmalloc`. A trace contains them, but output
/// for people leaves them out.
const WRAPPERS: [&str; 22] = [
    "operator new",
    "operator delete",
    "std::allocator",
    "std::__new_allocator",
    "__gnu_cxx::new_allocator",
    "std::allocator_traits",
    "std::_Vector_base",
    "std::__detail::_Hashtable_alloc",
    "std::pmr::",
    "std::__cxx11::basic_string",
    "alloc::",
    "<alloc::",
    "core::alloc",
    "__rust_alloc",
    "__rdl_alloc",
    "__rust_realloc",
    "hashbrown::raw",
    "xmalloc",
    "xrealloc",
    "xcalloc",
    "xstrdup",
    "g_malloc",
];

/// The names of two placeholder frames in a call stack. The first stands for unknown outer frames,
/// the second for frames that the recorder left out of a deep call stack.
pub(crate) const MISSING: [&str; 2] = ["[outer frames unknown]", "[frames left out]"];

/// Prefixes of functions in standard libraries, which users cannot change.
const STANDARD: [&str; 9] = [
    "std::",
    "__gnu_cxx::",
    "core::",
    "<core::",
    "<std::",
    "hashbrown::",
    "<hashbrown::",
    "__rust_",
    "__cxxabiv1::",
];

/// Functions that start a program or a thread. They call, directly or indirectly, all other
/// functions of the program or thread.
const STARTS: [&str; 11] = [
    "main",
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "__libc_csu_init",
    "_dl_start_user",
    "call_init",
    "start_thread",
    "clone",
    "__clone",
    "clone3",
];

/// Prefixes of the file names of system libraries, which users cannot change.
const SYSTEM_LIBRARIES: [&str; 10] = [
    "libc.so",
    "libc-2.",
    "ld-linux",
    "ld-2.",
    "libpthread",
    "libm.so",
    "libstdc++.",
    "libc++.",
    "libc++abi.",
    "libgcc_s.",
];

/// Returns whether a name, perhaps after a return type, begins with one of `prefixes`.
fn begins_with_any(function: &str, prefixes: &[&str]) -> bool {
    let function = without_deduced_result(function);
    let name = match function.split_once(' ') {
        Some((first, rest)) if first != "operator" && !first.contains(['<', '(']) => rest,
        _ => function,
    };
    prefixes.iter().any(|prefix| name.starts_with(prefix) || function.starts_with(prefix))
}

/// Returns whether a function is an allocation wrapper, which only passes an allocation on.
pub fn is_wrapper(function: &str) -> bool {
    begins_with_any(function, &WRAPPERS)
}

/// Returns whether a function belongs to the standard library of C++ or Rust. Ignores the return
/// type.
pub fn is_standard(function: &str) -> bool {
    let name = short(function);
    STANDARD.iter().any(|begin| name.starts_with(begin))
}

/// Removes the return type from the name of a template function, such as `void parse<…>`. Not every
/// space ends a return type: the names of operators, `(anonymous namespace)`, and suffixes such as
/// ` [clone .cold]` have spaces, too.
fn without_result(shown: &str) -> &str {
    let name = shown.find(" [").map_or(shown, |end| &shown[..end]);
    let end = (0..name.len())
        .find(|&at| name.is_char_boundary(at) && is_word_at(name, at, "operator"))
        .unwrap_or(name.len());
    let mut depth = 0usize;
    let mut begin = 0;
    for (at, c) in name[..end].char_indices() {
        match c {
            '(' | '{' | '<' => depth += 1,
            ')' | '}' | '>' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => begin = at + 1,
            _ => {}
        }
    }
    &shown[begin..]
}

/// Returns whether the word `word` is at the position `at`, and is not a part of a longer name.
fn is_word_at(text: &str, at: usize, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text[at..].starts_with(word)
        && !text[..at].ends_with(is_name)
        && !text[at + word.len()..].starts_with(is_name)
}

/// Returns whether a function starts the program or a thread. `main` counts as such a function.
pub fn is_start(function: &str) -> bool {
    STARTS.contains(&function)
        || function.ends_with("::main")
        || function.starts_with("execute_native_thread_routine")
}

/// Returns whether a module is a system library.
pub fn is_system_library(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    SYSTEM_LIBRARIES.iter().any(|library| file.starts_with(library))
}

/// Returns whether the name of a function is known. Otherwise `function` is an offset in a module:
/// `libx.so+0x123`.
pub(crate) fn has_name(function: &str) -> bool {
    !function.contains("+0x")
}

/// Returns the forms in which a plan may write a function: the full name, the name that `mallard
/// sites` prints, and the name without return type and arguments.
pub(crate) fn forms(function: &str) -> [String; 3] {
    let shown = short(function);
    let plain = shown.replace("<…>", "");
    let plain = match plain.split_once(' ') {
        Some((first, rest)) if first != "operator" && !first.starts_with('(') => rest.to_string(),
        _ => plain,
    };
    [function.to_string(), shown, plain]
}

/// Shortens a name: removes the return type, and the arguments of templates and functions:
/// `std::vector<…>::push_back`.
pub fn short(function: &str) -> String {
    let mut text = String::new();
    let mut depth = 0usize;
    let mut rest = without_deduced_result(function);
    while let Some(c) = rest.chars().next() {
        let is_operator = is_word(&text, "operator") || is_word(&text, "operator<");
        match c {
            '<' if !is_operator && !text.is_empty() => {
                if depth == 0 {
                    text.push_str("<…>");
                }
                depth += 1;
            }
            '>' if depth > 0 => depth -= 1,
            '(' if depth == 0 && text.ends_with("operator") && rest.starts_with("()") => {
                text.push_str("()");
                rest = &rest[2..];
                continue;
            }
            '(' if depth == 0 && !text.is_empty() && !rest.starts_with("(anonymous") => {
                // Skips the arguments. Only the name of a function or lambda inside this function
                // continues after them. `const` is left out.
                let Some(end) = matching(rest) else { break };
                rest = &rest[end..];
                if !rest.starts_with("::") && !text.ends_with("{lambda") {
                    break;
                }
                continue;
            }
            _ if depth == 0 => text.push(c),
            _ => {}
        }
        rest = &rest[c.len_utf8()..];
    }
    // Only the names of template functions begin with a return type. In other names, such as those
    // of marked regions, a space does not end a return type.
    match function.contains('<') && function.contains('(') {
        true => without_result(&text).to_string(),
        false => text,
    }
}

/// Removes a deduced return type from a name such as `decltype (...) std::construct_at<...>(...)`.
fn without_deduced_result(function: &str) -> &str {
    let Some(expression) = function.strip_prefix("decltype").map(str::trim_start) else {
        return function;
    };
    let end = if expression.starts_with('(') { matching(expression) } else { None };
    match end.map(|end| expression[end..].trim_start()) {
        Some(rest) if !rest.is_empty() => rest,
        _ => function,
    }
}

/// Returns whether a text ends with the word `word`, and not with a longer name that ends the same.
fn is_word(text: &str, word: &str) -> bool {
    let before = text.strip_suffix(word).map(|before| before.chars().next_back());
    before.is_some_and(|last| last.is_none_or(|c| !c.is_alphanumeric() && c != '_'))
}

/// Returns the position after the parenthesis that closes the first `(`, or `None` if it is not
/// closed.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at + 1),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_library_functions_are_recognised_with_any_return_type() {
        let standard = [
            "std::pair<int, int>::pair(int, int)",
            "void std::vector<int>::push_back(int&&)",
            "std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char)",
            "<core::option::Option<T> as core::clone::Clone>::clone",
        ];
        for function in standard {
            assert!(is_standard(function), "{function}");
        }
        let own = [
            "remember(std::string const&)",
            "std::vector<int> app::make<int>(int)",
            "std::string app::operator+ <int>(int)",
            "<app::Tree as core::clone::Clone>::clone",
            "app::std_like::f()",
            "main",
        ];
        for function in own {
            assert!(!is_standard(function), "{function}");
        }
    }

    #[test]
    fn function_names_are_shortened_by_their_arguments() {
        assert_eq!(
            short("std::vector<int, std::allocator<int> >::push_back(int&&)"),
            "std::vector<…>::push_back"
        );
        assert_eq!(short("main"), "main");
        assert_eq!(
            short("parse(char const*)::{lambda(int)#1}::operator()(int) const"),
            "parse::{lambda#1}::operator()"
        );
        assert_eq!(short("(anonymous namespace)::work(int)"), "(anonymous namespace)::work");
        assert_eq!(short("operator<< <char>(std::ostream&)"), "operator<< <…>");
        assert_eq!(short("libx.so+0x123"), "libx.so+0x123");
        let deduced =
            "decltype (::new ((void*)(0)) int((declval<int>)())) std::construct_at<int>(int*)";
        assert_eq!(short(deduced), "std::construct_at<…>");
        assert!(is_standard(deduced));
        for odd in ["decltype", "decltype (x", "decltype(auto)"] {
            assert_eq!(without_deduced_result(odd), odd);
        }
        assert_eq!(short("void the_operator<int>(int)"), "the_operator<…>");
        let results = [
            ("unsigned long app::sum<int>(int)", "app::sum<…>"),
            ("std::map<int, int> read<int>(char const*)", "read<…>"),
            ("void (anonymous namespace)::work<int>(int)", "(anonymous namespace)::work<…>"),
            ("bool a::operator==<int>(a const&)", "a::operator==<…>"),
            ("app::value::operator unsigned long() const", "app::value::operator unsigned long"),
            ("operator new(unsigned long)", "operator new"),
            ("<app::Duck as core::fmt::Display>::fmt", "<app::Duck as core::fmt::Display>::fmt"),
            ("parse(char const*) [clone .cold]", "parse"),
        ];
        for (function, shown) in results {
            assert_eq!(short(function), shown);
        }
    }
}
