//! Panes of members: visibility, layout, dialogs.

pub(crate) mod dialogs;
pub(crate) mod set_layout;
pub(crate) mod set_person_pane;
pub(crate) mod status_with_dialogs;
pub(crate) mod visibility;
pub(crate) mod write_hidden_panes;
