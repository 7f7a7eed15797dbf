//! Parses durations that a user types, such as `500ms`, `5s`, `10m` or `2h`.

use crate::escape_control_chars::visible;
use std::time::Duration;

/// The longest accepted duration, one year. Adding it to the current time cannot overflow.
const MAX_DURATION: Duration = Duration::from_secs(8760 * 3600);

/// Parses a duration: a number followed by the unit `ms`, `s`, `m` or `h`. The longest duration is
/// one year.
///
/// # Errors
///
/// A sentence that names the accepted format. The sentence contains no control characters.
pub fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    // clap prints the error text unchanged, so control characters must be escaped here.
    let shown = visible(text);
    let invalid = || format!("cannot read the duration {shown}: write it as 500ms, 5s, 10m or 2h");
    let number: u64 = number.parse().map_err(|_| invalid())?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(invalid()),
    };
    let duration = number.checked_mul(milliseconds).map(Duration::from_millis).ok_or_else(invalid)?;
    if duration > MAX_DURATION {
        return Err(format!("cannot take the duration {shown}: a year, 8760h, is the longest"));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_units_are_accepted() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("2h"), Ok(Duration::from_secs(7200)));
        assert!(parse("8760h").is_ok());
        for invalid in [
            "8761h",
            "18446744073709551615ms",
            "",
            "5",
            "s",
            "-1s",
            "1.5s",
            "5 s",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
        assert!(
            parse("\u{9b}31m").is_err_and(|error| error.contains(r"\u{9b}31m:")),
            "control characters are escaped"
        );
    }
}
