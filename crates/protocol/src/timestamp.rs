//! Timestamps in files: milliseconds since the epoch, or ISO 8601 in UTC with milliseconds and `Z`.
//! This module reads no clock; the caller passes the current time in.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Formats `ms`, in milliseconds since the epoch, as `2026-02-13T10:05:44.590Z`. A time after the
/// year 9999 becomes the last millisecond of that year.
pub fn iso8601(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", time.unwrap_or(Timestamp::MAX))
}

/// Parses an ISO 8601 time with any UTC offset into milliseconds since the epoch. `None` if `text`
/// is not a time or is a time before 1970.
pub fn parse_iso8601(text: &str) -> Option<u64> {
    u64::try_from(text.parse::<Timestamp>().ok()?.as_millisecond()).ok()
}

/// Parses a time that a person types: a time that [`parse_iso8601`] accepts, a date, or a date with
/// a time. A time without an offset is in UTC, like all times that teamd prints.
pub fn parse_typed_time(text: &str) -> Option<u64> {
    let in_utc = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
    parse_iso8601(text).or_else(|| u64::try_from(in_utc()?.timestamp().as_millisecond()).ok())
}

/// Formats `ms`, in milliseconds since the epoch, for people in the time zone `zone`: `15:00`, or
/// `11-29 15:00` if the time is not on the same day as `now`. A time after the year 9999 gives `?`.
pub fn local_time(ms: u64, now: u64, zone: &TimeZone) -> String {
    let at = |ms: u64| {
        let ms = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok())?;
        Some(ms.to_zoned(zone.clone()))
    };
    let Some(time) = at(ms) else { return "?".to_owned() };
    let clock = format!("{:02}:{:02}", time.hour(), time.minute());
    match at(now) {
        Some(now) if now.date() == time.date() => clock,
        _ => format!("{:02}-{:02} {clock}", time.month(), time.day()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_formatted_as_in_javascript() {
        assert_eq!(iso8601(1_770_977_144_590), "2026-02-13T10:05:44.590Z");
        assert_eq!(iso8601(0), "1970-01-01T00:00:00.000Z");
        assert!(iso8601(u64::MAX).starts_with("9999-"));
    }

    #[test]
    fn local_time_has_a_date_unless_it_is_today() {
        let text = |ms, now| local_time(ms, now, &TimeZone::fixed(jiff::tz::offset(1)));
        assert_eq!(text(3_660_000, 0), "02:01");
        assert_eq!(text(82_800_000, 82_799_000), "01-02 00:00");
        assert_eq!(text(u64::MAX, 0), "?");
    }

    #[test]
    fn time_is_parsed() {
        assert_eq!(parse_iso8601("2026-02-13T10:05:44.590Z"), Some(1_770_977_144_590));
        assert_eq!(parse_iso8601("2026-02-13T11:05:44.590+01:00"), Some(1_770_977_144_590));
        assert_eq!(parse_iso8601("yesterday"), None);
        assert_eq!(parse_iso8601("1969-12-31T00:00:00Z"), None);
        assert_eq!(parse_iso8601("1970-01-02"), None);
    }

    #[test]
    fn typed_time_without_offset_is_in_utc() {
        assert_eq!(parse_typed_time("1970-01-02"), Some(86_400_000));
        assert_eq!(parse_typed_time("1970-01-02T01:00"), Some(90_000_000));
        assert_eq!(parse_typed_time("1970-01-02 01:00:01"), Some(90_001_000));
        assert_eq!(parse_typed_time("1970-01-02T01:00:00+01:00"), Some(86_400_000));
        assert!(
            ["yesterday", "01:00", "1969-12-31", ""].into_iter().all(|text| parse_typed_time(text).is_none())
        );
    }
}
