//! The tag of a pane says which spawn (one start of a member's agent) the pane belongs to.
//!
//! The tag is the value of the pane option `@teamd_spawn`. The pane option `@teamd_pane_pid` holds
//! the id of the process that ran in the pane when the pane was tagged. If a user starts another
//! command in the pane (`respawn-pane`), both options stay but the process changes. From then on
//! the pane belongs to the user.
//!
//! Invariant: a tag is never empty. tmux reads an option that is not set as an empty string, so an
//! empty tag would match every untagged pane. The test `tag_is_a_plain_word` checks this. It also
//! checks that a tag has no character with a special meaning in a tmux format, in a quoted word or
//! in a shell.

use std::fmt;
use std::str::FromStr;

use crate::InvalidArgument;
use crate::if_shell::all_of;
use crate::validate_names_and_commands;

/// A tag of 1 to 64 ASCII letters, digits and dashes. The caller gives each pane a different tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaneTag(String);

impl PaneTag {
    /// The pane option with the tag.
    pub(crate) const TAG_OPTION: &str = "@teamd_spawn";
    /// The pane option with the process id that the pane had when it was tagged.
    pub(crate) const PID_OPTION: &str = "@teamd_pane_pid";
    /// The condition that the pane still has the process that it had when it was tagged.
    const SAME_PROCESS: &str = "#{==:#{@teamd_pane_pid},#{pane_pid}}";
    /// The tmux format that prints the tag of a pane. Characters that are not allowed in a tag are
    /// replaced by `_`. Another program may set the option to any text, and a newline in it would
    /// break the lines of a list of panes.
    pub(crate) const TAG_FORMAT: &str = "#{s/[^A-Za-z0-9-]/_/:@teamd_spawn}";

    /// Returns the tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a tmux format that is true for panes with this tag in which no user has run
    /// `respawn-pane`.
    pub(crate) fn owned_condition(&self) -> String {
        all_of(&self.tag_condition(), PaneTag::SAME_PROCESS)
    }

    /// Returns a tmux format that is true for all panes with this tag.
    pub(crate) fn tag_condition(&self) -> String {
        format!("#{{==:#{{{}}},{}}}", PaneTag::TAG_OPTION, self.0)
    }
}

impl FromStr for PaneTag {
    type Err = InvalidArgument;

    fn from_str(text: &str) -> Result<PaneTag, InvalidArgument> {
        if text.contains('_') || !validate_names_and_commands::is_plain_name(text) {
            return Err(InvalidArgument::new(text, "a pane tag is 1 to 64 letters, digits and dashes"));
        }
        Ok(PaneTag(text.to_owned()))
    }
}

impl fmt::Display for PaneTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_is_a_plain_word() {
        assert_eq!("a1-B".parse::<PaneTag>().unwrap().as_str(), "a1-B");
        let long = "x".repeat(65);
        for text in ["", " ", "a b", "a_b", "a,b", "a}", "#{pid}", "a\n", "é", long.as_str()] {
            assert!(text.parse::<PaneTag>().is_err(), "{text:?}");
        }
    }
}
