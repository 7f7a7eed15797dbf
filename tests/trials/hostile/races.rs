//! Directories that are swapped against links while a team is deleted: whatever the links lead to stays.
//!
//! `RACES=n` says how many deletions.

use super::files::below;
use super::frames::asked;
use harness::{House, figure, rounds};
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
fn race(places: &[PathBuf], victim: &Path, spare: &Path, over: &AtomicBool, swaps: &AtomicU64) {
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
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a deletion would take if it followed a link: names that are those of a team's files.
fn victim(house: &House) -> PathBuf {
    for name in
        ["config.json", "bob.json", "1.json", ".lock", "inboxes/ann.json", ".bob.json.tmp.0123456789ab"]
    {
        house.put(&format!("home/victim/{name}"), name);
    }
    create_dir_all(house.path("home/victim/bob.json.lock")).unwrap();
    house.path("home/victim")
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a directory of the test's own")]
fn a_deletion_never_leaves_its_team_by_a_link() {
    let (house, races) = (House::start(), rounds("RACES", 200));
    let victim = victim(&house);
    let (before, swaps) = (below(&victim), AtomicU64::new(0));
    let mut done = 0;
    for number in 0..races {
        let team = format!("r{number}");
        let create = json!({"create": {"team": team, "cwd": "/", "unique": false}});
        assert!(asked(&house, &create)["done"].is_object(), "{team} is made");
        house.put(&format!("root/teams/{team}/inboxes/bob.json"), "[]");
        house.put(&format!("root/tasks/{team}/1.json"), "{}");
        let places = [format!("teams/{team}/inboxes"), format!("tasks/{team}"), format!("teams/{team}")];
        let places = places.map(|place| house.root().join(place));
        let (over, spare) = (AtomicBool::new(false), house.path("out/spare"));
        std::thread::scope(|scope| {
            scope.spawn(|| race(&places, &victim, &spare, &over, &swaps));
            let _over = Over(&over);
            let delete = json!({"delete": {"team": team, "force": true}});
            done += u64::from((0..TRIES).any(|_| asked(&house, &delete)["done"].is_object()));
        });
        places.iter().chain([&spare]).for_each(|place| std::fs::remove_dir_all(place).unwrap_or_default());
        assert_eq!(below(&victim), before, "{team}: the victim was touched");
        assert!(victim.join("bob.json.lock").is_dir(), "{team}: the victim's directory is gone");
    }
    assert!(swaps.load(Ordering::Relaxed) > races, "the racer hardly ran: {swaps:?}");
    assert!(done >= races / 10, "{done} of {races} teams were deleted in the race");
    std::fs::remove_dir_all(victim).unwrap();
    house.end();
    figure("delete-races", races);
}
