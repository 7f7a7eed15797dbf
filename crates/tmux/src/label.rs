//! What stands on a pane's border: name, state and task, in the agent's colour.
//!
//! The texts come from outside, so they travel as values of pane options, which tmux shows without expanding them;
//! the formats that show them are constants. Styles (`#[…]`) do work inside a value, so `#` is dropped.

use tmux_interface::{SetOption, TmuxCommand};

use crate::PaneId;
use crate::script::Script;

/// The words on a border, as they come; they are cleaned on their way to tmux.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Label {
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
pub(crate) const BORDER: &str = "#{?#{@teamd}, #[fg=#{@teamd_color}]#[bold]#{@teamd_name}#[default] \
     #{@teamd_state}#{?#{@teamd_task}, | #{@teamd_task},} , #{pane_index} }";

impl Label {
    /// The commands that put it on a pane.
    pub(crate) fn script(&self, pane: PaneId) -> Script {
        Script::of(&option(pane, "@teamd_name", clean(&self.name, 64)))
            .then(&option(pane, "@teamd_color", colour(&self.color).to_owned()))
            .then(&option(pane, "@teamd_state", clean(&self.state, 32)))
            .then(&option(pane, "@teamd_task", clean(&self.task, 60)))
    }
}

/// Sets one option of one pane. `--`, because a value may begin with a dash.
pub(crate) fn option(pane: PaneId, name: &'static str, value: String) -> TmuxCommand<'static> {
    let mut command = SetOption::new().pane().target_pane(pane.to_string()).build();
    command.push_param("--").push_param(name).push_param(value);
    command
}

fn clean(text: &str, length: usize) -> String {
    text.chars().filter(|c| !c.is_control() && *c != '#').take(length).collect()
}

/// tmux knows fewer names than the teams do.
fn colour(color: &str) -> &'static str {
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
    fn control_characters_and_hashes_are_dropped_and_long_texts_cut() {
        assert_eq!(clean("a\n#(touch x)\x1b[31m\u{9b}日本", 60), "a(touch x)[31m日本");
        assert_eq!(clean(&"é".repeat(100), 60).chars().count(), 60);
    }

    #[test]
    fn a_foreign_colour_is_the_default() {
        assert_eq!(colour("pink"), "colour205");
        assert_eq!(colour("red]#(touch x)"), "default");
    }
}
