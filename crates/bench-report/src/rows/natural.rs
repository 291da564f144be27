//! Sorts names in natural order: DS2 before DS10, and 2^6 before 2^16.

/// Returns a sort key in which each group of digits counts as one number.
pub fn key(text: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut words = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let Some(mut value) = c.to_digit(10).map(u64::from) else {
            words.push(c);
            continue;
        };
        while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
            value = value.saturating_mul(10).saturating_add(u64::from(digit));
            chars.next();
        }
        parts.push((std::mem::take(&mut words), value));
    }
    parts.push((words, 0));
    parts
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn digits_in_names_sort_as_numbers() {
        assert!(key("DS2/2^6") < key("DS10/2^6"));
        assert!(key("DS2/2^6") < key("DS2/2^16"));
        assert!(key("a") < key("b"));
    }
}
