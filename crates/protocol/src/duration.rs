//! Durations as a person types them: `500ms`, `5s`, `10m`, `2h`.

use crate::terminal::visible;
use std::time::Duration;

/// No clock reaches its end from here.
const MAX_DURATION: Duration = Duration::from_secs(8760 * 3600);

/// A number and its unit; at most a year.
///
/// # Errors
/// A sentence that says what was wanted, with nothing in it that would steer a terminal.
pub fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    // clap prints what a parser says as it is.
    let shown = visible(text);
    let wrong = || format!("cannot read the duration {shown}: write it as 500ms, 5s, 10m or 2h");
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    let whole = number.checked_mul(milliseconds).map(Duration::from_millis).ok_or_else(wrong)?;
    if whole > MAX_DURATION {
        return Err(format!("cannot take the duration {shown}: a year, 8760h, is the longest"));
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_units_and_nothing_else() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("2h"), Ok(Duration::from_secs(7200)));
        assert!(parse("8760h").is_ok());
        for wrong in [
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
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(
            parse("\u{9b}31m").is_err_and(|told| told.contains(r"\u{9b}31m:")),
            "it would steer a terminal"
        );
    }
}
