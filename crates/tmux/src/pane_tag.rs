//! The tag of a pane says which spawn the pane belongs to.
//!
//! The tag is the value of the pane option `@teamd_spawn`. The option `@teamd_pane_pid` has the process that
//! ran in the pane when it was tagged. If a user respawns the pane with a command of their own
//! (`respawn-pane`), both options stay but the process changes. The pane is the user's then.
//! Releases up to 0.1.0 stored no process. A pane of theirs is recognized by its start command,
//! which contains the tag.
//!
//! Invariant: a tag is never empty. tmux reads an unset option as an empty string, so an empty tag
//! would match every untagged pane. `tag_is_a_plain_word` checks it, and that a tag has no
//! character with a meaning in a format, in a quoted word or in a shell.

use std::fmt;
use std::str::FromStr;

use crate::InvalidArgument;
use crate::condition::{all_of, any_of};
use crate::validate;

/// A tag of 1 to 64 ASCII letters, digits and dashes. The caller gives every pane a different one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaneTag(String);

impl PaneTag {
    /// The pane option with the tag.
    pub(crate) const TAG_OPTION: &str = "@teamd_spawn";
    /// The pane option with the process id that the pane had when it was tagged.
    pub(crate) const PID_OPTION: &str = "@teamd_pane_pid";
    /// Condition: the pane still has that process.
    const SAME_PROCESS: &str = "#{==:#{@teamd_pane_pid},#{pane_pid}}";
    /// Prints the option. Characters that no tag has become `_`, so that the value of a foreign
    /// program can't break the lines of a list.
    pub(crate) const TAG_FORMAT: &str = "#{s/[^A-Za-z0-9-]/_/:@teamd_spawn}";

    /// Returns the tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a tmux format that is true for panes with this tag in which no user has run
    /// `respawn-pane`.
    pub(crate) fn owned_condition(&self) -> String {
        format!(
            "#{{&&:{},{}}}",
            self.tag_condition(),
            any_of(PaneTag::SAME_PROCESS, &self.same_command_condition())
        )
    }

    /// Returns a tmux format that is true for panes that teamd up to 0.1.0 opened, and in which no
    /// user has run `respawn-pane`.
    fn same_command_condition(&self) -> String {
        all_of("#{==:#{@teamd_pane_pid},}", &format!("#{{m:*{}*,#{{pane_start_command}}}}", self.0))
    }

    /// Returns a tmux format that is true for all panes with this tag.
    pub(crate) fn tag_condition(&self) -> String {
        format!("#{{==:#{{{}}},{}}}", PaneTag::TAG_OPTION, self.0)
    }
}

impl FromStr for PaneTag {
    type Err = InvalidArgument;

    fn from_str(text: &str) -> Result<PaneTag, InvalidArgument> {
        if text.contains('_') || !validate::is_plain_name(text) {
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
