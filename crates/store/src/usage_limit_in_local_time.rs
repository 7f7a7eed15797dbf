//! Finds the usage limit that a program's output names. Unlike the parser in
//! `protocol`, this module knows the clock and the time zones of the machine.

use crate::clock::now;
use jiff::tz::TimeZone;
use protocol::control_socket::UsageLimit;
use protocol::find_usage_limit::find_limit_end;
use protocol::timestamp::local_time;

/// The usage limit that `text` names, according to the `limits` of a profile. `None` if the text
/// names none, or if the end of the limit is not known.
pub fn read_usage_limit(text: &str, patterns: &[String]) -> Option<UsageLimit> {
    let now = now();
    let until = find_limit_end(text, patterns, now, &time_zone)?;
    Some(UsageLimit { until, local_time: local_time(until, now, &TimeZone::system()), tries: 1 })
}

/// The time zone of this name, or with `None` the zone of the machine. The names of the machine's
/// database are compared without regard to case.
fn time_zone(name: Option<&str>) -> Option<TimeZone> {
    match name {
        None => Some(TimeZone::system()),
        Some("utc" | "gmt") => Some(TimeZone::UTC),
        Some(name) => TimeZone::get(name).ok(),
    }
}
