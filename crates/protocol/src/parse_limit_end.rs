//! Parses the time at which a usage limit ends, in the forms that programs write:
//!
//! - seconds or milliseconds since the epoch: `1762952400`
//! - ISO 8601: `2026-11-28T15:00:00Z`
//! - a duration: `5 days 22 hours 11 minutes`, `1h2m3s`
//! - a clock time: `3pm (Europe/Berlin)`, `15:04`, `Nov 29, 11:34pm (UTC)`, `Jul 5th, 2026 8:19 PM`
//!
//! A clock time without a date usually means the next such time. If the clock time was less than an
//! hour ago, the past time is returned, because the program may have written it late.

use crate::timestamp::parse_iso8601;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Returns the time zone of a lowercase name, or the machine's zone if there is no name. The result
/// is `None` if the machine does not know the zone.
pub type ZoneLookup<'z> = &'z dyn Fn(Option<&str>) -> Option<TimeZone>;

/// A clock time without a date may be at most this many seconds ago. Otherwise it means the same
/// time of the next day.
const LATE_SECONDS: i64 = 60 * 60;
/// A clock time with a date, but without a year, may be at most this many seconds ago. Otherwise it
/// means the date in the next year.
const LATE_DATE_SECONDS: i64 = 24 * 60 * 60;
/// The longest name of a time zone, in bytes.
const MAX_ZONE_NAME: usize = 64;
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Parses the time at the start of `text`, which is in lower case with single spaces. Returns the
/// time, in milliseconds since the epoch, and the number of parsed bytes. `now` is the current time
/// in milliseconds since the epoch. `None` if the text does not begin with a time.
pub fn parse_limit_end(text: &str, now: u64, zone: ZoneLookup<'_>) -> Option<(u64, usize)> {
    let mut words = Words(text);
    while ["at ", "in ", "after ", "on "].into_iter().any(|word| words.skip(word)) {}
    let end = words
        .attempt(epoch)
        .or_else(|| words.attempt(iso_time))
        .or_else(|| words.attempt(duration).map(|length| now.saturating_add(length)))
        .or_else(|| words.attempt(|words| clock_time(words, now, zone)))?;
    Some((end, text.len() - words.0.len()))
}

/// The text that is not parsed yet.
#[derive(Clone, Copy)]
struct Words<'t>(&'t str);

