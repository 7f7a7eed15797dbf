//! How the panes of a window share it. Which arrangements there are is tmux's own affair: whoever asks for one names it.

use tmux_interface::{SelectLayout, SetOption, TmuxCommand};

use crate::deadline::Deadline;
use crate::guard::{both, only_if};
use crate::script::Script;
use crate::{Error, Server, WindowId};

/// Holds on a window that we made, with no pane zoomed: any other's shape is its user's affair.
const OURS: &str = "#{==:#{@teamd_window},1}";
const NOT_ZOOMED: &str = "#{!=:#{window_zoomed_flag},1}";

/// What a main pane gets of its window, in percent. tmux's own 80 columns by 24 rows are all that a small terminal has.
pub const MAIN_PERCENT: u32 = 60;

impl Server {
    /// Arranges the panes of a window, if it is there, one that we made, and none of its panes is zoomed. `layout` is
    /// one of the names that `select-layout` knows, and never text from outside; a main pane gets [`MAIN_PERCENT`].
    ///
    /// # Errors
    /// `Failed` where it is too small for that many panes, or tmux has no such layout.
    pub fn lay_out(&mut self, window: WindowId, layout: &'static str) -> Result<(), Error> {
        let deadline = Deadline::of("lay out a window");
        let window = window.to_string();
        let condition = both(OURS, NOT_ZOOMED);
        let act = Script::of(&main(&window, "main-pane-width", "window_width"))
            .then(&main(&window, "main-pane-height", "window_height"))
            .then(&select(layout, &window));
        let script = only_if(&window, &condition, &act)?;
        self.ask(&script, deadline)?.done(deadline.verb())
    }
}

/// Gives the panes of a window equal shares, unless one of them is zoomed.
pub(crate) fn tiling(window: WindowId) -> Result<Script, Error> {
    let window = window.to_string();
    only_if(&window, NOT_ZOOMED, &Script::of(&select("tiled", &window)))
}

/// tmux does the sum itself, as it lays out: before 3.3 it takes no percentage there.
fn main<'a>(window: &'a str, option: &'a str, size: &str) -> TmuxCommand<'a> {
    let share = format!("#{{e|/|:#{{e|*|:#{{{size}}},{MAIN_PERCENT}}},100}}");
    SetOption::new().window().format().target_pane(window).option(option).value(share).build()
}

fn select<'a>(layout: &'a str, window: &'a str) -> TmuxCommand<'a> {
    SelectLayout::new().target_pane(window).layout_name(layout).build()
}
