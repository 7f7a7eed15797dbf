//! How the panes of a window share it.

use std::fmt;
use std::str::FromStr;

use tmux_interface::{SelectLayout, TmuxCommand};

use crate::deadline::Deadline;
use crate::guard::{both, only_if};
use crate::script::Script;
use crate::{Error, Server, WindowId};

/// One of tmux's own arrangements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Equal shares in rows and columns.
    #[default]
    Tiled,
    /// One large pane on the left, the others one above the other on the right.
    MainVertical,
    /// One large pane above, the others side by side below.
    MainHorizontal,
    /// Side by side.
    EvenHorizontal,
    /// One above the other.
    EvenVertical,
}

impl Layout {
    /// How many panes of at least `columns` by `rows` a window of that size holds so, borders included; one at least.
    pub fn capacity(self, width: u32, height: u32, columns: u32, rows: u32) -> u32 {
        let across = ((width + 1) / (columns + 1)).max(1);
        let down = ((height + 1) / (rows + 1)).max(1);
        match self {
            Layout::Tiled => across * down,
            Layout::EvenHorizontal => across,
            Layout::EvenVertical => down,
            // The large one, if there is space for another beside it.
            Layout::MainVertical => down + u32::from(across > 1),
            Layout::MainHorizontal => across + u32::from(down > 1),
        }
    }

    fn command(self, window: &str) -> TmuxCommand<'_> {
        SelectLayout::new().target_pane(window).layout_name(self.word()).build()
    }

    fn word(self) -> &'static str {
        match self {
            Layout::Tiled => "tiled",
            Layout::MainVertical => "main-vertical",
            Layout::MainHorizontal => "main-horizontal",
            Layout::EvenHorizontal => "even-horizontal",
            Layout::EvenVertical => "even-vertical",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Layout, Error> {
        use Layout::{EvenHorizontal, EvenVertical, MainHorizontal, MainVertical, Tiled};
        let all = [Tiled, MainVertical, MainHorizontal, EvenHorizontal, EvenVertical];
        let known = all.into_iter().find(|layout| layout.word() == text);
        known.ok_or_else(|| Error::invalid(text, "it is no layout of tmux's"))
    }
}

/// Holds on a window that we made, with no pane zoomed: any other's shape is its user's affair.
const OURS: &str = "#{==:#{@teamd_window},1}";
const NOT_ZOOMED: &str = "#{!=:#{window_zoomed_flag},1}";

impl Server {
    /// Arranges the panes of a window, if it is there, one that we made, and none of its panes is zoomed.
    ///
    /// # Errors
    /// `Failed` where it is too small for that many panes.
    pub fn lay_out(&mut self, window: WindowId, layout: Layout) -> Result<(), Error> {
        let deadline = Deadline::of("lay out a window");
        let window = window.to_string();
        let condition = both(OURS, NOT_ZOOMED);
        let script = only_if(&window, &condition, &Script::of(&layout.command(&window)))?;
        self.ask(&script, deadline)?.done(deadline.verb())
    }

    /// Gives the panes of a window equal shares, unless one of them is zoomed.
    pub(crate) fn tile(&mut self, window: WindowId, deadline: Deadline) -> Result<(), Error> {
        let window = window.to_string();
        let script = only_if(&window, NOT_ZOOMED, &Script::of(&Layout::Tiled.command(&window)))?;
        self.ask(&script, deadline)?.done(deadline.verb())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_full_before_its_panes_get_too_small() {
        let holds = |layout: Layout, width, height| layout.capacity(width, height, 60, 12);
        assert_eq!(holds(Layout::Tiled, 80, 24), 1);
        assert_eq!(holds(Layout::Tiled, 121, 25), 4);
        assert_eq!(holds(Layout::Tiled, 200, 50), 9);
        assert_eq!(holds(Layout::Tiled, 20, 5), 1, "a tiny terminal still gets a window for each agent");
        assert_eq!((holds(Layout::EvenVertical, 200, 50), holds(Layout::EvenHorizontal, 200, 50)), (3, 3));
        assert_eq!((holds(Layout::MainVertical, 200, 50), holds(Layout::MainHorizontal, 200, 50)), (4, 4));
        assert_eq!((holds(Layout::MainVertical, 80, 24), holds(Layout::MainHorizontal, 80, 24)), (1, 1));
    }

    #[test]
    fn a_layout_reads_back_as_it_was_written() {
        for word in ["tiled", "main-vertical", "main-horizontal", "even-horizontal", "even-vertical"] {
            assert_eq!(word.parse::<Layout>().unwrap().to_string(), word);
        }
        for word in ["", "Tiled", "#(touch x)", "main", "b25f,80x24,0,0,2"] {
            assert!(word.parse::<Layout>().is_err(), "{word:?}");
        }
    }
}
