//! Formats times as clock times in the local time zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Formats a time in milliseconds since the epoch. A time of today becomes hour and minute, any
/// other time becomes month and day. The screen shows clock times because they stay correct until
/// the next event. A duration, as in `teamctl status`, would have to be redrawn each second.
pub(crate) fn clock_time(ms: u64) -> String {
    format_clock_time(ms, store::now(), &TimeZone::system())
}

/// Today's date in the local time zone.
pub(crate) fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

fn format_clock_time(ms: u64, now: u64, zone: &TimeZone) -> String {
    let at = |ms: u64| {
        let ms = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok())?;
        Some(ms.to_zoned(zone.clone()))
    };
    match (at(ms), at(now)) {
        (Some(then), Some(now)) if then.date() == now.date() => {
            format!("{:02}:{:02}", then.hour(), then.minute())
        }
        (Some(then), _) => format!("{:02}-{:02}", then.month(), then.day()),
        (None, _) => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_time_is_shown_as_time_and_older_time_as_date() {
        let minute = 60_000;
        let text = |ms, now| format_clock_time(ms, now, &TimeZone::UTC);
        assert_eq!(text(61 * minute, 62 * minute), "01:01");
        assert_eq!(text(61 * minute, 61 * minute + 24 * 60 * minute), "01-01");
        assert_eq!(text(u64::MAX, 0), "?");
    }
}
