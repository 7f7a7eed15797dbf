//! The store against everything that others do to its files: several of us at once, planted locks, damage,
//! links and pipes, a full disk. Each test has a root of its own in a temporary directory.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]
#![allow(unreachable_pub, reason = "nothing here is reached from outside")]

mod batch;
mod caller;
mod damage;
mod doors;
mod fixture;
mod full;
mod inbox;
mod journal;
mod locks;
mod long;
mod odd;
mod plan;
mod requests;
mod seen;
mod since;
mod state;
mod tasks;
mod team;
mod told;
