//! Whatever happens to agent, team and daemon, unsaved work is there afterwards.

use super::dirty::{Dirty, is_refused, let_go};
use super::{files, git, house, path, text};
use harness::House;
use std::path::{Path, PathBuf};

#[test]
fn of_twelve_kinds_none_is_lost_by_a_delete() {
    let house = house();
    let mut all = Dirty::all(&house);
    is_refused(&house, &all);
    is_refused(&house, &all);
    let_go(&mut all);
    house.end();
}

#[test]
fn of_twelve_kinds_none_is_lost_by_a_kill() {
    let house = house();
    let mut all = Dirty::all(&house);
    for dirty in &all {
        house.teamctl(["kill", &dirty.member]).ok();
        dirty.is_untouched(&house);
    }
    is_refused(&house, &all);
    let_go(&mut all);
    house.end();
}

#[test]
fn of_twelve_kinds_none_is_lost_by_crashes() {
    let house = house();
    let mut all = Dirty::all(&house);
    for dirty in &all {
        let pid = house.member(&dirty.member).expect("it lives")["pid"].as_u64().unwrap();
        house.kill_9(u32::try_from(pid).unwrap());
    }
    house.until("all have ended", || {
        all.iter().all(|dirty| house.member(&dirty.member).is_none_or(|it| it["pid"].is_null())).then_some(())
    });
    all.iter().for_each(|dirty| dirty.is_untouched(&house));
    // A daemon that is killed while it deletes, at whatever point.
    let mut deleting = house.teamctl_running(["delete", "survey", "--force"]);
    house.kill_9(house.daemon());
    deleting.wait().unwrap();
    all.iter().for_each(|dirty| dirty.is_untouched(&house));
    house.start_daemon();
    is_refused(&house, &all);
    harness::figure("unsaved-kinds", all.len() as u64);
    let_go(&mut all);
    house.end();
}

#[test]
fn of_twelve_kinds_each_that_is_discarded_can_be_had_back() {
    let house = house();
    let mut all = Dirty::all(&house);
    let mut words = vec!["--json".to_owned(), "delete".into(), "survey".into(), "--force".into()];
    words.extend(all.iter().flat_map(|dirty| ["--discard".to_owned(), text(&dirty.tree).to_owned()]));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = house.teamctl_with(&words, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let told = ran.json();
    let trashed = told["trashed"].as_array().expect("what was saved");
    assert_eq!(trashed.len(), 12, "{told}");
    for dirty in &all {
        let it = trashed.iter().find(|it| path(&it["path"]) == dirty.tree).expect(dirty.kind);
        assert!(!dirty.tree.exists(), "{}", dirty.kind);
        is_restored(&house, dirty, &path(&it["trash"]));
    }
    assert!(!house.path("root/teams/survey").exists());
    let_go(&mut all);
    house.end();
}

/// Follows the words in the trash, in a fresh clone.
fn is_restored(house: &House, dirty: &Dirty, trash: &Path) {
    let clone = house.path(&format!("clone-{}", dirty.kind));
    git(house, &house.path(""), &["clone", "--quiet", text(&dirty.repository), text(&clone)]);
    let readme = std::fs::read_to_string(trash.join("README")).unwrap();
    let is_order = |line: &&str| ["git ", "cd ", "tar "].iter().any(|word| line.starts_with(word));
    let orders: Vec<&str> = readme.lines().filter(is_order).collect();
    let mut shell = house.command("sh");
    let done = shell.current_dir(&clone).args(["-ec", &orders.join("\n")]).output().unwrap();
    assert!(done.status.success(), "{}: {readme}\n{}", dirty.kind, String::from_utf8_lossy(&done.stderr));
    let restored = PathBuf::from(format!("{}.restored", text(&dirty.tree)));
    assert_eq!(files(&restored), dirty.before.0, "{}", dirty.kind);
    let head = dirty.before.1.lines().next().unwrap();
    assert_eq!(git(house, &restored, &["rev-parse", "HEAD"]), head, "{}", dirty.kind);
    match dirty.kind {
        "staged" => assert_eq!(git(house, &restored, &["diff", "--cached", "--name-only"]), "a"),
        "stashed" => assert_eq!(git(house, &restored, &["show", "refs/restored/stash-0:a"]), "stashed"),
        "submodule" => {
            let bundle = trash.join("submodules/0/commits.bundle");
            let part = house.path("repo");
            git(house, &part, &["fetch", "--quiet", text(&bundle), "refs/heads/kept:refs/heads/kept"]);
            assert_eq!(git(house, &part, &["show", "kept:a"]), "in the part");
        }
        _ => {}
    }
}
