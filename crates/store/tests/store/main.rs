//! Tests of the store and of its behavior when other programs change its files: concurrent writers,
//! foreign locks, damaged files, links, pipes and a full disk. Each test has its own root in a
//! temporary directory.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]
#![allow(unreachable_pub, reason = "no other crate uses the items of a test")]

mod corrupt_files;
mod create_task_batch;
mod full_disk;
mod inbox;
mod inbox_cursor;
mod locks;
mod long_inboxes;
mod member_operations;
mod member_requests;
mod message_journal;
mod plan_files;
mod roots_and_teams;
mod state_dir;
mod task_cache;
mod task_claim_hints;
mod task_holds;
mod task_list;
mod task_start_rules;
mod test_root;
mod unexpected_files;
