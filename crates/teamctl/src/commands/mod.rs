//! The verbs, one file each: its arguments on top, then what it does.

pub(crate) mod answer_shutdown;
pub(crate) mod approve;
pub(crate) mod attach;
pub(crate) mod broadcast;
pub(crate) mod capture;

pub(crate) mod completions;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod deny;
pub(crate) mod doctor;
pub(crate) mod down;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod hide;
pub(crate) mod import;
pub(crate) mod inbox;
pub(crate) mod instructions;
pub(crate) mod interrupt;
pub(crate) mod kill;
pub(crate) mod layout;
pub(crate) mod lead;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod mode;
pub(crate) mod notify;
pub(crate) mod policy;
pub(crate) mod profiles;
pub(crate) mod requests;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod setup;
pub(crate) mod show;
pub(crate) mod shutdown;
pub(crate) mod spawn;
pub(crate) mod status;
pub(crate) mod submit_plan;
pub(crate) mod task;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod up;
pub(crate) mod wait;
pub(crate) mod why;

mod message_input;
mod run_file_errors;
