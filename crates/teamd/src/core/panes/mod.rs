//! Panes of members: visibility, layout, dialogs.

pub(crate) mod dialog_check;
pub(crate) mod visibility;
