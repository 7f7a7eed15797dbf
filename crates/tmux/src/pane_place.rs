//! The place at which a pane is created in a window or moved into it: beside a pane that is there.

use tmux_interface::{JoinPane, TmuxCommand};

use crate::command_list::CommandList;
use crate::{PaneId, WindowId};

/// Where a pane is added to a window: the pane that tmux splits, and the side on which the added
/// pane stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PanePlace {
    /// At the right of the pane `anchor`, with a width of `columns`. This place is for teamd's
    /// first pane in a person's window. Before the pane is added, the window's layout is stored, so
    /// that it can be restored later.
    RightOf {
        /// The pane that is split.
        anchor: PaneId,
        /// Width of the added pane, in columns.
        columns: u32,
    },
    /// Below the pane.
    Below(PaneId),
    /// Above the pane.
    Above(PaneId),
}

/// Adds the options that stand for `place` to a `split-window` or `join-pane` command. The target
/// is `WINDOW.PANE`, so tmux refuses the command if the pane to split is not in `window` any more.
pub(crate) fn add_place(mut command: TmuxCommand<'_>, window: WindowId, place: PanePlace) -> TmuxCommand<'_> {
    let target = match place {
        PanePlace::RightOf { anchor, columns } => {
            command.push_param("-h").push_param("-l").push_param(columns.to_string());
            anchor
        }
        PanePlace::Below(pane) => pane,
        PanePlace::Above(pane) => {
            command.push_param("-b");
            pane
        }
    };
    command.push_param("-t").push_param(format!("{window}.{target}"));
    command
}

/// The command that moves a pane to a place in a window.
pub(crate) fn join_command(pane: PaneId, window: WindowId, place: PanePlace) -> CommandList {
    let join = JoinPane::new().detached().src_pane(pane.to_string()).build();
    CommandList::new(&add_place(join, window, place))
}