impl<'t> Words<'t> {
    /// Parses a part. If the parser returns `None`, nothing is consumed.
    fn attempt<T>(&mut self, parse: impl FnOnce(&mut Words<'t>) -> Option<T>) -> Option<T> {
        let mut words = *self;
        let parsed = parse(&mut words)?;
        *self = words;
        Some(parsed)
    }

    fn skip(&mut self, prefix: &str) -> bool {
        self.0.strip_prefix(prefix).map(|rest| self.0 = rest).is_some()
    }

    fn take_while(&mut self, is_taken: impl Fn(char) -> bool) -> &'t str {
        let length = self.0.find(|c| !is_taken(c)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    /// A number of at most `digits` digits.
    fn number(&mut self, digits: usize) -> Option<u64> {
        let number = self.take_while(|c| c.is_ascii_digit());
        (number.len() <= digits).then(|| number.parse().ok())?
    }
}

fn epoch(words: &mut Words<'_>) -> Option<u64> {
    let number = words.take_while(|c| c.is_ascii_digit());
    match number.len() {
        10 => number.parse::<u64>().ok().map(|seconds| seconds * 1000),
        13 => number.parse().ok(),
        _ => None,
    }
}

fn iso_time(words: &mut Words<'_>) -> Option<u64> {
    let text = words.take_while(|c| c.is_ascii_alphanumeric() || "-+:.".contains(c));
    parse_iso8601(&text.trim_end_matches('.').to_ascii_uppercase())
}

/// A duration in milliseconds: numbers with units, such as `1h2m3s` or `2 hours and 13 minutes`.
fn duration(words: &mut Words<'_>) -> Option<u64> {
    let mut total = words.attempt(duration_part)?;
    while let Some(part) = words.attempt(|words| {
        while [" ", ",", "and "].into_iter().any(|separator| words.skip(separator)) {}
        duration_part(words)
    }) {
        total = total.saturating_add(part);
    }
    Some(total)
}

fn duration_part(words: &mut Words<'_>) -> Option<u64> {
    let number = words.number(9)?;
    if words.skip(".") {
        words.number(usize::MAX)?;
    }
    words.skip(" ");
    let unit = match words.take_while(|c| c.is_ascii_alphabetic()) {
        "w" | "week" | "weeks" => 7 * 24 * 60 * 60 * 1000,
        "d" | "day" | "days" => 24 * 60 * 60 * 1000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 60 * 60 * 1000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * 1000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1000,
        "ms" => 1,
        _ => return None,
    };
    Some(number.saturating_mul(unit))
}

/// A clock time with an optional date before it and an optional zone after it.
fn clock_time(words: &mut Words<'_>, now: u64, zone: ZoneLookup<'_>) -> Option<u64> {
    let date = words.attempt(month_and_day);
    let time = time_of_day(words)?;
    let zone = words.attempt(zone_name).map_or_else(|| zone(None), |name| zone(Some(name)))?;
    let now = Timestamp::from_millisecond(i64::try_from(now).ok()?).ok()?.to_zoned(zone);
    let end = match date {
        None => next_clock_time(&now, time)?,
        Some((month, day, Some(year))) => zoned(Date::new(year, month, day).ok()?, time, &now)?,
        Some((month, day, None)) => next_date(&now, month, day, time)?,
    };
    u64::try_from(end.timestamp().as_millisecond()).ok()
}

/// `nov 29`, `jul 5th, 2026`, each with an optional comma or `at` after it.
fn month_and_day(words: &mut Words<'_>) -> Option<(i8, i8, Option<i16>)> {
    let name = words.take_while(|c| c.is_ascii_alphabetic());
    let month = MONTHS.iter().position(|month| name.starts_with(month))? + 1;
    words.skip(".");
    words.skip(" ").then_some(())?;
    let day = words.number(2)?;
    ["st", "nd", "rd", "th"].into_iter().any(|suffix| words.skip(suffix));
    skip_separators(words);
    let year = words.attempt(|words| {
        let year = words.number(4).filter(|year| *year >= 2000)?;
        [" ", ","].into_iter().any(|separator| words.0.starts_with(separator)).then_some(year)
    });
    skip_separators(words);
    Some((i8::try_from(month).ok()?, i8::try_from(day).ok()?, year.and_then(|year| i16::try_from(year).ok())))
}

fn skip_separators(words: &mut Words<'_>) {
    while [" ", ",", "at "].into_iter().any(|separator| words.skip(separator)) {}
}

/// `3pm`, `3:04 pm`, `15:04` or `15:04:05`.
fn time_of_day(words: &mut Words<'_>) -> Option<Time> {
    let hour = words.number(2)?;
    let mut two_digits = || words.attempt(|words| words.skip(":").then(|| words.number(2))?);
    let (minute, second) = (two_digits(), two_digits());
    let half = words.attempt(|words| {
        words.skip(" ");
        let half = words.take_while(|c| c.is_ascii_alphabetic() || c == '.');
        match half.trim_end_matches('.') {
            "am" | "a.m" => Some(0),
            "pm" | "p.m" => Some(12),
            _ => None,
        }
    });
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
        None => minute.map(|_| hour)?,
    };
    let part = |number: u64| i8::try_from(number).ok();
    Time::new(part(hour)?, part(minute.unwrap_or(0))?, part(second.unwrap_or(0))?, 0).ok()
}

/// `(europe/berlin)` or `utc`.
fn zone_name<'t>(words: &mut Words<'t>) -> Option<&'t str> {
    words.skip(" ");
    let is_in_parentheses = words.skip("(");
    let name = words.take_while(|c| c.is_ascii_alphanumeric() || "/_+-".contains(c));
    let is_name = if is_in_parentheses { words.skip(")") } else { ["utc", "gmt"].contains(&name) };
    (is_name && (1..=MAX_ZONE_NAME).contains(&name.len())).then_some(name)
}

fn zoned(date: Date, time: Time, now: &Zoned) -> Option<Zoned> {
    date.to_datetime(time).to_zoned(now.time_zone().clone()).ok()
}

/// The next moment with this clock time, or the last one if it is less than [`LATE_SECONDS`] ago.
fn next_clock_time(now: &Zoned, time: Time) -> Option<Zoned> {
    let today = now.date();
    let days = [today.yesterday().ok()?, today, today.tomorrow().ok()?];
    days.into_iter()
        .filter_map(|day| zoned(day, time, now))
        .find(|end| seconds_since(end, now) < LATE_SECONDS)
}

/// The next moment with this date and clock time, or the last one if it is less than a day ago.
fn next_date(now: &Zoned, month: i8, day: i8, time: Time) -> Option<Zoned> {
    let in_year = |year: i16| zoned(Date::new(year, month, day).ok()?, time, now);
    let years = [now.year().checked_sub(1)?, now.year(), now.year().checked_add(1)?];
    years.into_iter().filter_map(in_year).find(|end| seconds_since(end, now) < LATE_DATE_SECONDS)
}

