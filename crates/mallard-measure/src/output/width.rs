//! Wraps text to the width of the terminal.
//!
//! A line that is too wide is wrapped at spaces. Commands that the user can paste, paths and quoted
//! texts are never broken. If such a text is wider than the terminal, it has a line to itself.

use std::sync::{LazyLock, OnceLock};
use terminal_size::terminal_size_of;

/// The width of text in a file or a pipe, and the minimum width of text on a terminal.
const WIDTH_MIN: usize = 80;

/// Replaces spaces in text that must not be wrapped. This private character occurs in no other
/// text.
const NO_BREAK: char = '\u{f8ff}';

/// The function that lists the subcommands of the running command (see `know_subcommands`).
static SUBCOMMANDS: OnceLock<fn() -> Vec<String>> = OnceLock::new();

/// Units that stay on the same line as the number before them.
const UNITS: [&str; 11] = ["B", "KiB", "MiB", "GiB", "TiB", "ns", "us", "ms", "s", "min", "%"];

/// Returns the width of a line, which is at least 80. If stdout is a terminal, the width is that of
/// the terminal, otherwise the value of the variable COLUMNS.
pub fn width() -> usize {
    static WIDTH: LazyLock<usize> = LazyLock::new(|| {
        let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
        let terminal = terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
        terminal.or_else(columns).unwrap_or(0).max(WIDTH_MIN)
    });
    *WIDTH
}

/// Registers the subcommands of the running command. If one of these words follows `mallard` in a
/// message, the two words begin a command that the user can paste. Only the first call has an
/// effect.
pub fn know_subcommands(list: fn() -> Vec<String>) {
    let _ = SUBCOMMANDS.set(list);
}

/// Marks a text, such as the command line of a program, so that it is never wrapped.
pub fn unbroken(text: &str) -> String {
    text.replace(' ', NO_BREAK.encode_utf8(&mut [0; 4]))
}

