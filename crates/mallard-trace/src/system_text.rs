//! Converts text from the operating system: names of processes and threads, paths, arguments, and
//! environment variables. Such a text consists of bytes that need not be UTF-8.

use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Converts the name of a thread or process to readable text. The kernel truncates names to 15
/// bytes. If this cuts the last character, its remaining bytes are left out. Other bytes that are
/// not UTF-8 are replaced by U+FFFD.
pub fn name_of_kernel(name: &[u8]) -> String {
    let last = name.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_cut = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    let whole = &name[..name.len() - if is_cut { last.len() } else { 0 }];
    String::from_utf8_lossy(whole).into_owned()
}

/// Converts a text to JSON: to a string, or to an array of bytes if the text is not UTF-8.
pub fn to_json(text: &OsStr) -> Value {
    text.to_str().map_or_else(|| text.as_bytes().into(), Value::from)
}

/// Returns the text that `to_json` has converted, or `None` for any other value.
pub fn from_json(value: &Value) -> Option<OsString> {
    if let Some(text) = value.as_str() {
        return Some(text.into());
    }
    let byte = |byte: &Value| u8::try_from(byte.as_u64()?).ok();
    value.as_array()?.iter().map(byte).collect::<Option<Vec<u8>>>().map(OsString::from_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_incomplete_last_character_is_removed_from_a_kernel_thread_name() {
        assert_eq!(name_of_kernel("f\u{fc}nfzehn bytes".as_bytes()), "f\u{fc}nfzehn bytes");
        assert_eq!(name_of_kernel(b"a pool of gr\xc3"), "a pool of gr");
        assert_eq!(name_of_kernel(b"\xf0\x9f\xa6"), "");
        assert_eq!(name_of_kernel(b"a\xff\xc3b"), "a\u{fffd}\u{fffd}b");
        assert_eq!(name_of_kernel(b"a\xff"), "a\u{fffd}");
        assert_eq!(name_of_kernel(b""), "");
    }

    #[test]
    fn every_text_survives_a_round_trip_through_json() {
        for bytes in [&b""[..], b"a b\n'", b"\xff\xc3", "\u{fc}".as_bytes()] {
            let text = OsStr::from_bytes(bytes);
            let value: Value = serde_json::from_str(&to_json(text).to_string()).unwrap();
            assert_eq!(from_json(&value).as_deref(), Some(text));
            assert_eq!(value.is_string(), std::str::from_utf8(bytes).is_ok());
        }
        for other in ["null", "7", "[256]", "[\"a\"]", "{}"] {
            assert_eq!(from_json(&serde_json::from_str(other).unwrap()), None, "{other}");
        }
    }
}