/// How long `end` has passed. Negative if it is still to come.
fn seconds_since(end: &Zoned, now: &Zoned) -> i64 {
    now.timestamp().as_second() - end.timestamp().as_second()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::timestamp::iso8601;

    /// 2026-11-28T12:00:00Z, a Saturday.
    pub(crate) const NOW: u64 = 1_795_867_200_000;

    /// The machine is two hours east of Greenwich. `europe/berlin` is the only known zone.
    pub(crate) fn zone(name: Option<&str>) -> Option<TimeZone> {
        match name {
            None => Some(TimeZone::fixed(jiff::tz::offset(2))),
            Some("europe/berlin") => TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").ok(),
            Some("utc" | "gmt") => Some(TimeZone::UTC),
            Some(_) => None,
        }
    }

    /// The parsed time, and what follows it.
    fn parse_at(text: &str, now: u64) -> Option<(String, &str)> {
        parse_limit_end(text, now, &zone).map(|(end, length)| (iso8601(end), &text[length..]))
    }

    #[test]
    fn times_of_known_programs_are_parsed() {
        for (text, end, rest) in [
            // Claude Code.
            ("1795878000", "28T15:00:00", ""),
            ("1:33am (utc)", "29T01:33:00", ""),
            ("3pm (europe/berlin) x", "28T14:00:00", " x"),
            ("3pm", "28T13:00:00", ""),
            ("nov 29, 11:34pm (utc)", "29T23:34:00", ""),
            ("at 9:30 am. view your usage", "29T07:30:00", " view your usage"),
            // Codex.
            ("in 5 days 22 hours 11 minutes.", "04T10:11:00", "."),
            ("in 2 hours and 13 minutes or", "28T14:13:00", " or"),
            ("at 3:28 pm.", "28T13:28:00", ""),
            ("at nov 30th, 2026 8:19 pm.", "30T18:19:00", ""),
            ("at dec 1, 2026, 7:38 am\"}", "01T05:38:00", "\"}"),
            ("1795878000,\"x\"", "28T15:00:00", ",\"x\""),
            // Gemini.
            ("1h49m8s.", "28T13:49:08", "."),
            ("after 21h53m56s.", "29T09:53:56", "."),
            ("34.074824224s", "28T12:00:34", ""),
            // Others.
            ("1795878000000", "28T15:00:00", ""),
            ("2026-11-28t15:00:00z", "28T15:00:00", ""),
            ("15:04", "28T13:04:00", ""),
            ("12am utc", "29T00:00:00", ""),
            ("12:05 p.m. (gmt)", "28T12:05:00", ""),
        ] {
            let (parsed, parsed_rest) = parse_at(text, NOW).unwrap_or_else(|| panic!("{text}"));
            assert!(parsed.contains(end), "{text}: {parsed}");
            assert_eq!(parsed_rest, rest, "{text}");
        }
    }

    #[test]
    fn clock_time_is_the_next_one_unless_it_has_just_passed() {
        assert_eq!(parse_at("1:30pm", NOW).unwrap().0, "2026-11-28T11:30:00.000Z");
        assert_eq!(parse_at("1pm", NOW).unwrap().0, "2026-11-29T11:00:00.000Z");
        assert_eq!(parse_at("2:30pm", NOW).unwrap().0, "2026-11-28T12:30:00.000Z");
    }

    #[test]
    fn date_without_a_year_is_the_next_one() {
        let new_years_eve = 1_798_754_400_000;
        assert_eq!(parse_at("jan 2, 3pm (utc)", new_years_eve).unwrap().0, "2027-01-02T15:00:00.000Z");
        let new_years_day = new_years_eve + 6 * 3_600_000;
        assert_eq!(parse_at("dec 31, 11pm (utc)", new_years_day).unwrap().0, "2026-12-31T23:00:00.000Z");
        let after_midnight = NOW + 12 * 3_600_000 + 1_800_000;
        assert_eq!(parse_at("11:50pm (utc)", after_midnight).unwrap().0, "2026-11-28T23:50:00.000Z");
        assert_eq!(parse_at("nov 28, 11am (utc)", NOW).unwrap().0, "2026-11-28T11:00:00.000Z");
        assert_eq!(parse_at("nov 1, 11am (utc)", NOW).unwrap().0, "2027-11-01T11:00:00.000Z");
    }

    #[test]
    fn clock_time_that_daylight_saving_skips_or_repeats_is_accepted() {
        let before_change = 1_774_738_800_000; // 2026-03-29T00:00:00+01:00
        assert_eq!(parse_at("2:30am (europe/berlin)", before_change).unwrap().0, "2026-03-29T01:30:00.000Z");
        let before_repeat = 1_792_879_200_000; // 2026-10-25T00:00:00+02:00
        assert_eq!(parse_at("2:30am (europe/berlin)", before_repeat).unwrap().0, "2026-10-25T00:30:00.000Z");
    }

    #[test]
    fn other_texts_are_no_times() {
        let long_zone = format!("3pm ({})", "x".repeat(65));
        for text in [
            "",
            "at",
            "soon",
            "3",
            "25:00",
            "13pm",
            "0am",
            "3:99",
            "feb 30, 3pm",
            "nov 3",
            "monday 3pm",
            "3pm (mars/base)",
            "99999999999999999999",
            "99999999999 days",
            "1 month",
            "5 apples",
            "-5 minutes",
            "2026-99-99t00:00:00z",
            "ä",
            "१२:३०",
        ] {
            assert_eq!(parse_at(text, NOW), None, "{text}");
        }
        // A text that cannot be the name of a zone is not part of the time.
        assert_eq!(parse_at(&long_zone, NOW).unwrap().0, "2026-11-28T13:00:00.000Z");
        for no_zone in [" (utc", " (../../etc/passwd)", " ()"] {
            assert_eq!(parse_at(&format!("3pm{no_zone}"), NOW).unwrap().1, no_zone);
        }
        assert_eq!(parse_at("3pm", u64::MAX), None);
        assert!(parse_at("999999999 weeks", NOW).is_some_and(|(end, _)| end.starts_with("9999")));
    }
}
