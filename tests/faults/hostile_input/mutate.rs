//! Damages valid inputs.

use fastrand::Rng;
use std::path::Path;

/// Byte sequences that are hard for parsers.
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

/// Makes one to four random changes.
pub(super) fn mutate(rng: &mut Rng, valid: &[u8]) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for _ in 0..rng.usize(1..=4) {
        let start = rng.usize(0..=bytes.len());
        let end = rng.usize(start..=bytes.len());
        match rng.u32(0..7) {
            0 => bytes.truncate(start),
            1 => drop(bytes.drain(start..end)),
            2 => {
                let copy = bytes[start..end].to_vec();
                bytes.splice(start..start, copy);
            }
            3 if start < bytes.len() => bytes[start] ^= 1 << rng.u32(0..8),
            4 => {
                let nested = b"[".repeat(rng.usize(1..50_000));
                bytes.splice(start..start, nested);
            }
            _ => {
                let tricky = TRICKY_BYTES[rng.usize(0..TRICKY_BYTES.len())];
                bytes.splice(start..start, tricky.iter().copied());
            }
        }
    }
    bytes
}

/// Damages JSON so that no parser accepts it.
pub(super) fn invalid_json(rng: &mut Rng, valid: &[u8]) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    match rng.u32(0..5) {
        0 => bytes.clear(),
        1 => bytes.truncate(rng.usize(1..valid.len() - 2)),
        2 => bytes.insert(0, b'x'),
        3 => bytes.insert(rng.usize(0..valid.len()), 0xff),
        _ => bytes.extend_from_slice(b"]}"),
    }
    // A unique suffix makes the daemon's copy of this file recognizable.
    let suffix = format!("{:x}", rng.u64(..));
    if !bytes.is_empty() {
        bytes.extend_from_slice(suffix.as_bytes());
    }
    bytes
}

/// Returns collected and generated files that are hard to parse.
pub(super) fn read_samples() -> Vec<Vec<u8>> {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/protocol/tests/data/hostile-inboxes");
    let collected =
        std::fs::read_dir(directory).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    let many_keys: String = (0..20_000).map(|n| format!("\"k{n}\":{n},")).collect();
    let generated = [
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
    collected.chain(generated).collect()
}
