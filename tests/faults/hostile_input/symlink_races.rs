//! Replaces directories of a team with symbolic links while the team is deleted. Tests that the
//! target of the links does not change.
//!
//! `RACES=n` sets the number of deletions.

use super::control_frames::call_daemon;
use super::team_files::contents_below;
use harness::{TestEnv, number_from_env, record_result};
use serde_json::json;
use std::fs::{create_dir_all, remove_file};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Maximum number of swaps during one deletion. A deletion that meets only links would otherwise
/// wait until its timeouts.
const MAX_SWAPS: u64 = 1_000_000;

/// How often each deletion is tried. Most attempts meet a link or a missing directory, and fail.
const TRIES: u32 = 10;

/// Replaces each directory with a link to `target` and back again, as fast as possible, until
/// `stop` is set. Adds the number of swaps to `swaps`.
#[allow(clippy::disallowed_methods, reason = "this thread simulates an attacker")]
fn swap_with_links(
    directories: &[PathBuf],
    target: &Path,
    spare: &Path,
    stop: &AtomicBool,
    swaps: &AtomicU64,
) {
    let limit = swaps.load(Ordering::Relaxed) + MAX_SWAPS;
    while !stop.load(Ordering::Relaxed) && swaps.load(Ordering::Relaxed) < limit {
        for directory in directories {
            if std::fs::rename(directory, spare).is_ok() {
                swaps.fetch_add(u64::from(symlink(target, directory).is_ok()), Ordering::Relaxed);
                remove_file(directory).ok();
                std::fs::rename(spare, directory).ok();
                std::fs::remove_dir_all(spare).ok();
            }
        }
    }
}

/// Stops the swapping thread, also if the deleting thread panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Creates the target of the links. Its files have names of a team's files, so a deletion that
/// follows a link would delete them.
fn create_link_target(env: &TestEnv) -> PathBuf {
    for name in
        ["config.json", "bob.json", "1.json", ".lock", "inboxes/ann.json", ".bob.json.tmp.0123456789ab"]
    {
        env.write_file(&format!("home/victim/{name}"), name);
    }
    create_dir_all(env.path("home/victim/bob.json.lock")).unwrap();
    env.path("home/victim")
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a directory of the test's own")]
fn delete_does_not_follow_swapped_links() {
    let (env, races) = (TestEnv::with_daemon(), number_from_env("RACES", 50));
    let target = create_link_target(&env);
    let (before, swaps) = (contents_below(&target), AtomicU64::new(0));
    let mut deletions = 0;
    for number in 0..races {
        let team = format!("r{number}");
        let create = json!({"create_team": {"team": team, "cwd": "/", "unique": false}});
        assert!(call_daemon(&env, &create)["done"].is_object(), "{team} is created");
        env.write_file(&format!("root/teams/{team}/inboxes/bob.json"), "[]");
        env.write_file(&format!("root/tasks/{team}/1.json"), "{}");
        let directories = [format!("teams/{team}/inboxes"), format!("tasks/{team}"), format!("teams/{team}")];
        let directories = directories.map(|directory| env.root().join(directory));
        let (stop, spare) = (AtomicBool::new(false), env.path("out/spare"));
        std::thread::scope(|scope| {
            scope.spawn(|| swap_with_links(&directories, &target, &spare, &stop, &swaps));
            let _stop_on_drop = StopOnDrop(&stop);
            let delete = json!({"delete_team": {"team": team, "force": true}});
            deletions += u64::from((0..TRIES).any(|_| call_daemon(&env, &delete)["done"].is_object()));
        });
        for directory in directories.iter().chain([&spare]) {
            std::fs::remove_dir_all(directory).unwrap_or_default();
        }
        assert_eq!(contents_below(&target), before, "{team}: the link's target has not changed");
        assert!(target.join("bob.json.lock").is_dir(), "{team}: the target's directory still exists");
    }
    assert!(swaps.load(Ordering::Relaxed) > races, "too few swaps: {swaps:?}");
    assert!(deletions >= races / 10, "only {deletions} of {races} teams were deleted");
    std::fs::remove_dir_all(target).unwrap();
    env.shut_down();
    record_result("delete-races", races);
}
