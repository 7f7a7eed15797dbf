//! Colors the iTerm2 session in which the shim runs, with the color of the shim's member. The
//! command-line tool `it2` cannot do that, so the shim prints the escape sequences of iTerm2.

use protocol::member_color::Color;
use std::io::Write;

/// Prints the escape sequences to the terminal. Without a terminal the session has no color.
pub(crate) fn set_session_color(color: Color) {
    let mut output = std::io::stdout().lock();
    output.write_all(escape_sequences(color).as_bytes()).and_then(|()| output.flush()).ok();
}

fn escape_sequences(color: Color) -> String {
    let components = ["red", "green", "blue"].into_iter().zip(rgb(color));
    components.map(|(name, value)| format!("\x1b]6;1;bg;{name};brightness;{value}\x07")).collect()
}

fn rgb(color: Color) -> [u8; 3] {
    match color {
        Color::Blue => [70, 120, 230],
        Color::Green => [60, 170, 80],
        Color::Yellow => [220, 190, 50],
        Color::Purple => [150, 90, 210],
        Color::Orange => [235, 140, 50],
        Color::Pink => [230, 110, 170],
        Color::Cyan => [50, 180, 200],
        Color::Red => [215, 70, 70],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_has_three_sequences() {
        assert_eq!(
            escape_sequences(Color::Red),
            "\x1b]6;1;bg;red;brightness;215\x07\x1b]6;1;bg;green;brightness;70\x07\x1b]6;1;bg;blue;brightness;70\x07"
        );
    }
}
