//! Requests and replies about the layout and visibility of a team's panes.

use crate::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};

/// How the panes of a team are arranged in their windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Equal shares in rows and columns.
    #[default]
    Tiled,
    /// One large pane on the left, the others stacked on the right.
    MainVertical,
    /// One large pane at the top, the others side by side at the bottom.
    MainHorizontal,
    /// All panes side by side.
    EvenHorizontal,
    /// All panes stacked.
    EvenVertical,
}

impl Layout {
    /// All layouts with their names in teamctl and tmux.
    pub const ALL: [(Layout, &'static str); 5] = [
        (Layout::Tiled, "tiled"),
        (Layout::MainVertical, "main-vertical"),
        (Layout::MainHorizontal, "main-horizontal"),
        (Layout::EvenHorizontal, "even-horizontal"),
        (Layout::EvenVertical, "even-vertical"),
    ];

    /// The layout's name.
    pub fn as_str(self) -> &'static str {
        Layout::ALL.iter().find(|(layout, _)| *layout == self).map_or("tiled", |(_, name)| name)
    }
}

/// Sets the layout of a team's windows, also of windows that are opened later.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetLayoutRequest {
    /// The team.
    pub team: TeamName,
    /// The new layout.
    pub layout: Layout,
}

/// The reply to a [`SetLayoutRequest`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetLayoutReply {
    /// The team.
    pub team_name: TeamName,
    /// The new layout.
    pub layout: Layout,
    /// Number of the team's current windows.
    pub windows: usize,
}

/// A pane of a person, beside which the panes of a team are opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PersonPane {
    /// The pane, such as `%14`.
    pub pane: String,
    /// Process id of the tmux server on which the pane is. Another server may have a pane with the
    /// same id.
    pub server_pid: u32,
    /// The share of its width that the pane keeps, in percent.
    pub kept_percent: u8,
}

/// Sets the pane beside which the panes of a team are opened from now on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetPersonPaneRequest {
    /// The team.
    pub team: TeamName,
    /// The pane.
    pub person_pane: PersonPane,
}

/// The reply to a request that hides or shows a member's pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VisibilityReply {
    /// Name of the member.
    pub name: MemberName,
    /// The pane, such as `%14`.
    pub pane: String,
    /// Whether the pane is hidden.
    pub is_hidden: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_equal_those_in_json() {
        for (layout, name) in Layout::ALL {
            assert_eq!(serde_json::to_value(layout).unwrap(), name);
            assert_eq!(layout.as_str(), name);
        }
    }
}
