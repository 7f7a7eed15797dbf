//! Colors of members, which tell teammates apart.
//!
//! The colors have the same order as in Claude Code. Each new member gets the next color in this
//! order, and after the last color the first. So the color of a member that has left is not reused
//! at once, while people still read that member's messages.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A teammate's color. The lead has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are those of colors")]
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
    /// All colors, in the order in which they are assigned.
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

    /// The color of a new teammate. `joined` counts the teammates that have joined the team before,
    /// including teammates that have left.
    pub fn for_joined_count(joined: u64) -> Color {
        Color::ALL[(joined % 8) as usize]
    }

    /// The color's name in files.
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

    /// The color with this name. `None` if there is no such color.
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
    fn colors_repeat_after_the_eighth_teammate() {
        assert_eq!(Color::for_joined_count(0), Color::Blue);
        assert_eq!(Color::for_joined_count(7), Color::Red);
        assert_eq!(Color::for_joined_count(8), Color::Blue);
        assert!(Color::ALL.iter().all(|c| Color::from_name(c.as_str()) == Some(*c)));
    }
}
