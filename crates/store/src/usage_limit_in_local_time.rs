//! Finds the end of a program's usage limit in the program's output. The parser is in `protocol`.
//! This module gives it the current time and the machine's time zones.

use crate::clock::now;
use jiff::tz::TimeZone;
use protocol::control_socket::UsageLimit;
use protocol::find_usage_limit::find_limit_end;
use protocol::timestamp::local_time;

/// The usage limit that `text` reports. `patterns` are the `limits` of the program's profile.
/// `None` if no pattern matches, or if the limit does not end within the next eight days.
pub fn read_usage_limit(text: &str, patterns: &[String]) -> Option<UsageLimit> {
    let now = now();
    let until = find_limit_end(text, patterns, now, &time_zone)?;
    Some(UsageLimit { until, local_time: local_time(until, now, &TimeZone::system()), tries: 1 })
}

/// The time zone with this name. With `None`, the machine's own time zone. Upper and lower case are
/// the same in a name of the time zone database.
fn time_zone(name: Option<&str>) -> Option<TimeZone> {
    match name {
        None => Some(TimeZone::system()),
        Some("utc" | "gmt") => Some(TimeZone::UTC),
        Some(name) => TimeZone::get(name).ok(),
    }
}
