//! Keeps a window zoomed when a pane leaves it.

use tmux_interface::ResizePane;

use crate::command_list::CommandList;
use crate::if_shell::{all_of, if_else};
use crate::{InvalidArgument, PaneRow};

/// Returns a tmux condition that is true for a pane if another pane of the same window is zoomed.
pub(crate) fn hidden_by_zoom_condition() -> String {
    all_of("#{window_zoomed_flag}", "#{!=:#{pane_active},1}")
}

/// Returns `commands` in a form that keeps the window zoomed. `commands` must kill the pane that
/// `row` describes, or move the pane out of its window.
///
/// When a pane leaves a window, tmux ends the zoom of the window. So the last of the returned
/// commands zooms the window again, if another pane of it was zoomed before. That pane is the
/// window's active pane, so tmux zooms the same pane again.
pub(crate) fn with_zoom_restored(
    row: &PaneRow,
    commands: &CommandList,
) -> Result<CommandList, InvalidArgument> {
    let (pane, window) = (row.pane.to_string(), row.window.to_string());
    let zoom = ResizePane::new().zoom().target_pane(window.as_str()).build();
    let zoomed_here = all_of(&hidden_by_zoom_condition(), &format!("#{{==:#{{window_id}},{window}}}"));
    if_else(&pane, &zoomed_here, &commands.clone().with_command(&zoom), commands)
}
