//! Roots and teams: creating, finding, trusting and deleting them.

use crate::fixture::{
    TestRoot, agent, config, list_dir, member, message, open_root, overwrite_in_place, set_mtime,
};
use protocol::error::ErrorKind;
use protocol::name::{AgentName, TeamName};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use store::{Durability, Error, NewTask, Root};
use tempfile::TempDir;

#[test]
fn one_of_sixteen_creates_the_team() {
    let dir = TempDir::new().unwrap();
    let made = std::thread::scope(|scope| {
        let makers: Vec<_> =
            (0..16).map(|_| scope.spawn(|| open_root(dir.path()).create_team(&config("orchard")))).collect();
        let results = makers.into_iter().map(|maker| maker.join().unwrap());
        results
            .filter(|made| {
                made.as_ref().map_err(Error::kind).map_or_else(
                    |kind| {
                        assert_eq!(kind, ErrorKind::AlreadyExists);
                        false
                    },
                    |_| true,
                )
            })
            .count()
    });
    assert_eq!(made, 1);
}

#[test]
fn a_team_directory_without_a_config_is_completed() {
    let dir = TempDir::new().unwrap();
    let root = open_root(dir.path());
    std::fs::create_dir_all(root.path().join("teams/orchard/inboxes")).unwrap();
    assert!(root.teams().unwrap().is_empty());
    let team = root.create_team(&config("orchard")).unwrap();
    assert_eq!(root.teams().unwrap(), [team.name().clone()]);
    assert!(team.tasks().path().join(".lock").exists());
}

#[test]
#[allow(clippy::disallowed_methods, reason = "somebody else's hand")]
fn a_root_is_current_while_its_path_leads_to_its_directories() {
    let dir = TempDir::new().unwrap();
    let root = open_root(dir.path());
    assert!(root.is_current() && root.try_lock().unwrap());
    for of_it in ["teams", "tasks"] {
        let (path, away) = (root.path().join(of_it), dir.path().join("away"));
        std::fs::rename(&path, &away).unwrap();
        assert!(!root.is_current(), "{of_it}");
        let next = open_root(dir.path());
        assert!(next.is_current() && !root.is_current(), "{of_it}");
        assert_eq!(next.try_lock().unwrap(), of_it == "teams");
        drop(next);
        std::fs::remove_dir(&path).unwrap();
        std::fs::rename(&away, &path).unwrap();
        assert!(root.is_current(), "{of_it}");
    }
    root.unlock().unwrap();
    assert!(open_root(dir.path()).try_lock().unwrap());
}

#[test]
fn errors_for_unknown_names_list_the_nearest() {
    let env = TestRoot::new();
    let error = env.root.team(&TeamName::parse("orchid").unwrap()).unwrap_err();
    assert_eq!((error.kind(), error.help().unwrap().as_str()), (ErrorKind::NotFound, "there is: orchard"));
    let error = env.team.member("anna").unwrap_err();
    assert!(error.help().unwrap().starts_with("there is: ann"), "{error}");
    assert_eq!(env.team.member("ANN@orchard").unwrap().name.as_str(), "ann");
    assert!(env.team.member("ann@other").is_err());
}

