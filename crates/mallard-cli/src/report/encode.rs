//! Encodes bytes and numbers in the form that the page reads.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;

/// Encodes bytes in base64.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Encodes bytes by run lengths, which are pairs of a count from 1 to 255 and the byte that is
/// repeated.
pub fn run_lengths(bytes: &[u8]) -> Vec<u8> {
    let mut pairs = Vec::new();
    for run in bytes.chunk_by(|a, b| a == b) {
        for part in run.chunks(255) {
            pairs.extend([part.len() as u8, part[0]]);
        }
    }
    pairs
}

/// Rounds a number to four significant digits.
pub fn four_digits(number: f64) -> f64 {
    format!("{number:.3e}").parse().unwrap_or(number)
}

/// Returns the number of characters of a decimal number.
pub fn width(number: i64) -> usize {
    let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
    digits + usize::from(number < 0)
}

/// Rounds a sum to a whole number.
pub fn whole(number: f64) -> i64 {
    number.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_length_encoding_writes_pairs_of_a_count_and_a_byte() {
        assert_eq!(run_lengths(&[7, 7, 0]), [2, 7, 1, 0]);
        assert_eq!(run_lengths(&[1; 256]), [255, 1, 1, 1]);
        assert!(run_lengths(&[]).is_empty());
    }

    #[test]
    fn the_computed_width_of_a_number_is_that_of_its_text() {
        for number in [0, 9, 10, -1, -10, i64::MAX, i64::MIN] {
            assert_eq!(width(number), number.to_string().len());
        }
    }

    #[test]
    fn encoded_numbers_keep_four_significant_digits() {
        assert_eq!(four_digits(0.123456), 0.1235);
        assert_eq!(four_digits(-98766.0), -98770.0);
        assert_eq!(four_digits(0.0), 0.0);
    }
}
