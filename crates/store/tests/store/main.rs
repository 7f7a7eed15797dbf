//! Tests of the store and of its behavior when other programs change its files: concurrent writers,
//! foreign locks, damaged files, links, pipes and a full disk. Each test has its own root in a
//! temporary directory.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]
#![allow(unreachable_pub, reason = "no other crate uses the items of a test")]

mod batch;
mod claim_hints;
mod corrupt_files;
mod fixture;
mod full_disk;
mod inbox;
mod inbox_cursor;
mod journal;
mod locks;
mod long_inboxes;
mod member_requests;
mod operations;
mod plan_files;
mod start_rules;
mod state_dir;
mod task_cache;
mod task_holds;
mod tasks;
mod team;
mod unexpected_files;