#[test]
fn members_are_added_once_changed_and_removed() {
    let env = TestRoot::new();
    assert_eq!(env.team.add_member(&member("ANN")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    env.team
        .set_member_fields(&agent("ann"), &[("isActive", false.into()), ("mode", "plan".into())])
        .unwrap();
    let ann = env.team.member("ann").unwrap();
    assert_eq!((ann.is_active, ann.mode.as_deref()), (Some(false), Some("plan")));
    env.team.remove_member(&agent("ann")).unwrap();
    env.team.remove_member(&agent("ann")).unwrap();
    let error = env.team.set_member_fields(&agent("ann"), &[("isActive", true.into())]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(env.team.config().unwrap().members.len(), 2);
    let all = ["ann", "bob", "carl"].map(member);
    let there = |env: &TestRoot| -> Vec<AgentName> {
        env.team.config().unwrap().members.into_iter().map(|member| member.name).collect()
    };
    let before = there(&env);
    let missing = env.team.add_missing_members(&all).unwrap();
    assert_eq!([before, missing].concat(), there(&env), "appended in order");
    assert_eq!(env.team.add_missing_members(&all).unwrap(), [], "once");
}

#[test]
fn many_members_are_added_or_removed_in_one_change() {
    let env = TestRoot::new();
    let path = env.team.config_path();
    let (before, inode) = (std::fs::read_to_string(&path).unwrap(), || path.metadata().unwrap().ino());
    let dora = || member("dora");
    assert_eq!(
        env.team.add_missing_members(&[dora(), member("carl"), dora()]).unwrap(),
        [agent("dora"), agent("carl")]
    );
    let there = inode();
    assert_eq!(env.team.add_missing_members(&[dora(), member("Ann")]).unwrap(), []);
    env.team.remove_members(&[agent("nobody")]).unwrap();
    assert_eq!(inode(), there, "the file is not written");
    env.team.remove_members(&[agent("CARL"), agent("nobody"), agent("dora")]).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn an_unchanged_config_is_not_parsed_again() {
    let env = TestRoot::new();
    let (team, path) = (&env.team, env.team.config_path());
    let read = || team.as_repairer().cached_config().unwrap();
    let one = read();
    assert!(Arc::ptr_eq(&one, &read()), "a written config is cached");
    overwrite_in_place(&path, one.text());
    assert!(Arc::ptr_eq(&one, &read()), "the same text written by another program");
    team.add_member(&member("carl")).unwrap();
    let two = read();
    assert!(two.member(&agent("carl")).is_some() && one.member(&agent("carl")).is_none());
    assert_eq!(two.text(), std::fs::read_to_string(&path).unwrap());
    assert!(
        Arc::ptr_eq(&two, &env.team.clone().as_repairer().cached_config().unwrap()),
        "a clone of the handle"
    );
}

#[test]
fn the_base_version_stays_while_only_members_change() {
    let env = TestRoot::new();
    let (team, path) = (&env.team, env.team.config_path());
    let origin = || team.as_repairer().cached_config().unwrap().origin();
    let one = origin();
    team.add_missing_members(&[member("carl"), member("dora")]).unwrap();
    team.remove_members(&[agent("carl"), agent("ann")]).unwrap();
    assert_eq!(origin(), one);
    overwrite_in_place(&path, team.as_repairer().cached_config().unwrap().text());
    assert_eq!(origin(), one, "the same text written by another program");
    let changes: [&dyn Fn(); 4] = [
        &|| team.set_member_fields(&agent("bob"), &[("mode", "plan".into())]).unwrap(),
        &|| team.set_fields(&[("hiddenPaneIds", ["%1"].into())]).unwrap(),
        &|| {
            overwrite_in_place(
                &path,
                std::fs::read_to_string(&path).unwrap().replacen("orchard", "another", 1),
            );
        },
        // Another program writes between the read and the change.
        &|| {
            overwrite_in_place(
                &path,
                std::fs::read_to_string(&path).unwrap().replacen("another", "a third", 1),
            );
            team.add_member(&member("eve")).unwrap();
        },
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let before = origin();
        change();
        assert_ne!(origin(), before, "{at}");
    }
}

#[test]
fn a_foreign_write_right_after_a_change_is_read_and_kept() {
    let env = TestRoot::new();
    let (team, path) = (&env.team, env.team.config_path());
    let mode =
        |name: &str| team.as_repairer().cached_config().unwrap().member(&agent(name)).unwrap().mode.clone();
    team.set_member_fields(&agent("bob"), &[("mode", "0".into())]).unwrap();
    for n in 0..200 {
        team.set_member_fields(&agent("ann"), &[("mode", "plan".into())]).unwrap();
        // The foreign writer writes the same number of bytes in place.
        let (was, is) = (n % 10, (n + 1) % 10);
        let text = std::fs::read_to_string(&path).unwrap();
        overwrite_in_place(
            &path,
            text.replacen(&format!("\"mode\": \"{was}\""), &format!("\"mode\": \"{is}\""), 1),
        );
        assert_eq!(mode("bob"), Some(is.to_string()), "{n}");
        team.set_member_fields(&agent("ann"), &[("mode", "auto".into())]).unwrap();
        assert_eq!((mode("ann").as_deref(), mode("bob")), (Some("auto"), Some(is.to_string())), "{n}");
    }
}

#[test]
fn a_root_that_others_can_write_is_rejected_with_the_remedy() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("root");
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
    let error = Root::open(&path, dir.path(), Durability::Process).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotPermitted);
    assert!(error.help().unwrap().starts_with("chmod o-w "), "{error}");
    std::fs::set_permissions(&path, Permissions::from_mode(0o775)).unwrap();
    Root::open(&path, dir.path(), Durability::Process).unwrap();
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        let error = Root::open(&path, dir.path(), Durability::Process).unwrap_err();
        assert!(error.to_string().contains("another user"), "{error}");
    }
}

#[test]
fn a_linked_root_is_one_root() {
    let env = TestRoot::new();
    let link = env.path().join("link");
    symlink(env.root.path(), &link).unwrap();
    let root = Root::open(&link, env.path(), Durability::Process).unwrap();
    assert_eq!(root.path(), env.root.path());
}

#[test]
fn a_session_team_accepts_messages_and_no_other_changes() {
    let env = TestRoot::new();
    let dir = env.root.path().join("teams/session-5708d3dd");
    std::fs::create_dir(&dir).unwrap();
    overwrite_in_place(&dir.join("config.json"), config("orchard").to_text());
    let team = env.root.team(&TeamName::parse("session-5708d3dd").unwrap()).unwrap();
    team.inbox(&agent("w1")).append(&message("hello")).unwrap();
    let refused = [
        team.add_member(&member("ann")).unwrap_err(),
        team.inbox(&agent("w1")).mark_all_read().unwrap_err(),
        team.tasks().create(NewTask::new("x", &agent("team-lead"))).unwrap_err(),
        team.delete().unwrap_err(),
        env.root.create_team(&config("session-1")).unwrap_err(),
    ];
    assert!(refused.iter().all(|error| error.kind() == ErrorKind::NotPermitted), "{refused:?}");
}

#[test]
fn a_deleted_team_is_gone_and_its_name_free() {
    let env = TestRoot::new();
    env.team.inbox(&agent("ann")).append(&message("x")).unwrap();
    let task = env.team.tasks().create(NewTask::new("x", &agent("ann"))).unwrap();
    env.team.tasks().delete(&task.id).unwrap();
    std::fs::create_dir(env.inbox_path("ann.json.lock")).unwrap();
    overwrite_in_place(&env.inbox_path(".ann.json.tmp.0123456789abcdef0123456789abcdef"), "x");
    overwrite_in_place(&env.inbox_path("ann.json.tmp.01234567"), "x");
    let [unused, late] = [env.reopen_team(), env.reopen_team()];
    env.team.delete().unwrap();
    assert!(unused.tasks().create(NewTask::new("late", &agent("ann"))).is_err(), "no directory is created");
    assert!(!env.team.path().exists() && !env.team.tasks().path().exists());
    env.team.delete().unwrap();
    let again = env.root.create_team(&config("orchard")).unwrap();
    assert!(env.team.inbox(&agent("ann")).append(&message("late")).is_err(), "an old handle does not work");
    for old in [&env.team, &late] {
        assert!(old.tasks().create(NewTask::new("late", &agent("ann"))).is_err(), "no task list is created");
    }
    assert!(again.tasks().list().unwrap().is_empty());
    assert!(again.inbox(&agent("ann")).read().unwrap().is_empty());
}

#[test]
fn unknown_files_are_kept_and_listed() {
    let env = TestRoot::new();
    env.team.inbox(&agent("ann")).append(&message("x")).unwrap();
    let victim = env.path().join("victim");
    overwrite_in_place(&victim, "precious");
    symlink(&victim, env.inbox_path("link.json")).unwrap();
    let unknown =
        [env.inbox_path("notes.txt"), env.team.path().join("x"), env.team.tasks().path().join("01.json")];
    unknown.iter().for_each(|path| overwrite_in_place(path, "mine"));
    let error = env.team.delete().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    for path in unknown.iter().chain([&env.inbox_path("link.json")]) {
        assert!(
            path.symlink_metadata().is_ok() && error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    env.root.team(env.team.name()).unwrap().delete().unwrap();
    assert!(list_dir(&env.root.path().join("teams")).is_empty());
}

#[test]
fn files_of_killed_writers_are_removed_after_an_hour() {
    let env = TestRoot::new();
    let id = "0123456789abcdef0123456789abcdef";
    let (old, new) =
        (env.inbox_path(&format!(".ann.json.tmp.{id}")), env.inbox_path("bob.json.tmp.01234567"));
    let moved = env.inbox_path(&format!(".bob.json.lock.stale.{id}"));
    overwrite_in_place(&old, "x");
    overwrite_in_place(&new, "x");
    std::fs::create_dir(&moved).unwrap();
    for path in [&old, &moved] {
        set_mtime(path, SystemTime::now() - Duration::from_secs(3700));
    }
    env.team.remove_abandoned().unwrap();
    assert_eq!(list_dir(&env.inbox_path("")), [new]);
}

#[test]
fn probes_and_old_probes_are_removed() {
    let dir = TempDir::new().unwrap();
    let root = open_root(dir.path());
    let teams = root.path().join("teams");
    overwrite_in_place(&teams.join(".probe.tmp.0123"), "");
    root.create_probe().unwrap();
    assert_eq!(list_dir(&teams), [] as [std::path::PathBuf; 0]);
}
