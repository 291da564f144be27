//! Compares the outputs of two runs, and shows where they differ.

use crate::process::child::Output;

/// Describes how an output differs from the first one. `None` if it does not differ.
pub fn difference(first: &Output, now: &Output) -> Option<String> {
    if first.is_same(now) {
        return None;
    }
    let mut lines = (lines(first), lines(now));
    for number in 1usize.. {
        match (lines.0.next(), lines.1.next()) {
            (Some(a), Some(b)) if a == b => {}
            (None, None) => break,
            (a, b) => {
                let (now, first) = (shown(b), shown(a));
                // Only the shown parts of the lines are equal. The lines differ after these parts,
                // or in their line ends.
                let end = if now == first { " with another end" } else { "" };
                return Some(format!(
                    "line {number} of its output is {now}{end}, instead of {first}"
                ));
            }
        }
    }
    Some(format!(
        "its output has {} bytes, instead of {}, and differs after 1 MiB",
        now.bytes, first.bytes
    ))
}

fn lines(output: &Output) -> impl Iterator<Item = &[u8]> {
    output.begin.split_inclusive(|&byte| byte == b'\n')
}

/// Returns the beginning of a line in quotation marks.
fn shown(line: Option<&[u8]>) -> String {
    let Some(line) = line else { return "missing".to_string() };
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches('\n');
    let short: String = text.chars().take(40).collect();
    let rest = if short.len() < text.len() { "..." } else { "" };
    format!("'{}{rest}'", short.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> Output {
        let mut output = Output::default();
        for piece in text.as_bytes().chunks(7) {
            output.add(piece);
        }
        output
    }

    #[test]
    fn the_first_different_line_of_two_outputs_is_shown() {
        assert_eq!(difference(&output("a\nb\n"), &output("a\nb\n")), None);
        let found = difference(&output("a\nb\n"), &output("a\nc\n")).unwrap();
        assert_eq!(found, "line 2 of its output is 'c', instead of 'b'");
        let found = difference(&output("a\nb\n"), &output("a\n")).unwrap();
        assert_eq!(found, "line 2 of its output is missing, instead of 'b'");
    }

    #[test]
    fn a_difference_after_the_stored_bytes_of_an_output_is_detected() {
        let long = "x\n".repeat(1 << 20);
        let found = difference(&output(&long), &output(&format!("{long}y\n"))).unwrap();
        assert!(found.contains("differs after 1 MiB"), "{found}");
    }

    #[test]
    fn a_missing_newline_at_the_end_of_an_output_is_a_difference() {
        assert!(difference(&output("a\n"), &output("a")).is_some());
    }
}
