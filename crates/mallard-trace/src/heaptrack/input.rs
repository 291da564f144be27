//! Reads the lines of a file that may be compressed, and parses the numbers in a line.

use crate::error::{Error, ErrorKind};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The largest window of `zstd --long` without an argument, as log2 of the bytes.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// The maximum length of a line. A file with a longer line is corrupt.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Returns whether the decompressed content of a file begins with `bytes`.
pub(super) fn begins_with(path: &Path, bytes: &[u8]) -> bool {
    let begins = || -> io::Result<bool> {
        let mut first = vec![0; bytes.len()];
        decoded(File::open(path)?)?.read_exact(&mut first)?;
        Ok(first == bytes)
    };
    path.is_file() && begins().unwrap_or(false)
}

/// Opens a decompressing reader. The first bytes of the file determine the compression, if any.
fn decoded(file: File) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::with_capacity(1 << 16, file);
    let first = file.fill_buf()?;
    if first.starts_with(&ZSTD_MAGIC) {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(file)?;
        decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
        Ok(Box::new(BufReader::with_capacity(1 << 16, decoder)))
    } else if first.starts_with(&GZIP_MAGIC) {
        Ok(Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file))))
    } else {
        Ok(Box::new(file))
    }
}

/// Reads a file line by line. Only one line is in memory.
pub(super) struct Lines {
    path: PathBuf,
    input: Box<dyn BufRead>,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    /// Opens a file.
    pub fn open(path: &Path) -> crate::error::Result<Lines> {
        let input = File::open(path).and_then(decoded).map_err(|error| {
            Error::new(
                ErrorKind::System,
                format!("cannot read {}: {error}", path.display()),
                "nothing was written",
                "heaptrack -o NAME PROGRAM makes a new file",
            )
        })?;
        Ok(Lines { path: path.to_path_buf(), input, line: Vec::new(), number: 0 })
    }

    /// Returns the next line, without its line end, or `None` after the last line.
    pub fn next_line(&mut self) -> crate::error::Result<Option<&[u8]>> {
        self.line.clear();
        let read = {
            let mut input = (&mut self.input).take(LINE_BYTES_MAX as u64);
            input.read_until(b'\n', &mut self.line)
        };
        match read {
            Ok(0) => return Ok(None),
            Ok(_) => self.number += 1,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(self.cut()),
            Err(error) => {
                self.number += 1;
                return Err(self.damaged(&error.to_string()));
            }
        }
        match self.line.last() {
            Some(b'\n') => self.line.pop(),
            _ if self.line.len() == LINE_BYTES_MAX => {
                return Err(self.damaged("the line is too long"))
            }
            _ => return Err(self.cut()),
        };
        Ok(Some(&self.line))
    }

    /// Returns the number of the line that was read last.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the error for a malformed line, which is the line that was read last.
    pub fn damaged(&self, why: &str) -> Error {
        Error::new(
            ErrorKind::Damaged,
            format!("{} is corrupt: line {}: {why}", self.path.display(), self.number),
            "nothing was written",
            "heaptrack -o NAME PROGRAM makes a new file",
        )
    }

    fn cut(&self) -> Error {
        Error::new(
            ErrorKind::Truncated,
            format!(
                "{} is truncated: it ends within line {}",
                self.path.display(),
                self.number.max(1)
            ),
            "nothing was written",
            "copy the file again, or heaptrack -o NAME PROGRAM makes a new one",
        )
    }
}

/// Why a line cannot be converted.
#[derive(Debug)]
pub(super) enum Fault {
    /// The line is invalid. The text explains why.
    Line(String),
    /// The file has a newer format version than this module reads.
    Newer(u64),
    /// The stream cannot be written.
    Write(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Write(error)
    }
}

/// Parses the rest of a line: numbers, separated by spaces.
pub(super) struct Numbers<'a>(pub &'a [u8]);

impl Numbers<'_> {
    /// Returns the bytes up to the next space or to the end of the line.
    fn bytes(&mut self) -> &[u8] {
        let end = self.0.iter().position(|&byte| byte == b' ').unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word
    }

    /// Skips a single space and returns the next word.
    pub fn word(&mut self) -> String {
        self.0 = self.0.strip_prefix(b" ").unwrap_or(self.0);
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// Returns the next number, or `None` at the end of the line.
    pub fn next(&mut self) -> Result<Option<u64>, Fault> {
        let begin = self.0.iter().position(|&byte| byte != b' ').unwrap_or(self.0.len());
        self.0 = &self.0[begin..];
        let word = self.bytes();
        if word.is_empty() {
            return Ok(None);
        }
        let digits = std::str::from_utf8(word).ok().filter(|text| !text.starts_with('+'));
        let number = digits.and_then(|text| u64::from_str_radix(text, 16).ok());
        let text = || String::from_utf8_lossy(word).into_owned();
        number.map(Some).ok_or_else(|| Fault::Line(format!("'{}' is not a number", text())))
    }

    /// Returns the next number. Fails at the end of the line.
    pub fn must(&mut self) -> Result<u64, Fault> {
        self.next()?.ok_or_else(|| Fault::Line("the line has too few numbers".to_string()))
    }

    /// Returns the next string. In newer files (`is_sized`), the length of the string precedes the
    /// string.
    pub fn text(&mut self, is_sized: bool) -> Result<String, Fault> {
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if !is_sized {
            let text = lossy(self.0.strip_prefix(b" ").unwrap_or(self.0));
            self.0 = &[];
            return Ok(text);
        }
        let length = self.must()? as usize;
        let text = self.0.strip_prefix(b" ").and_then(|rest| rest.get(..length));
        let text = text.ok_or_else(|| Fault::Line("a string has another length".to_string()))?;
        self.0 = &self.0[1 + length..];
        Ok(lossy(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_heaptrack_file_are_hexadecimal() {
        let mut numbers = Numbers(b" 1f  a");
        assert_eq!((numbers.must().unwrap(), numbers.next().unwrap()), (31, Some(10)));
        assert_eq!(numbers.next().unwrap(), None);
        for wrong in [&b"x"[..], b"+1", b"-1", b"11111111111111111", b"\xff"] {
            assert!(Numbers(wrong).next().is_err(), "{wrong:?}");
        }
        assert_eq!(Numbers(b" 3 a b 7").text(true).unwrap(), "a b");
        assert_eq!(Numbers(b" a b").text(false).unwrap(), "a b");
        assert!(Numbers(b" 5 ab").text(true).is_err());
    }
}
