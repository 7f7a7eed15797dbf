//! What stands on a pane's border: name, state and task, in the agent's colour.
//!
//! The texts come from outside, so they travel as values of pane options, which tmux shows without expanding them;
//! the formats that show them are constants. Styles (`#[…]`) do work inside a value, so `#` is dropped.

use tmux_interface::{SetOption, TmuxCommand};

use crate::PaneId;
use crate::command_list::CommandList;

/// The words on a border, as they come; they are cleaned on their way to tmux.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BorderLabel {
    /// Who it is; up to 64 characters are shown.
    pub name: String,
    /// One of blue, green, yellow, purple, orange, pink, cyan, red; anything else shows in the default colour.
    pub color: String,
    /// How it is; up to 32 characters are shown.
    pub state: String,
    /// What it does; up to 60 characters are shown.
    pub task: String,
}

/// Shows nothing but its number on a pane that is not ours. A comma inside `#{?…}` would end the branch.
pub(crate) const BORDER_FORMAT: &str = "#{?#{@teamd}, #[fg=#{@teamd_color}]#[bold]#{@teamd_name}#[default] \
     #{@teamd_state}#{?#{@teamd_task}, | #{@teamd_task},} , #{pane_index} }";

impl BorderLabel {
    /// The commands that put it on a pane.
    pub(crate) fn set_commands(&self, pane: PaneId) -> CommandList {
        CommandList::new(&set_pane_option(pane, "@teamd_name", sanitize(&self.name, 64)))
            .with_command(&set_pane_option(pane, "@teamd_color", tmux_color(&self.color).to_owned()))
            .with_command(&set_pane_option(pane, "@teamd_state", sanitize(&self.state, 32)))
            .with_command(&set_pane_option(pane, "@teamd_task", sanitize(&self.task, 60)))
    }
}

/// Sets one option of one pane. `--`, because a value may begin with a dash.
pub(crate) fn set_pane_option(pane: PaneId, name: &'static str, value: String) -> TmuxCommand<'static> {
    let mut command = SetOption::new().pane().target_pane(pane.to_string()).build();
    command.push_param("--").push_param(name).push_param(value);
    command
}

fn sanitize(text: &str, length: usize) -> String {
    text.chars().filter(|c| !c.is_control() && *c != '#').take(length).collect()
}

/// tmux knows fewer names than the teams do.
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
    fn unknown_color_is_default() {
        assert_eq!(tmux_color("pink"), "colour205");
        assert_eq!(tmux_color("red]#(touch x)"), "default");
    }
}
