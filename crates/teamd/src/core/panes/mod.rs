//! Panes of members: visibility, layout, dialogs.

pub(crate) mod hidden_panes_in_config;
pub(crate) mod hide_and_show;
pub(crate) mod program_dialogs;
pub(crate) mod search_screens_for_dialogs;
pub(crate) mod set_layout;
pub(crate) mod set_person_pane;
