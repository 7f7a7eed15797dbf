//! Finds the end of a usage limit in the output of a program.
//!
//! A profile lists patterns, such as `limit · resets {time}`. `{time}` stands for the end of the
//! limit, as [`crate::parse_limit_end`] parses it. `*` stands for any text of at most 400 bytes.
//! Directly after `{time}`, any text of this length is allowed even without a `*`. Case, frames
//! around text, line wraps and repeated spaces are ignored.

use crate::match_dialog_on_screen::is_frame_char;
use crate::parse_limit_end::{ZoneLookup, parse_limit_end};

/// The variable of a pattern that stands for the end of the limit.
const TIME_VARIABLE: &str = "{time}";
/// The longest text for which `*` stands, in bytes.
const MAX_GAP: usize = 400;
/// The longest time from now to the end of a limit, in milliseconds. A limit that ends later counts
/// as unknown. The limits of known programs last at most a week.
const MAX_AHEAD_MS: u64 = 8 * 24 * 60 * 60 * 1000;

/// Returns the end of the usage limit that `text` names, in milliseconds since the epoch. If
/// several places in `text` match a pattern, the last one counts. `now` is the current time in
/// milliseconds since the epoch.
///
/// `None` if no place in `text` matches a pattern and has a valid time, or if the time is not
/// within eight days after `now`.
pub fn find_limit_end(text: &str, patterns: &[String], now: u64, zone: ZoneLookup<'_>) -> Option<u64> {
    let text = normalize(text);
    let ends = patterns.iter().filter_map(|pattern| last_match(&text, pattern, now, zone));
    let (_, end) = ends.max_by_key(|(position, _)| *position)?;
    (end > now && end - now <= MAX_AHEAD_MS).then_some(end)
}

/// Whether `pattern` names the place of the time exactly once, with words directly before it.
pub fn is_limit_pattern(pattern: &str) -> bool {
    match normalize(pattern).split_once(TIME_VARIABLE) {
        Some((before, after)) => {
            segments(before).last().is_some_and(|words| !words.is_empty()) && !after.contains(TIME_VARIABLE)
        }
        None => false,
    }
}

/// The last place in `text` that matches `pattern`: its position, and the time there.
fn last_match(text: &str, pattern: &str, now: u64, zone: ZoneLookup<'_>) -> Option<(usize, u64)> {
    let pattern = normalize(pattern);
    let (before, after) = pattern.split_once(TIME_VARIABLE)?;
    let mut before = segments(before);
    let words = before.pop().filter(|words| !words.is_empty())?;
    let positions = text.rmatch_indices(words).map(|(position, _)| position);
    positions.filter(|position| precede(&text[..*position], &before)).find_map(|position| {
        let rest = text[position + words.len()..].trim_start();
        let (end, length) = parse_limit_end(rest, now, zone)?;
        follow(&rest[length..], &segments(after)).then_some((position, end))
    })
}

/// The segments of a part of a pattern: the texts between its `*`.
fn segments(part: &str) -> Vec<&str> {
    part.split('*').map(str::trim).collect()
}

/// Whether `text` ends with `segments` (the parts of a pattern between its `*`), in their order. Up
/// to [`MAX_GAP`] bytes may follow each segment.
fn precede(text: &str, segments: &[&str]) -> bool {
    let mut rest = text;
    segments.iter().rev().all(|words| {
        let start = (rest.len().saturating_sub(MAX_GAP + words.len())..=rest.len())
            .find(|start| rest.is_char_boundary(*start))
            .unwrap_or(rest.len());
        let found = rest[start..].rfind(words);
        found.map(|position| rest = &rest[..start + position]).is_some()
    })
}

/// Whether `text` begins with `segments` (the parts of a pattern between its `*`), in their order.
/// Up to [`MAX_GAP`] bytes may come before each segment.
fn follow(text: &str, segments: &[&str]) -> bool {
    let mut rest = text;
    segments.iter().all(|words| {
        let end = (0..=rest.len().min(MAX_GAP + words.len())).rev().find(|end| rest.is_char_boundary(*end));
        let found = rest[..end.unwrap_or(0)].find(words);
        found.map(|position| rest = &rest[position + words.len()..]).is_some()
    })
}

/// The text in lower case, without frames, and with one space between words.
fn normalize(text: &str) -> String {
    let plain = |c: char| match c {
        '’' => '\'',
        c if is_frame_char(c) => ' ',
        c => c.to_ascii_lowercase(),
    };
    let text: String = text.chars().map(plain).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_limit_end::tests::{NOW, zone};
    use crate::timestamp::iso8601;

    fn limit_end(text: &str, patterns: &[&str]) -> Option<String> {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        find_limit_end(text, &patterns, NOW, &zone).map(iso8601)
    }

    fn at(time: &str) -> Option<String> {
        Some(format!("2026-11-{time}:00.000Z"))
    }

    #[test]
    fn time_is_found_despite_frames_wraps_and_case() {
        let pattern = ["usage limit * try again {time}"];
        let text =
            "│ ■ You've hit your Usage Limit. Upgrade to Pro or try │\n│ again in 2 hours 13\nminutes.";
        assert_eq!(limit_end(text, &pattern), at("28T14:13"));
        assert_eq!(limit_end("You’ve hit it 3pm", &["you've hit it {time}"]), at("28T13:00"));
    }

    #[test]
    fn words_before_and_after_the_time_must_be_there() {
        assert_eq!(limit_end("try again in 2 hours", &["usage limit * try again {time}"]), None);
        let menu = ["limit · resets {time} * 1. stop and wait"];
        assert_eq!(limit_end("limit · resets 3pm (UTC)\n\n❯ 1. Stop and wait", &menu), at("28T15:00"));
        assert_eq!(limit_end("limit · resets 3pm (UTC)\n\n❯ ", &menu), None);
        let far = format!("limit · resets 3pm (UTC) {} 1. Stop and wait", "x".repeat(500));
        assert_eq!(limit_end(&far, &menu), None);
    }

    #[test]
    fn last_place_with_a_time_counts() {
        let patterns = ["resets {time}", "again at {time}"];
        let text = "resets 1pm (UTC)\nagain at 3pm (UTC)\nresets 2pm (UTC)\nresets soon";
        assert_eq!(limit_end(text, &patterns), at("28T14:00"));
    }

    #[test]
    fn past_and_distant_ends_are_unknown() {
        for text in ["resets 11:59am (UTC)", "resets in 0s", "resets in 9 days", "resets 9999999999"] {
            assert_eq!(limit_end(text, &["resets {time}"]), None, "{text}");
        }
        assert_eq!(
            limit_end("resets in 8 days", &["resets {time}"]),
            Some("2026-12-06T12:00:00.000Z".into())
        );
    }

    #[test]
    fn hostile_texts_and_patterns_match_nothing() {
        let long = "ä limit · resets ".repeat(5_000);
        for text in ["", "resets", "resets ", "resets 99999999999999999999 days", &long] {
            for pattern in
                ["resets {time}", "*{time}", "{time}", "", "* * resets {time} * *", "x{time}{time}"]
            {
                assert_eq!(limit_end(text, &[pattern]), None, "{pattern}");
            }
        }
    }

    #[test]
    fn pattern_has_one_time_after_words() {
        for valid in ["resets {time}", "a * b {time} * c", "|{time}"] {
            assert!(is_limit_pattern(valid), "{valid}");
        }
        for invalid in ["", "resets", "{time}", " {time} resets", "resets * {time}", "a {time} b {time}"] {
            assert!(!is_limit_pattern(invalid), "{invalid}");
        }
    }
}
