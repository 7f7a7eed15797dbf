//! A duration as people see it in tables: `119s`, `2m`, `3h`.

/// Formats a duration in seconds, minutes or hours: `119s`, `2m`, `3h`.
pub fn short_duration(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3600),
    }
}
