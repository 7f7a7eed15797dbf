//! Keeps a window zoomed when a pane leaves it.

use tmux_interface::ResizePane;

use crate::command_list::CommandList;
use crate::if_shell::{all_of, if_else};
use crate::{InvalidArgument, PaneRow};

/// Returns a condition on a pane: another pane of the same window is zoomed, so this pane is
/// hidden.
pub(crate) fn hidden_by_zoom_condition() -> String {
    all_of("#{window_zoomed_flag}", "#{!=:#{pane_active},1}")
}

/// Returns `commands`, followed by a command that restores the zoom of the window. `commands` must
/// kill the pane that `row` describes, or move the pane out of its window.
///
/// tmux ends the zoom of a window when any pane leaves the window. The restoring command names only
/// the window, because the zoomed pane is always the active pane. tmux skips the restoring command
/// in two cases: no other pane of the window is zoomed, or the pane is no longer in the window that
/// `row` names.
pub(crate) fn with_zoom_restored(
    row: &PaneRow,
    commands: &CommandList,
) -> Result<CommandList, InvalidArgument> {
    let (pane, window) = (row.pane.to_string(), row.window.to_string());
    let zoom = ResizePane::new().zoom().target_pane(window.as_str()).build();
    let zoomed_here = all_of(&hidden_by_zoom_condition(), &format!("#{{==:#{{window_id}},{window}}}"));
    if_else(&pane, &zoomed_here, &commands.clone().with_command(&zoom), commands)
}
