//! How the panes of a window share it. Which arrangements there are is tmux's own affair: whoever asks for one names it.

use tmux_interface::{SelectLayout, SetOption, TmuxCommand};

use crate::command_list::CommandList;
use crate::deadline::Deadline;
use crate::guarded_command::{all_of, if_then};
use crate::{Error, TmuxServer, WindowId};

/// Holds on a window that we made, with no pane zoomed: any other's shape is its user's affair.
const TEAMD_WINDOW: &str = "#{==:#{@teamd_window},1}";
const NOT_ZOOMED: &str = "#{!=:#{window_zoomed_flag},1}";

/// What a main pane gets of its window, in percent. tmux's own 80 columns by 24 rows are all that a small terminal has.
pub const MAIN_PANE_PERCENT: u32 = 60;

impl TmuxServer {
    /// Arranges the panes of a window, if it is there, one that we made, and none of its panes is zoomed. `layout` is
    /// one of the names that `select-layout` knows, and never text from outside; a main pane gets [`MAIN_PERCENT`].
    ///
    /// # Errors
    /// `Failed` where it is too small for that many panes, or tmux has no such layout.
    pub fn apply_layout(&mut self, window: WindowId, layout: &'static str) -> Result<(), Error> {
        let deadline = Deadline::for_action("lay out a window");
        let window = window.to_string();
        let condition = all_of(TEAMD_WINDOW, NOT_ZOOMED);
        let act = CommandList::new(&set_main_size(&window, "main-pane-width", "window_width"))
            .with_command(&set_main_size(&window, "main-pane-height", "window_height"))
            .with_command(&select_layout(layout, &window));
        let script = if_then(&window, &condition, &act)?;
        self.run(&script, deadline)?.into_result(deadline.action())
    }
}

/// Gives the panes of a window equal shares, unless one of them is zoomed.
pub(crate) fn tile_commands(window: WindowId) -> Result<CommandList, Error> {
    let window = window.to_string();
    if_then(&window, NOT_ZOOMED, &CommandList::new(&select_layout("tiled", &window)))
}

/// tmux does the sum itself, as it lays out: before 3.3 it takes no percentage there.
fn set_main_size<'a>(window: &'a str, option: &'a str, size: &str) -> TmuxCommand<'a> {
    let share = format!("#{{e|/|:#{{e|*|:#{{{size}}},{MAIN_PANE_PERCENT}}},100}}");
    SetOption::new().window().format().target_pane(window).option(option).value(share).build()
}

fn select_layout<'a>(layout: &'a str, window: &'a str) -> TmuxCommand<'a> {
    SelectLayout::new().target_pane(window).layout_name(layout).build()
}
