//! Panes of members: visibility, layout, dialogs, typing.

pub(crate) mod dialog_check;
pub(crate) mod typing;
pub(crate) mod visibility;
