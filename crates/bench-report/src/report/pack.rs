//! Packs the parts of the HTML page that are closed when the page opens, as compressed HTML in
//! base64. The page unpacks a part when the reader opens it.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use flate2::write::DeflateEncoder;
use flate2::Compression;
use std::io::Write;

/// Compresses a text as raw deflate, which browsers decompress as `deflate-raw`.
pub fn packed(text: &str) -> String {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    // Writing into memory cannot fail.
    let compressed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    STANDARD.encode(compressed.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_packed_text_is_smaller_and_unpacks_to_the_same_text() {
        let text = "<td>1.00</td>".repeat(1000) + "\u{d7} <b>";
        let packed = packed(&text);
        assert!(packed.len() < 200, "{}", packed.len());
        let bytes = STANDARD.decode(packed).unwrap();
        let mut back = String::new();
        flate2::read::DeflateDecoder::new(&bytes[..]).read_to_string(&mut back).unwrap();
        assert_eq!(back, text);
    }
}
