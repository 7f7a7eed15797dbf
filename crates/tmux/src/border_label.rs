//! The label on the border of a pane: the member's name, state and task, in the color of the
//! member.
//!
//! Other programs choose these texts, so tmux must not interpret them. Each text is stored in an
//! option of the pane, where tmux does not expand formats. tmux does interpret styles (`#[…]`)
//! there, so every `#` is removed.

use tmux_interface::{SetOption, TmuxCommand};

use crate::PaneId;
use crate::command_list::CommandList;

/// The texts of a label. A text may contain any characters; control characters and `#` are removed
/// before tmux gets the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BorderLabel {
    /// Name of the member. Up to 64 characters are shown.
    pub name: String,
    /// Color of the member: `blue`, `green`, `yellow`, `purple`, `orange`, `pink`, `cyan` or `red`.
    /// For any other value the label has the default color.
    pub color: String,
    /// State of the member. Up to 32 characters are shown.
    pub state: String,
    /// What the member works on. Up to 60 characters are shown.
    pub task: String,
}

/// The tmux format of a pane border: the label of an agent's pane, or the index of any other pane.
/// Only an agent's pane has a value of the option `@teamd_spawn`.
///
/// A comma separates the branches of a condition `#{?…}`. So the text of a branch must not contain
/// a comma outside of `#{…}`.
pub(crate) const BORDER_FORMAT: &str = "#{?#{@teamd_spawn}, #[fg=#{@teamd_color}]#[bold]#{@teamd_name}#[default] \
     #{@teamd_state}#{?#{@teamd_task}, | #{@teamd_task},} , #{pane_index} }";

impl BorderLabel {
    /// Returns the commands that set the label of a pane.
    pub(crate) fn set_commands(&self, pane: PaneId) -> CommandList {
        CommandList::new(&set_pane_option(pane, "@teamd_name", sanitize(&self.name, 64)))
            .with_command(&set_pane_option(pane, "@teamd_color", tmux_color(&self.color).to_owned()))
            .with_command(&set_pane_option(pane, "@teamd_state", sanitize(&self.state, 32)))
            .with_command(&set_pane_option(pane, "@teamd_task", sanitize(&self.task, 60)))
    }
}

/// Returns the command that sets an option of a pane. After the word `--`, tmux does not read a
/// value that begins with a dash as a flag.
pub(crate) fn set_pane_option(pane: PaneId, name: &'static str, value: String) -> TmuxCommand<'static> {
    let mut command = SetOption::new().pane().target_pane(pane.to_string()).build();
    command.push_param("--").push_param(name).push_param(value);
    command
}

/// Removes control characters and `#`, and cuts the text to `length` characters.
fn sanitize(text: &str, length: usize) -> String {
    text.chars().filter(|c| !c.is_control() && *c != '#').take(length).collect()
}

/// Returns tmux's name for a color of a member, because tmux has other names for some.
fn tmux_color(color: &str) -> &'static str {
    match color {
        "blue" => "blue",
        "green" => "green",
        "yellow" => "yellow",
        "purple" => "magenta",
        "orange" => "colour208",
        "pink" => "colour205",
        "cyan" => "cyan",
        "red" => "red",
        _ => "default",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_hashes_are_dropped() {
        assert_eq!(sanitize("a\n#(touch x)\x1b[31m\u{9b}日本", 60), "a(touch x)[31m日本");
        assert_eq!(sanitize(&"é".repeat(100), 60).chars().count(), 60);
    }

    #[test]
    fn unknown_color_becomes_the_default() {
        assert_eq!(tmux_color("pink"), "colour205");
        assert_eq!(tmux_color("red]#(touch x)"), "default");
    }
}
