//! The colours that tell teammates apart. Their order is the original's, and the number of members that
//! ever joined picks one, so that a colour is not handed on while its first bearer's messages are read.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A teammate's colour; the lead has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "a colour's name says it")]
pub enum Color {
    Blue,
    Green,
    Yellow,
    Purple,
    Orange,
    Pink,
    Cyan,
    Red,
}

impl Color {
    /// All of them, in the order in which they are given out.
    pub const ALL: [Color; 8] = [
        Color::Blue,
        Color::Green,
        Color::Yellow,
        Color::Purple,
        Color::Orange,
        Color::Pink,
        Color::Cyan,
        Color::Red,
    ];

    /// The colour of the teammate before whom `joined` others joined, since the team began.
    pub fn for_joined_count(joined: u64) -> Color {
        Color::ALL[(joined % 8) as usize]
    }

    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Color::Blue => "blue",
            Color::Green => "green",
            Color::Yellow => "yellow",
            Color::Purple => "purple",
            Color::Orange => "orange",
            Color::Pink => "pink",
            Color::Cyan => "cyan",
            Color::Red => "red",
        }
    }

    /// The colour of that name, if it is one.
    pub fn from_name(name: &str) -> Option<Color> {
        Color::ALL.into_iter().find(|color| color.as_str() == name)
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ninth_is_blue_again() {
        assert_eq!(Color::for_joined_count(0), Color::Blue);
        assert_eq!(Color::for_joined_count(7), Color::Red);
        assert_eq!(Color::for_joined_count(8), Color::Blue);
        assert!(Color::ALL.iter().all(|c| Color::from_name(c.as_str()) == Some(*c)));
    }
}
