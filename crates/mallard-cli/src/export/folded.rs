//! Writes folded stacks, the input of flame graphs, with one line for each call stack. A line has
//! the functions, separated by `;`, and a number.

use super::calls::Calls;
use super::weight::Weight;
use super::{Options, Result};
use mallard_trace::Trace;
use std::collections::BTreeMap;
use std::io::Write;

/// Writes the call stacks whose weight is not 0, in the order of their names. Call stacks that
/// differ only in addresses are added up.
pub fn write(trace: &Trace, options: &Options, to: &mut dyn Write) -> Result<()> {
    let weight = options.weight.unwrap_or(Weight::Bytes);
    let calls = Calls::read(trace, options.is_full)?;
    let functions = calls.functions();
    let mut lines: BTreeMap<String, i64> = BTreeMap::new();
    for site in calls.sites.iter().filter(|site| weight.of(site) > 0) {
        let mut line = String::new();
        for place in calls.places(site, &functions).iter().rev() {
            for function in place.functions.iter().rev() {
                push_name(&mut line, &calls.name(function));
            }
        }
        *lines.entry(line).or_default() += weight.of(site);
    }
    for (line, count) in lines {
        writeln!(to, "{line} {count}")?;
    }
    Ok(())
}

/// Adds a name to a line. Replaces characters that separate names or lines.
fn push_name(line: &mut String, name: &str) {
    if !line.is_empty() {
        line.push(';');
    }
    line.extend(name.chars().map(|c| match c {
        ';' => ':',
        c if c.is_control() => ' ',
        c => c,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_in_names_cannot_break_a_line_of_folded_stacks() {
        let mut line = String::new();
        push_name(&mut line, "main");
        push_name(&mut line, "a;b\nc\td");
        assert_eq!(line, "main;a:b c d");
    }
}
