//! What of a team is to be seen, and in which shape.

use crate::name::{AgentName, TeamName};
use serde::{Deserialize, Serialize};

/// How the panes of a team share their windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Equal shares in rows and columns.
    #[default]
    Tiled,
    /// One large pane on the left, the others one above the other on the right.
    MainVertical,
    /// One large pane above, the others side by side below.
    MainHorizontal,
    /// Side by side.
    EvenHorizontal,
    /// One above the other.
    EvenVertical,
}

impl Layout {
    /// Every one, with the word that people type and tmux knows.
    pub const ALL: [(Layout, &'static str); 5] = [
        (Layout::Tiled, "tiled"),
        (Layout::MainVertical, "main-vertical"),
        (Layout::MainHorizontal, "main-horizontal"),
        (Layout::EvenHorizontal, "even-horizontal"),
        (Layout::EvenVertical, "even-vertical"),
    ];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        Layout::ALL.iter().find(|(layout, _)| *layout == self).map_or("tiled", |(_, word)| word)
    }
}

/// A team's windows are to have this layout, those that come later too.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetLayoutRequest {
    /// Which team's.
    pub team: TeamName,
    /// Which.
    pub layout: Layout,
}

/// What `layout` came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetLayoutReply {
    /// Whose windows.
    pub team_name: TeamName,
    /// What they have now.
    pub layout: Layout,
    /// How many windows there are just now.
    pub windows: usize,
}

/// Where a member's pane is after `hide` or `show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VisibilityReply {
    /// The member.
    pub name: AgentName,
    /// `%14`.
    pub pane: String,
    /// Out of sight or not.
    pub hidden: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_written_as_its_word() {
        for (layout, word) in Layout::ALL {
            assert_eq!(serde_json::to_value(layout).unwrap(), word);
            assert_eq!(layout.as_str(), word);
        }
    }
}
