//! Whose pane it is: the value of the pane option `@teamd`, and in `@teamd_pid` the process that it was given for.
//!
//! The options stay with a pane that a person starts anew with a command of their own (`respawn-pane`); the process does
//! not, and then the pane is theirs. Releases up to 0.1.0 kept no process: of their panes it is the command that they
//! were started with, which has the owner in it.
//!
//! Never empty, because tmux reads an option that nobody set as the empty string, and so would an empty owner match
//! every pane there is. Its letters mean nothing in a format, in a quoted word or in a shell.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::guarded_command::{all_of, any_of};
use crate::validate;

/// One to 64 letters, digits and dashes. Make it unique per pane, so that one owner never fits another's pane.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaneTag(String);

impl PaneTag {
    /// The pane option that holds it.
    pub(crate) const TAG_OPTION: &str = "@teamd";
    /// The one that holds the pane's process, as it was when it became ours.
    pub(crate) const PID_OPTION: &str = "@teamd_pid";
    /// Holds where that process is still the pane's.
    const SAME_PROCESS: &str = "#{==:#{@teamd_pid},#{pane_pid}}";
    /// Prints the option, with every character that no owner has made into `_`, so that a list keeps its lines.
    pub(crate) const TAG_FORMAT: &str = "#{s/[^A-Za-z0-9-]/_/:@teamd}";

    /// The word itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A condition, as tmux formats have them, that holds on panes of this owner only.
    pub(crate) fn owned_condition(&self) -> String {
        format!(
            "#{{&&:{},{}}}",
            self.tag_condition(),
            any_of(PaneTag::SAME_PROCESS, &self.same_command_condition())
        )
    }

    fn same_command_condition(&self) -> String {
        all_of("#{==:#{@teamd_pid},}", &format!("#{{m:*{}*,#{{pane_start_command}}}}", self.0))
    }

    /// The same, but also on a pane that somebody has started anew since.
    pub(crate) fn tag_condition(&self) -> String {
        format!("#{{==:#{{{}}},{}}}", PaneTag::TAG_OPTION, self.0)
    }
}

impl FromStr for PaneTag {
    type Err = Error;

    fn from_str(text: &str) -> Result<PaneTag, Error> {
        if text.contains('_') || !validate::is_plain_name(text) {
            return Err(Error::invalid_argument(text, "an owner is 1 to 64 letters, digits and dashes"));
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
