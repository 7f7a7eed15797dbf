//! Bytes that were sound, and are not any more.

use fastrand::Rng;
use std::path::Path;

/// What parsers stumble over.
const TRICKY_BYTES: [&[u8]; 24] = [
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"-0",
    b"1e999",
    b"99999999999999999999999999",
    b"\"\\ud83d\"",
    b"\\u0000",
    b"\x1b[2J",
    b"\x9b31m",
    b"\r",
    b"\n",
    b"//",
    b"'",
];

/// One to four changes, anywhere.
pub(super) fn mutate(rng: &mut Rng, sound: &[u8]) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    for _ in 0..rng.usize(1..=4) {
        let at = rng.usize(0..=bytes.len());
        let end = rng.usize(at..=bytes.len());
        match rng.u32(0..7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            3 if at < bytes.len() => bytes[at] ^= 1 << rng.u32(0..8),
            4 => {
                let nested = b"[".repeat(rng.usize(1..50_000));
                bytes.splice(at..at, nested);
            }
            _ => {
                let stumble = TRICKY_BYTES[rng.usize(0..TRICKY_BYTES.len())];
                bytes.splice(at..at, stumble.iter().copied());
            }
        }
    }
    bytes
}

/// What no parser of JSON takes, whatever its manner.
pub(super) fn invalid_json(rng: &mut Rng, sound: &[u8]) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    match rng.u32(0..5) {
        0 => bytes.clear(),
        1 => bytes.truncate(rng.usize(1..sound.len() - 2)),
        2 => bytes.insert(0, b'x'),
        3 => bytes.insert(rng.usize(0..sound.len()), 0xff),
        _ => bytes.extend_from_slice(b"]}"),
    }
    // One is like no other, so that its copy is known.
    let mark = format!("{:x}", rng.u64(..));
    if !bytes.is_empty() {
        bytes.extend_from_slice(mark.as_bytes());
    }
    bytes
}

/// Files that were collected or made up to be hard to read.
pub(super) fn read_samples() -> Vec<Vec<u8>> {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/protocol/tests/data/hostile-inboxes");
    let kept = std::fs::read_dir(kept).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    let many_keys: String = (0..20_000).map(|n| format!("\"k{n}\":{n},")).collect();
    let made = [
        b"[".repeat(1_000_000),
        format!("[{{{many_keys}\"from\":\"x\"}}]").into_bytes(),
        format!("[{}]", "9".repeat(20_000)).into_bytes(),
        "[{\"from\":\"a\",\"text\":\"\u{1b}]52;c;aGk=\u{7}\",\"read\":false}]".into(),
        "\u{feff}[]\r\n".into(),
        "[]".encode_utf16().flat_map(u16::to_le_bytes).collect(),
        b"[]\n[]".to_vec(),
        b"null".to_vec(),
        b"\0".repeat(4096),
    ];
    kept.chain(made).collect()
}
