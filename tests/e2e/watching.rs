//! What the daemon hears of files where the kernel tells too little: no watches, a full queue, directories made anew.

use harness::{FEW_WATCHES, House, can_limit_watches, skipped};
use std::process::{Child, Command};
use std::time::Duration;

/// teamd without a pane, where this limit of inotify is so low; none where the kernel has no such limits for us.
fn limited(house: &House, limit: &str) -> Option<Child> {
    if !can_limit_watches() {
        skipped("few-watches", "no user namespaces for us");
        return None;
    }
    let teamd = house.teamd_limited(limit).stdout(std::process::Stdio::null()).spawn().unwrap();
    house.until_answered();
    Some(teamd)
}

fn recorder(house: &House) {
    let cwd = house.path("").display().to_string();
    let record = format!("exec '{}' record out/ann <&$TEAMD_WAKE_FD", house.agent());
    let spawn = ["spawn", "ann", "--backend", "in-process", "--cwd", &cwd, "--", "sh", "-c", &record];
    house.teamctl(spawn).ok();
    house.until("it is ready", || house.read("out/ann").contains("ready").then_some(()));
}

/// Where events arrive everything is looked at each 30 s besides, and where none do each 2 s.
const SOON: Duration = Duration::from_secs(10);

/// A message, and the agent was woken with all of its inbox there.
fn is_woken(house: &House, text: &str) {
    house.teamctl(["send", "ann", text]).ok();
    was_woken(house);
}

fn was_woken(house: &House) {
    let path = house.root().join("teams/survey/inboxes/ann.json");
    let size = std::fs::metadata(path).unwrap().len().to_string();
    house.until_within(SOON, "it was woken", || {
        house.read("out/ann").lines().any(|line| line.ends_with(&format!(" {size}"))).then_some(())
    });
}

fn ends(house: House, mut teamd: Child) {
    house.teamctl(["kill", "ann"]).ok();
    house.teamctl(["down"]).ok();
    teamd.wait().unwrap();
    house.end();
}

#[test]
fn where_no_watcher_can_be_had_files_are_looked_at_and_status_says_so() {
    for limit in ["0 > /proc/sys/user/max_inotify_instances", FEW_WATCHES] {
        let house = House::empty();
        let Some(teamd) = limited(&house, limit) else { return };
        house.teamctl(["create", "survey"]).ok();
        recorder(&house);
        house.until("it is known", || (house.json(["status"])["daemon"]["watch"] == "rescan").then_some(()));
        is_woken(&house, "hello");
        is_woken(&house, "hello again");
        ends(house, teamd);
    }
}

/// Not in a pane: there tmux lets whoever is stopped go on at once.
#[test]
fn what_the_kernel_had_no_room_to_tell_is_found_by_looking() {
    let house = House::empty();
    let teamd = house.start_teamd();
    house.teamctl(["create", "survey"]).ok();
    recorder(&house);
    let pid = teamd.id().to_string();
    let signal = |name: &str| Command::new("kill").args(["-s", name, &pid]).status().unwrap();
    signal("STOP");
    let inboxes = house.root().join("teams/survey/inboxes");
    let names = ["other.json", "another.json"].map(|name| inboxes.join(name));
    std::fs::File::create(&names[0]).unwrap();
    // Two events each; the queue has room for 16,384, unless somebody has said otherwise.
    let queue = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    for n in 0..queue.trim().parse::<usize>().unwrap() / 2 + 2_000 {
        rename(&names[n % 2], &names[(n + 1) % 2]);
    }
    house.teamctl(["send", "ann", "is anybody there?"]).ok();
    signal("CONT");
    was_woken(&house);
    names.iter().for_each(|name| std::fs::remove_file(name).unwrap_or_default());
    ends(house, teamd);
}

#[allow(clippy::disallowed_methods, reason = "another program's files")]
fn rename(from: &std::path::Path, to: &std::path::Path) {
    std::fs::rename(from, to).unwrap();
}

#[test]
fn directories_that_were_made_anew_are_watched_anew() {
    let house = House::with_team();
    recorder(&house);
    let (inboxes, away) = (house.root().join("teams/survey/inboxes"), house.path("out/away"));
    for n in 0..20 {
        // As a program does that copies a team back from somewhere.
        rename(&inboxes, &away);
        std::fs::create_dir(&inboxes).unwrap();
        for entry in std::fs::read_dir(&away).unwrap() {
            let path = entry.unwrap().path();
            rename(&path, &inboxes.join(path.file_name().unwrap()));
        }
        std::fs::remove_dir(&away).unwrap();
        is_woken(&house, &format!("the {n}th"));
    }
    house.end();
}

/// What the daemon writes itself wakes it too.
#[test]
fn a_team_at_rest_writes_nothing() {
    let house = House::with_team();
    house.teamctl(["spawn", "ann", "--", &house.agent(), "stay"]).ok();
    house.teamctl(["send", "ann", "good night"]).ok();
    house.teamctl(["task", "create", "sleep"]).ok();
    let rests = || house.is_still_for(Duration::from_secs(3)).then_some(());
    house.until_within(Duration::from_secs(20), "nothing is written for three seconds", rests);
    house.end();
}
