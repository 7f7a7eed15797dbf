//! Formats times as clock times, such as `14:05`. A clock time on the screen stays correct. A
//! duration, as in `teamctl status`, would have to be redrawn each second.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The current time, in milliseconds since the epoch, and the time zone of the screen.
/// [`ScreenClock::text`] needs both to tell whether a time is of today.
#[derive(Debug, Clone)]
pub(crate) struct ScreenClock {
    now: u64,
    zone: TimeZone,
}

impl ScreenClock {
    /// The current time in the local time zone.
    pub(crate) fn current() -> ScreenClock {
        ScreenClock::at(store::now(), TimeZone::system())
    }

    /// A time, in milliseconds since the epoch, in a time zone.
    pub(crate) fn at(now: u64, zone: TimeZone) -> ScreenClock {
        ScreenClock { now, zone }
    }

    /// Formats a time in milliseconds since the epoch. A time of today becomes hour and minute, any
    /// other time becomes month and day.
    pub(crate) fn text(&self, ms: u64) -> String {
        match (self.zoned(ms), self.zoned(self.now)) {
            (Some(then), Some(now)) if then.date() == now.date() => {
                format!("{:02}:{:02}", then.hour(), then.minute())
            }
            (Some(then), _) => format!("{:02}-{:02}", then.month(), then.day()),
            (None, _) => "?".to_owned(),
        }
    }

    /// The date of today.
    pub(crate) fn day(&self) -> String {
        self.zoned(self.now).map(|now| now.date().to_string()).unwrap_or_default()
    }

    fn zoned(&self, ms: u64) -> Option<Zoned> {
        let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok())?;
        Some(time.to_zoned(self.zone.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_time_is_shown_as_time_and_older_time_as_date() {
        let minute = 60_000;
        let text = |ms, now| ScreenClock::at(now, TimeZone::UTC).text(ms);
        assert_eq!(text(61 * minute, 62 * minute), "01:01");
        assert_eq!(text(61 * minute, 61 * minute + 24 * 60 * minute), "01-01");
        assert_eq!(text(u64::MAX, 0), "?");
    }
}
