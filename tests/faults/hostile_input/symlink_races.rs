//! Directories that are swapped against links while a team is deleted: whatever the links lead to stays.
//!
//! `RACES=n` says how many deletions.

use super::control_frames::call_daemon;
use super::team_files::contents_below;
use harness::{TestEnv, iterations, record_result};
use serde_json::json;
use std::fs::{create_dir_all, remove_file};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// In one deletion: one that meets nothing but links waits until its deadlines, and the daemon answers all the same.
const SWAPS: u64 = 1_000_000;

/// Of each deletion: most meet a link or nothing at all, and are refused.
const TRIES: u32 = 10;

/// Puts a link in each directory's place and takes it away again, as fast as it goes; counts how often.
#[allow(clippy::disallowed_methods, reason = "this is the racer")]
fn swap_with_links(places: &[PathBuf], victim: &Path, spare: &Path, over: &AtomicBool, swaps: &AtomicU64) {
    let most = swaps.load(Ordering::Relaxed) + SWAPS;
    while !over.load(Ordering::Relaxed) && swaps.load(Ordering::Relaxed) < most {
        for place in places {
            if std::fs::rename(place, spare).is_ok() {
                swaps.fetch_add(u64::from(symlink(victim, place).is_ok()), Ordering::Relaxed);
                remove_file(place).ok();
                std::fs::rename(spare, place).ok();
                std::fs::remove_dir_all(spare).ok();
            }
        }
    }
}

/// Ends the race, also where the other side has panicked.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a deletion would take if it followed a link: names that are those of a team's files.
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
    let (env, races) = (TestEnv::with_daemon(), iterations("RACES", 200));
    let victim = create_link_target(&env);
    let (before, swaps) = (contents_below(&victim), AtomicU64::new(0));
    let mut done = 0;
    for number in 0..races {
        let team = format!("r{number}");
        let create = json!({"create_team": {"team": team, "cwd": "/", "unique": false}});
        assert!(call_daemon(&env, &create)["done"].is_object(), "{team} is made");
        env.write_file(&format!("root/teams/{team}/inboxes/bob.json"), "[]");
        env.write_file(&format!("root/tasks/{team}/1.json"), "{}");
        let places = [format!("teams/{team}/inboxes"), format!("tasks/{team}"), format!("teams/{team}")];
        let places = places.map(|place| env.root().join(place));
        let (over, spare) = (AtomicBool::new(false), env.path("out/spare"));
        std::thread::scope(|scope| {
            scope.spawn(|| swap_with_links(&places, &victim, &spare, &over, &swaps));
            let _over = StopOnDrop(&over);
            let delete = json!({"delete_team": {"team": team, "force": true}});
            done += u64::from((0..TRIES).any(|_| call_daemon(&env, &delete)["done"].is_object()));
        });
        places.iter().chain([&spare]).for_each(|place| std::fs::remove_dir_all(place).unwrap_or_default());
        assert_eq!(contents_below(&victim), before, "{team}: the victim was touched");
        assert!(victim.join("bob.json.lock").is_dir(), "{team}: the victim's directory is gone");
    }
    assert!(swaps.load(Ordering::Relaxed) > races, "the racer hardly ran: {swaps:?}");
    assert!(done >= races / 10, "{done} of {races} teams were deleted in the race");
    std::fs::remove_dir_all(victim).unwrap();
    env.shut_down();
    record_result("delete-races", races);
}
