//! Parses /proc/PID/smaps, which has the mappings of a process and their resident bytes.

/// A mapping with resident bytes that belong to no file (anonymous bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The address after the last byte.
    pub end: u64,
    /// Resident bytes that belong to no file.
    pub anonymous: u64,
}

/// Sums over all mappings, and the program's mappings with anonymous memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Smaps {
    /// Proportional set size (PSS): resident bytes, where bytes that n processes share count as one
    /// n-th.
    pub pss: u64,
    /// Resident bytes in huge pages.
    pub huge: u64,
    /// Resident bytes of the recorder that are backed by files, which are the ring and the code of
    /// its library.
    pub recorder: u64,
    /// The mappings that have anonymous memory.
    pub mappings: Vec<Mapping>,
}

/// Parts of the names of the recorder's mappings.
const OF_RECORDER: [&[u8]; 2] = [b"/memfd:mallard-ring", b"/libmallard-record.so"];

impl Smaps {
    /// Parses the text of the file. Skips unknown lines.
    pub fn parse(text: &[u8]) -> Smaps {
        let mut smaps = Smaps::default();
        let mut current = Mapping { start: 0, end: 0, anonymous: 0 };
        let mut is_recorder = false;
        for line in text.split(|&byte| byte == b'\n') {
            // The first line of a mapping is the only line that begins with a lower-case
            // hexadecimal digit.
            match line.first() {
                Some(b'0'..=b'9' | b'a'..=b'f') => {
                    let Some((start, end, name)) = head(line) else { continue };
                    let has = |part: &&[u8]| name.windows(part.len()).any(|bytes| bytes == *part);
                    is_recorder = OF_RECORDER.iter().any(has);
                    current = Mapping { start, end, anonymous: 0 };
                }
                Some(b'R') if is_recorder => smaps.recorder += bytes(line, b"Rss:").unwrap_or(0),
                Some(b'P') => smaps.pss += bytes(line, b"Pss:").unwrap_or(0),
                Some(b'A') => {
                    smaps.huge += bytes(line, b"AnonHugePages:").unwrap_or(0);
                    let anonymous = bytes(line, b"Anonymous:").unwrap_or(0);
                    if anonymous > 0 {
                        smaps.mappings.push(Mapping { anonymous, ..current });
                    }
                    if is_recorder {
                        smaps.recorder = smaps.recorder.saturating_sub(anonymous);
                    }
                }
                _ => {}
            }
        }
        smaps
    }
}

/// Parses the range and the name in the first line of a mapping: `START-END rw-p OFFSET DEVICE
/// INODE NAME`.
fn head(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    // The name comes after five words, and may contain any byte but a line feed.
    let mut words = line.splitn(6, |&byte| byte == b' ');
    let (start, end) = std::str::from_utf8(words.next()?).ok()?.split_once('-')?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some((address(start)?, address(end)?, words.nth(4).unwrap_or_default()))
}

/// Parses the bytes in a line `NAME  123 kB`.
fn bytes(line: &[u8], name: &[u8]) -> Option<u64> {
    let number = line.strip_prefix(name)?.trim_ascii_start().strip_suffix(b" kB")?;
    Some(std::str::from_utf8(number).ok()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
55d0-55d8 r-xp 00001000 08:02 173521                     /usr/bin/a \xff program
Size:                 32 kB
Rss:                  28 kB
Pss:                   7 kB
Pss_Dirty:             0 kB
Anonymous:             4 kB
AnonHugePages:         0 kB
VmFlags: rd ex mr mw me
7f00-7f80 rw-p 00000000 00:00 0 
Rss:                 512 kB
Pss:                 512 kB
Anonymous:           512 kB
AnonHugePages:       256 kB
7fa0-7fb0 rw-s 00000000 00:01 2                          /memfd:mallard-ring (deleted)
Rss:                  64 kB
Pss:                  32 kB
Anonymous:             0 kB
7fb0-7fc0 rw-p 00002000 08:02 5                          /opt/lib/libmallard-record.so
Rss:                  32 kB
Anonymous:             8 kB
7fc0-7fc8 rw-p 00000000 00:00 0 
Rss:                  16 kB
Anonymous:            16 kB
Unknown line
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]
Rss:                   0 kB
Rss:                  many kB
";

    #[test]
    fn mappings_with_anonymous_memory_and_the_files_of_the_recorder_are_found() {
        let smaps = Smaps::parse(TEXT);
        let kib = 1024;
        assert_eq!((smaps.pss, smaps.huge), ((7 + 512 + 32) * kib, 256 * kib));
        assert_eq!(smaps.recorder, (64 + 24) * kib);
        let mapping = |start, end, anonymous| Mapping { start, end, anonymous };
        assert_eq!(
            smaps.mappings,
            [
                mapping(0x55d0, 0x55d8, 4 * kib),
                mapping(0x7f00, 0x7f80, 512 * kib),
                mapping(0x7fb0, 0x7fc0, 8 * kib),
                mapping(0x7fc0, 0x7fc8, 16 * kib)
            ]
        );
    }

    #[test]
    fn an_empty_file_has_no_mappings() {
        assert_eq!(Smaps::parse(b""), Smaps::default());
        assert_eq!(Smaps::parse(b"5-x\n-\n7f00\n"), Smaps::default());
    }
}
