//! Carries out the effects of a link: connections, timers, the spool and the receiver.

mod connect_command;
mod connection_task;
mod event_loop;
mod storage_thread;

pub use connection_task::LinkStream;
pub use event_loop::{ConnectionSource, LinkDriver, LinkInputs};