/// Wraps the lines of a text to `width`.
pub fn fitted(text: &str, width: usize) -> String {
    let lines = text.split('\n').map(|line| match line.chars().count() > width {
        true => wrapped(line, width),
        false => line.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n").replace(NO_BREAK, " ")
}

/// Shortens a name to at most `width` characters by leaving out its middle.
pub fn shortened(name: &str, width: usize) -> String {
    let count = name.chars().count();
    if count <= width {
        return name.to_string();
    }
    let kept = width.saturating_sub(1);
    let begin: String = name.chars().take(kept - kept / 2).collect();
    let end: String = name.chars().skip(count - kept / 2).collect();
    format!("{begin}…{end}")
}

/// Wraps a line into several lines. If the line begins with a name and a gap, the lines after the
/// first are indented to the text behind the gap.
fn wrapped(line: &str, width: usize) -> String {
    let text_at = text_column(line);
    let indent = line.len() - line.trim_start().len();
    let is_comment = line[indent..].starts_with("// ");
    let rest = " ".repeat(match indent {
        _ if is_comment => indent,
        _ if text_at > 0 => text_at,
        0 if line.starts_with(char::is_uppercase) => 0,
        0 if !line.starts_with("mallard: ") => 2,
        indent @ 10.. => indent,
        indent => indent.max(2) + 2,
    });
    let rest = if is_comment { rest + "// " } else { rest };
    let (first, text) = line.split_at(text_at.max(indent));
    let (mut lines, mut last, mut is_empty) = (String::new(), first.to_string(), true);
    for word in words(text) {
        let room = width.saturating_sub(rest.len());
        for part in broken(word, room) {
            let used = last.chars().count() + usize::from(!is_empty);
            if used + part.chars().count() > width && !last.trim().is_empty() {
                lines += without_comma(&last, width);
                lines.push('\n');
                last = rest.clone();
                is_empty = true;
            }
            if !is_empty && part.as_ptr() == word.as_ptr() {
                last.push(' ');
            }
            last += part;
            is_empty = false;
        }
    }
    lines + last.trim_end()
}

/// Returns a wrapped line. Removes a comma from its end if a command fills the line, because the
/// user would paste the comma together with the command.
fn without_comma(line: &str, width: usize) -> &str {
    let line = line.trim_end();
    match line.chars().count() > width {
        true => line.trim_end_matches([',', ';', ':']),
        false => line,
    }
}

/// Returns the column of the text after a name at the left of a line. 0 if there is no such name.
fn text_column(line: &str) -> usize {
    let indent = line.len() - line.trim_start().len();
    let Some(gap) = line[indent..].find("  ").map(|at| indent + at) else { return 0 };
    let column = gap + line[gap..].len() - line[gap..].trim_start().len();
    let is_name = !line[..gap].contains([NO_BREAK, '<', '(']) && line[..gap].is_ascii();
    if is_name && column <= 30 {
        column
    } else {
        0
    }
}

/// Splits a text into words that must not be broken. A command of mallard is one word, and so are a
/// text in quotation marks, a number with its unit, and an option with its value.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_start();
    std::iter::from_fn(move || {
        let bytes = command_bytes(rest).unwrap_or_else(|| {
            let first = word_bytes(rest, false);
            let (word, others) = rest.split_at(first);
            let gap = others.len() - others.trim_start().len();
            let next = word_bytes(&others[gap..], false);
            match is_one(word, &others[gap..gap + next]) {
                true => first + gap + next,
                false => first,
            }
        });
        let (word, others) = rest.split_at(bytes);
        rest = others.trim_start();
        (!word.is_empty()).then_some(word)
    })
}

/// Returns whether two words belong on one line, because they are a number and its unit, or an
/// option and its value.
fn is_one(word: &str, next: &str) -> bool {
    let next = next.trim_end_matches([',', ';', ':', '.', ')']);
    let is_number = word.ends_with(|c: char| c.is_ascii_digit());
    is_number && UNITS.contains(&next) || word.starts_with("--") && next.contains('=')
}

/// Returns the length of the command with which a text begins, or `None` if the text begins with no
/// command. A command of mallard may follow a change of the directory and variable assignments. The
/// command ends at a comma, semicolon or colon after a word, or at the end of the text.
fn command_bytes(text: &str) -> Option<usize> {
    let mut at = 0;
    let next = |at: &mut usize| {
        let begin = *at + text[*at..].len() - text[*at..].trim_start().len();
        *at = begin + word_bytes(&text[begin..], true);
        &text[begin..*at]
    };
    let mut word = next(&mut at);
    while word == "cd" && text[at..].contains(" && ") {
        at += text[at..].find(" && ")? + 4;
        word = next(&mut at);
    }
    while word.split_once('=').is_some_and(|(name, _)| is_variable(name)) {
        word = next(&mut at);
    }
    let is_mallard = word == "mallard" || word.ends_with("/mallard");
    let name = next(&mut at);
    match word {
        _ if is_mallard && is_subcommand(name, &text[at..]) => {}
        "sh" if name == "-c" => {}
        "xdg-open" | "mallard-replay" | "cmake" | "apt-get" | "pip" => {}
        _ => return None,
    }
    let mut end = at;
    while !text[..end].ends_with([',', ';', ':', ')']) {
        let word = next(&mut at);
        if word.is_empty() {
            break;
        }
        end = at;
    }
    Some(end)
}

/// Returns whether the word after `mallard` is a subcommand, and not the verb of a sentence. The
/// word is a subcommand if `rest` begins with an option, or if the running command has this
/// subcommand.
fn is_subcommand(word: &str, rest: &str) -> bool {
    let rest = rest.trim_start();
    let known = || SUBCOMMANDS.get().map_or(Vec::new(), |list| list());
    let word = word.trim_end_matches([',', ';', ':']);
    rest.starts_with('-') && !rest.starts_with("- ") || known().iter().any(|name| name == word)
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// Returns the length in bytes of the word with which a text begins. A quoted part of the word may
/// contain spaces. Outside commands, a quoted part is only recognised at the beginning of a word,
/// because an apostrophe may follow later.
fn word_bytes(text: &str, is_of_command: bool) -> usize {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next().filter(|c| !c.is_whitespace()) {
        at += c.len_utf8();
        let is_quote = c == '\'' && (is_of_command || text[..at - 1].chars().all(|c| c == '('));
        if is_quote {
            at += text[at..].find('\'').map_or(0, |end| end + 1);
        }
    }
    at
}

/// Splits a word that is wider than a line. The name of a C++ template is split between its parts.
/// A path is not split.
fn broken(word: &str, room: usize) -> Vec<&str> {
    let is_name = ["::", "<", "("].iter().any(|part| word.contains(part));
    if word.chars().count() <= room || !is_name || word.contains(['/', NO_BREAK, ' ']) {
        return vec![word];
    }
    let (mut parts, mut rest) = (Vec::new(), word);
    while let Some((limit, _)) = rest.char_indices().nth(room) {
        let Some(end) = rest[..limit].rfind(['<', ',', ':', '(', '>']).map(|at| at + 1) else {
            break;
        };
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, width: usize) -> Vec<String> {
        know_subcommands(|| vec!["sites".to_string()]);
        fitted(text, width).lines().map(str::to_string).collect()
    }

    #[test]
    fn lines_that_fit_are_left_unchanged() {
        let text = "  a   b\n\nc  \n";
        assert_eq!(fitted(text, 8), text);
    }

    #[test]
    fn a_wrapped_line_continues_below_the_start_of_its_text() {
        assert_eq!(lines("  note: one two three", 14), ["  note: one", "    two three"]);
        assert_eq!(
            lines("name    one two three", 14),
            ["name    one", "        two", "        three"]
        );
        assert_eq!(lines("No gain. Run it.", 10), ["No gain.", "Run it."]);
        assert_eq!(lines("mallard: one two", 12), ["mallard: one", "    two"]);
        assert_eq!(lines("  // one two", 9), ["  // one", "  // two"]);
    }

    #[test]
    fn a_command_is_printed_on_one_line_without_a_trailing_comma() {
        let command = "cd 'a b' && X=1 mallard run -- a 'b, c' d";
        assert_eq!(
            lines(&format!("  note: so {command}, or not"), 20),
            ["  note: so", &format!("    {command}"), "    or not"]
        );
        let build = "cmake -B build && cmake --build build";
        assert_eq!(
            lines(&format!("  help: in a clone: {build}, or X=a"), 20),
            ["  help: in a clone:", &format!("    {build}"), "    or X=a"]
        );
        let fits = "  next: then mallard sites a; and b";
        assert_eq!(lines(fits, 21), ["  next: then", "    mallard sites a;", "    and b"]);
        let option = "  next: bin/mallard record --follow fork";
        assert_eq!(lines(option, 20), ["  next:", "    bin/mallard record --follow fork"]);
        assert_eq!(
            lines("  help: the mallard is a duck", 15),
            ["  help: the", "    mallard is", "    a duck"]
        );
    }

    #[test]
    fn paths_and_quoted_texts_are_not_wrapped() {
        let path = "/a/rather::long/path(1)/of<a>/file";
        assert_eq!(lines(&format!("in {path} now"), 20), ["in", &format!("  {path}"), "  now"]);
        assert_eq!(lines("of 'a b c d e f' now", 12), ["of", "  'a b c d e f'", "  now"]);
        assert_eq!(lines("the program's own and users' files", 14)[0], "the program's");
        assert_eq!(lines("it took 3.1 s", 11), ["it took", "  3.1 s"]);
        assert_eq!(lines("help: --a b=c d", 12), ["help:", "  --a b=c d"]);
        let program = unbroken("./a b c d e f g");
        assert_eq!(lines(&format!("it is {program}"), 12), ["it is", "  ./a b c d e f g"]);
    }

    #[test]
    fn long_names_are_wrapped_between_their_parts_or_shortened() {
        assert_eq!(
            lines("in std::map<int,std::list<long>>::f", 16),
            ["in std::map<int,", "  std::list<", "  long>>::f"]
        );
        assert_eq!(
            lines("in a_template<b>::and::then::f", 20),
            ["in a_template<b>::", "  and::then::f"]
        );
        assert_eq!(shortened("a::long::name", 9), "a::l…name");
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("üüüüüü", 4).chars().count(), 4);
    }
}
