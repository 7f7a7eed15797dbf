//! Arranges the panes of a window in one of tmux's layouts.
//!
//! The caller passes the name of the layout; this crate has no list of the layouts.

use tmux_interface::{SelectLayout, SetOption, TmuxCommand};

use crate::command_list::CommandList;
use crate::if_shell::{all_of, if_then};
use crate::{Error, InvalidArgument, TmuxServer, WindowId};

/// Condition: this crate created the window. The layout of any other window belongs to its user.
const TEAMD_WINDOW: &str = "#{==:#{@teamd_window},1}";
/// Condition: no pane of the window is zoomed.
pub(crate) const NOT_ZOOMED: &str = "#{!=:#{window_zoomed_flag},1}";

/// Size of the main pane in percent of the width or height of its window. tmux's own defaults, 80
/// columns and 24 lines, could fill a small terminal and leave no space for other panes.
pub const MAIN_PANE_PERCENT: u32 = 60;

impl TmuxServer {
    /// Arranges the panes of a window that this crate has created. Does nothing if the window does
    /// not exist, was created by another program, or is zoomed.
    ///
    /// `layout` is a name that tmux's command `select-layout` accepts. In a layout with a main
    /// pane, the main pane gets [`MAIN_PANE_PERCENT`] of the window.
    ///
    /// # Errors
    ///
    /// `Rejected` if the window is too small for its panes, or if tmux does not know the layout.
    pub fn apply_layout(&mut self, window: WindowId, layout: &'static str) -> Result<(), Error> {
        let window = window.to_string();
        let condition = all_of(TEAMD_WINDOW, NOT_ZOOMED);
        let commands = CommandList::new(&set_main_size(&window, "main-pane-width", "window_width"))
            .with_command(&set_main_size(&window, "main-pane-height", "window_height"))
            .with_command(&select_layout(layout, &window));
        let guarded = if_then(&window, &condition, &commands)?;
        self.call("lay out a window").run(&guarded)?.into_result()
    }
}

/// Returns the command that tiles the panes of a window, unless one of them is zoomed.
pub(crate) fn tile_commands(window: WindowId) -> Result<CommandList, InvalidArgument> {
    let window = window.to_string();
    if_then(&window, NOT_ZOOMED, &CommandList::new(&select_layout("tiled", &window)))
}

/// Returns the command that sets the size of the main pane. The value is not a percentage, which
/// tmux accepts only since version 3.3. It is a format, from which tmux computes the size in
/// columns or lines.
fn set_main_size<'a>(window: &'a str, option: &'a str, size: &str) -> TmuxCommand<'a> {
    let share = format!("#{{e|/|:#{{e|*|:#{{{size}}},{MAIN_PANE_PERCENT}}},100}}");
    SetOption::new().window().format().target_pane(window).option(option).value(share).build()
}

fn select_layout<'a>(layout: &'a str, window: &'a str) -> TmuxCommand<'a> {
    SelectLayout::new().target_pane(window).layout_name(layout).build()
}
