//! The film of a recorded team: the screen of `teamctl top` shows what was recorded, as if the team
//! worked again. Nothing in a film acts on a team.

pub(crate) mod film_commands_and_status;
pub(crate) mod film_keys;
pub(crate) mod film_marks;
pub(crate) mod film_panes;
mod film_thread;
mod folded_members;
mod folded_team;
pub(crate) mod playback;
pub(crate) mod recorded_film;
pub(crate) mod show_film;
mod write_asciicast;
