//! The mark in the log of a member's output where the output of a new spawn begins.
//!
//! The daemon writes the mark when it starts a member whose log has the output of an earlier spawn.
//! The mark contains the time of the new spawn. It is an escape sequence that terminals ignore, so
//! that the log can still be printed unchanged.

use crate::timestamp::iso8601;

const START: &[u8] = b"\x1b]7762;teamd-spawn;";
const END: u8 = b'\x07';
/// The length of the time in a mark, in bytes.
const TIME_LENGTH: usize = 24;

/// The output of one spawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpawnOutput<'a> {
    /// When the member was started (ISO 8601, UTC). `None` if the log has no mark before this
    /// output.
    pub spawned_at: Option<&'a str>,
    /// What the program has printed.
    pub output: &'a [u8],
}

/// The mark of a spawn at `at`, in milliseconds since the epoch.
pub fn spawn_mark(at: u64) -> Vec<u8> {
    [START, iso8601(at).as_bytes(), &[END]].concat()
}

/// Splits the log of a member's output at its marks. Returns the output of each spawn, oldest
/// first, and at least one element. A mark without a valid time counts as output of the program.
pub fn split_by_spawn(log: &[u8]) -> Vec<SpawnOutput<'_>> {
    let mut spawns = Vec::new();
    let (mut spawned_at, mut begin, mut position) = (None, 0, 0);
    while let Some(found) = find_start(&log[position..]) {
        let mark = position + found;
        position = mark + START.len();
        let Some(time) = time_of_mark(&log[position..]) else { continue };
        spawns.push(SpawnOutput { spawned_at, output: &log[begin..mark] });
        position += time.len() + 1;
        (spawned_at, begin) = (Some(time), position);
    }
    spawns.push(SpawnOutput { spawned_at, output: &log[begin..] });
    spawns
}

fn find_start(bytes: &[u8]) -> Option<usize> {
    bytes.windows(START.len()).position(|window| window == START)
}

/// The time in a mark. `bytes` begins behind [`START`].
fn time_of_mark(bytes: &[u8]) -> Option<&str> {
    let time = std::str::from_utf8(bytes.get(..TIME_LENGTH)?).ok()?;
    let is_time_char = |c: char| c.is_ascii_digit() || "-:.TZ".contains(c);
    (bytes.get(TIME_LENGTH) == Some(&END) && time.chars().all(is_time_char)).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_is_split_at_its_marks() {
        let log =
            [&b"one\x1b]7762;teamd-spawn;now\x07"[..], &spawn_mark(0), &spawn_mark(1000), b"three"].concat();
        let spawns = split_by_spawn(&log);
        let outputs: Vec<&[u8]> = spawns.iter().map(|spawn| spawn.output).collect();
        assert_eq!(outputs, [&b"one\x1b]7762;teamd-spawn;now\x07"[..], b"", b"three"]);
        assert_eq!(spawns[0].spawned_at, None);
        assert_eq!(spawns[2].spawned_at, Some("1970-01-01T00:00:01.000Z"));
        assert_eq!(split_by_spawn(b"x"), [SpawnOutput { spawned_at: None, output: b"x" }]);
    }
}
