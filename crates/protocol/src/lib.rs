//! What an agent team says on disk and on the control socket, in types.
//!
//! The specification in Rust: no I/O, no clock, no async. A caller that needs the time passes it in, as
//! milliseconds since the epoch. The modules stand in the order in which they are best read.

pub mod ability;
pub mod asked;
pub mod color;
pub mod command;
pub mod config;
pub mod control;
pub mod delegate;
pub mod dialog;
pub mod driver;
pub mod duration;
pub mod environment;
pub mod event;
pub mod fault;
pub mod feed;
pub mod id;
pub mod json;
pub mod late;
pub mod message;
pub mod mode;
pub mod name;
pub mod payload;
pub mod place;
pub mod policy;
pub mod prompt;
#[cfg(feature = "schema")]
pub mod schema;
pub mod task;
pub mod terminal;
pub mod time;
pub mod turn;
