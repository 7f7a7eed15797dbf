//! Times as the files spell them: milliseconds since the epoch, or ISO 8601 in UTC with milliseconds and a
//! `Z`. No clock here: the caller brings the time.

use jiff::Timestamp;

/// `ms` as `2026-02-13T10:05:44.590Z`; a time beyond the year 9999 is written as the last one before it.
pub fn iso8601(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", time.unwrap_or(Timestamp::MAX))
}

/// The milliseconds since the epoch that `text` names, in any offset; none if it is no time, or before 1970.
pub fn parse_iso8601(text: &str) -> Option<u64> {
    u64::try_from(text.parse::<Timestamp>().ok()?.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_spelled_like_javascript_does() {
        assert_eq!(iso8601(1_770_977_144_590), "2026-02-13T10:05:44.590Z");
        assert_eq!(iso8601(0), "1970-01-01T00:00:00.000Z");
        assert!(iso8601(u64::MAX).starts_with("9999-"));
    }

    #[test]
    fn a_time_is_read_back() {
        assert_eq!(parse_iso8601("2026-02-13T10:05:44.590Z"), Some(1_770_977_144_590));
        assert_eq!(parse_iso8601("2026-02-13T11:05:44.590+01:00"), Some(1_770_977_144_590));
        assert_eq!(parse_iso8601("yesterday"), None);
        assert_eq!(parse_iso8601("1969-12-31T00:00:00Z"), None);
    }
}
