//! Conditions on a tmux pane, window or session, and commands that tmux runs only if a condition is
//! true.
//!
//! A condition is a tmux format. tmux checks the condition and runs the commands in one step.

use tmux_interface::{DisplayMessage, IfShell};

use crate::InvalidArgument;
use crate::command_list::CommandList;

/// Returns the command that prints `text`. tmux expands formats in `text`. So the text must be
/// written by this crate, never by another program or a person.
pub(crate) fn print_command(text: &str) -> CommandList {
    CommandList::new(&DisplayMessage::new().print().message(text).build())
}

/// Returns a tmux command that runs the commands `yes` if `condition` is true for the pane, window
/// or session `target`, and the commands `no` if it is false.
///
/// # Errors
///
/// `InvalidArgument` if one of the commands contains NUL.
pub(crate) fn if_else(
    target: &str,
    condition: &str,
    yes: &CommandList,
    no: &CommandList,
) -> Result<CommandList, InvalidArgument> {
    let mut command = IfShell::new().not_execute().target_pane(target).shell_command(condition).build();
    command.push_param(yes.to_command_line()?).push_param(no.to_command_line()?);
    Ok(CommandList::new(&command))
}

/// Returns a tmux command that runs the commands `yes` if `condition` is true for the pane, window
/// or session `target`.
///
/// # Errors
///
/// `InvalidArgument` if one of the commands contains NUL.
pub(crate) fn if_then(
    target: &str,
    condition: &str,
    yes: &CommandList,
) -> Result<CommandList, InvalidArgument> {
    let command = IfShell::new().not_execute().target_pane(target).shell_command(condition);
    Ok(CommandList::new(&command.command(yes.to_command_line()?).build()))
}

/// Returns the condition that both conditions are true.
pub(crate) fn all_of(first: &str, second: &str) -> String {
    format!("#{{&&:{first},{second}}}")
}

/// Returns the condition that at least one of the conditions is true.
pub(crate) fn any_of(first: &str, second: &str) -> String {
    format!("#{{||:{first},{second}}}")
}
