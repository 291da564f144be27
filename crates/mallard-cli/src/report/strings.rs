//! The table of strings of the object. The rest of the object refers to strings by index.

use std::collections::HashMap;

/// The maximum length of a name in characters. Longer names are cut in the middle, to keep the page
/// small.
const CHARS_MAX: usize = 300;

/// A table of strings without repetitions.
#[derive(Default)]
pub struct Strings {
    all: Vec<String>,
    index_of: HashMap<String, i32>,
    cut: usize,
}

impl Strings {
    /// Returns the index of a string, and adds the string if it is new. Returns -1 for an empty
    /// string.
    pub fn index(&mut self, text: &str) -> i32 {
        if text.is_empty() {
            return -1;
        }
        if let Some(&index) = self.index_of.get(text) {
            return index;
        }
        let index = self.all.len() as i32;
        self.index_of.insert(text.to_string(), index);
        let shown = shortened(text);
        self.cut += usize::from(shown.is_some());
        self.all.push(shown.unwrap_or_else(|| text.to_string()));
        index
    }

    /// Returns the string with the index `index`.
    pub fn text(&self, index: i32) -> &str {
        usize::try_from(index).ok().and_then(|index| self.all.get(index)).map_or("", String::as_str)
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the number of strings that were cut.
    pub fn cut(&self) -> usize {
        self.cut
    }

    /// Returns the approximate bytes that a string needs in the page.
    pub fn bytes_of(text: &str) -> usize {
        let escaped = text.bytes().filter(|&byte| byte == b'<').count() * 5;
        text.len().min(CHARS_MAX) + escaped + 3
    }

    /// Returns all strings.
    pub fn into_all(self) -> Vec<String> {
        self.all
    }
}

/// Returns the two ends of a string with an ellipsis between them. `None` if the string is short
/// enough.
fn shortened(text: &str) -> Option<String> {
    if text.len() <= CHARS_MAX {
        return None;
    }
    let chars: Vec<char> = text.chars().collect();
    let kept = (CHARS_MAX - 1) / 2;
    let (begin, end) =
        (&chars[..kept.min(chars.len())], &chars[chars.len().saturating_sub(kept)..]);
    (chars.len() > CHARS_MAX).then(|| begin.iter().chain(&['…']).chain(end).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_one_index_and_an_empty_one_has_none() {
        let mut strings = Strings::default();
        assert_eq!([strings.index("a"), strings.index("b"), strings.index("a")], [0, 1, 0]);
        assert_eq!(strings.index(""), -1);
        assert_eq!((strings.text(1), strings.text(-1)), ("b", ""));
    }

    #[test]
    fn a_long_string_keeps_its_ends() {
        let mut strings = Strings::default();
        let long = format!("begin{}end", "ä".repeat(1000));
        let index = strings.index(&long);
        assert_eq!(strings.index(&long), index);
        let shown = strings.text(index);
        assert!(shown.starts_with("beginä") && shown.ends_with("äend") && shown.contains('…'));
        assert_eq!((shown.chars().count(), strings.cut()), (CHARS_MAX - 1, 1));
    }
}
