//! Roots and teams: how they are created, found, checked, cached and deleted.

use crate::test_root::{
    TestRoot, agent, config, list_dir, member, message, open_root, overwrite_in_place, set_mtime,
};
use protocol::error_kind_and_report::ErrorKind;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use store::{Durability, Error, NewTask, Root};
use tempfile::TempDir;

#[test]
fn one_of_sixteen_creates_the_team() {
    let dir = TempDir::new().unwrap();
    let created_count = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..16).map(|_| scope.spawn(|| open_root(dir.path()).create_team(&config("orchard")))).collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results
            .filter(|result| {
                result.as_ref().map_err(Error::kind).map_or_else(
                    |kind| {
                        assert_eq!(kind, ErrorKind::AlreadyExists);
                        false
                    },
                    |_| true,
                )
            })
            .count()
    });
    assert_eq!(created_count, 1);
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
#[allow(clippy::disallowed_methods, reason = "the test moves directories like a person")]
fn a_root_is_current_while_its_path_leads_to_its_directories() {
    let dir = TempDir::new().unwrap();
    let root = open_root(dir.path());
    assert!(root.is_current() && root.try_lock().unwrap());
    for name in ["teams", "tasks"] {
        let (path, moved) = (root.path().join(name), dir.path().join("away"));
        std::fs::rename(&path, &moved).unwrap();
        assert!(!root.is_current(), "{name}");
        let new_root = open_root(dir.path());
        assert!(new_root.is_current() && !root.is_current(), "{name}");
        assert_eq!(new_root.try_lock().unwrap(), name == "teams");
        drop(new_root);
        std::fs::remove_dir(&path).unwrap();
        std::fs::rename(&moved, &path).unwrap();
        assert!(root.is_current(), "{name}");
    }
    root.unlock().unwrap();
    assert!(open_root(dir.path()).try_lock().unwrap());
}

#[test]
fn errors_for_unknown_names_list_the_nearest() {
    let env = TestRoot::new();
    let error = env.root.team(&TeamName::parse("orchid").unwrap()).unwrap_err();
    assert_eq!(
        (error.kind(), error.help().unwrap().as_str()),
        (ErrorKind::NotFound, "did you mean orchard?")
    );
    let error = env.team.member("anna").unwrap_err();
    assert!(error.help().unwrap().starts_with("did you mean ann"), "{error}");
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
    let member_names = |env: &TestRoot| -> Vec<MemberName> {
        env.team.config().unwrap().members.into_iter().map(|member| member.name).collect()
    };
    let before = member_names(&env);
    let missing = env.team.add_missing_members(&all).unwrap();
    assert_eq!([before, missing].concat(), member_names(&env), "the missing members are appended in order");
    assert_eq!(env.team.add_missing_members(&all).unwrap(), [], "no member is added twice");
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
    let inode_before = inode();
    assert_eq!(env.team.add_missing_members(&[dora(), member("Ann")]).unwrap(), []);
    env.team.remove_members(&[agent("zed")]).unwrap();
    assert_eq!(inode(), inode_before, "the file is not written");
    env.team.remove_members(&[agent("CARL"), agent("zed"), agent("dora")]).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn an_unchanged_config_is_not_parsed_again() {
    let env = TestRoot::new();
    let (team, path) = (&env.team, env.team.config_path());
    let read = || team.as_repairer().cached_config().unwrap();
    let first = read();
    assert!(Arc::ptr_eq(&first, &read()), "a config that the store wrote is cached");
    overwrite_in_place(&path, first.text());
    assert!(Arc::ptr_eq(&first, &read()), "the same text from another program is not parsed");
    team.add_member(&member("carl")).unwrap();
    let second = read();
    assert!(second.member(&agent("carl")).is_some() && first.member(&agent("carl")).is_none());
    assert_eq!(second.text(), std::fs::read_to_string(&path).unwrap());
    assert!(
        Arc::ptr_eq(&second, &env.team.clone().as_repairer().cached_config().unwrap()),
        "a clone of the handle shares the cache"
    );
}

#[test]
fn the_base_version_stays_while_only_members_change() {
    let env = TestRoot::new();
    let (team, path) = (&env.team, env.team.config_path());
    let base_version = || team.as_repairer().cached_config().unwrap().base_version();
    let first = base_version();
    team.add_missing_members(&[member("carl"), member("dora")]).unwrap();
    team.remove_members(&[agent("carl"), agent("ann")]).unwrap();
    assert_eq!(base_version(), first);
    overwrite_in_place(&path, team.as_repairer().cached_config().unwrap().text());
    assert_eq!(base_version(), first, "the same text from another program keeps the base version");
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
        let before = base_version();
        change();
        assert_ne!(base_version(), before, "change {at}");
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
        let (old, new) = (n % 10, (n + 1) % 10);
        let text = std::fs::read_to_string(&path).unwrap();
        overwrite_in_place(
            &path,
            text.replacen(&format!("\"mode\": \"{old}\""), &format!("\"mode\": \"{new}\""), 1),
        );
        assert_eq!(mode("bob"), Some(new.to_string()), "{n}");
        team.set_member_fields(&agent("ann"), &[("mode", "auto".into())]).unwrap();
        assert_eq!((mode("ann").as_deref(), mode("bob")), (Some("auto"), Some(new.to_string())), "{n}");
    }
}

#[test]
fn a_root_that_others_can_write_is_rejected_with_help() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("root");
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
    let error = Root::open(&path, dir.path(), Durability::Process).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotPermitted);
    assert!(error.help().unwrap().starts_with("chmod -R go-w "), "{error}");
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    Root::open(&path, dir.path(), Durability::Process).unwrap();
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        let error = Root::open(&path, dir.path(), Durability::Process).unwrap_err();
        assert!(error.to_string().contains("another user"), "{error}");
    }
}

#[test]
fn a_symlink_to_a_root_opens_the_same_root() {
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
    let errors = [
        team.add_member(&member("ann")).unwrap_err(),
        team.inbox(&agent("w1")).mark_all_read().unwrap_err(),
        team.tasks().create(NewTask::new("x", &agent("team-lead"))).unwrap_err(),
        team.delete().unwrap_err(),
        env.root.create_team(&config("session-1")).unwrap_err(),
    ];
    assert!(errors.iter().all(|error| error.kind() == ErrorKind::NotPermitted), "{errors:?}");
}

/// Senders and the links to other hosts write until the team is gone.
#[test]
fn a_team_is_deleted_while_others_write_to_it() {
    for round in 0..200 {
        let env = TestRoot::new();
        let started = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for writer in ["w1", "w2", "w3"] {
                let (team, started) = (env.reopen_team(), &started);
                scope.spawn(move || {
                    started.wait();
                    for _ in 0..20 {
                        let sent = team.inbox(&agent(writer)).append_received(&[message("x")]);
                        let created = team.tasks().create(NewTask::new("x", &agent(writer)));
                        if sent.is_err() && created.is_err() {
                            break;
                        }
                    }
                });
            }
            started.wait();
            env.team.delete().unwrap_or_else(|error| panic!("round {round}: {error}"));
        });
        assert!(env.root.team(env.team.name()).is_err(), "round {round}");
    }
}

#[test]
fn a_deleted_team_leaves_no_files_and_its_name_is_free() {
    let env = TestRoot::new();
    env.team.inbox(&agent("ann")).append(&message("x")).unwrap();
    let task = env.team.tasks().create(NewTask::new("x", &agent("ann"))).unwrap();
    env.team.tasks().delete(&task.id).unwrap();
    std::fs::create_dir(env.inbox_path("ann.json.lock")).unwrap();
    overwrite_in_place(&env.inbox_path(".ann.json.tmp.0123456789abcdef0123456789abcdef"), "x");
    overwrite_in_place(&env.inbox_path("ann.json.tmp.01234567"), "x");
    let [unused_handle, other_handle] = [env.reopen_team(), env.reopen_team()];
    env.team.delete().unwrap();
    assert!(
        unused_handle.tasks().create(NewTask::new("late", &agent("ann"))).is_err(),
        "an old handle creates no directory"
    );
    assert!(!env.team.path().exists() && !env.team.tasks().path().exists());
    env.team.delete().unwrap();
    let new_team = env.root.create_team(&config("orchard")).unwrap();
    assert!(
        env.team.inbox(&agent("ann")).append(&message("late")).is_err(),
        "an old handle appends no message"
    );
    for old_handle in [&env.team, &other_handle] {
        assert!(
            old_handle.tasks().create(NewTask::new("late", &agent("ann"))).is_err(),
            "an old handle creates no task"
        );
    }
    assert!(new_team.tasks().list().unwrap().is_empty());
    assert!(new_team.inbox(&agent("ann")).read().unwrap().is_empty());
}

#[test]
fn unknown_files_are_kept_and_listed() {
    let env = TestRoot::new();
    env.team.inbox(&agent("ann")).append(&message("x")).unwrap();
    let target = env.path().join("target");
    overwrite_in_place(&target, "precious");
    symlink(&target, env.inbox_path("link.json")).unwrap();
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
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    env.root.team(env.team.name()).unwrap().delete().unwrap();
    assert!(list_dir(&env.root.path().join("teams")).is_empty());
}

#[test]
fn files_of_killed_writers_are_removed_after_an_hour() {
    let env = TestRoot::new();
    let id = "0123456789abcdef0123456789abcdef";
    let (old, new) =
        (env.inbox_path(&format!(".ann.json.tmp.{id}")), env.inbox_path("bob.json.tmp.01234567"));
    let moved_lock = env.inbox_path(&format!(".bob.json.lock.stale.{id}"));
    overwrite_in_place(&old, "x");
    overwrite_in_place(&new, "x");
    std::fs::create_dir(&moved_lock).unwrap();
    for path in [&old, &moved_lock] {
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

/// Only root can give a file to another user or group, so nothing is tested without root.
#[test]
fn a_file_or_directory_that_others_can_change_is_refused_at_every_level() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let env = TestRoot::new();
    let ann = agent("ann");
    env.team.inbox(&ann).append(&message("hello")).unwrap();
    env.team.tasks().create(NewTask::new("count", &ann)).unwrap();
    let root = env.root.path().to_owned();
    let open = || -> Result<(), Error> {
        let team = Root::open(&root, env.path(), Durability::Process)?.team(env.team.name())?;
        team.config()?;
        team.inbox(&ann).read()?;
        team.tasks().get(&TaskId::from_number(1).unwrap()).map(drop)
    };
    let name = env.team.name();
    for entry in [
        ".".to_owned(),
        "teams".to_owned(),
        "tasks".to_owned(),
        format!("teams/{name}"),
        format!("teams/{name}/inboxes"),
        format!("tasks/{name}"),
        format!("teams/{name}/config.json"),
        format!("teams/{name}/inboxes/ann.json"),
        format!("tasks/{name}/1.json"),
    ] {
        let path = root.join(&entry);
        let mode = path.metadata().unwrap().permissions().mode();
        open().unwrap();
        std::os::unix::fs::chown(&path, None, Some(12345)).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode | 0o020)).unwrap();
        let error = open().unwrap_err();
        assert!(error.to_string().ends_with("its group can write to it"), "{entry}: {error}");
        assert!(error.help().unwrap().starts_with("chmod "), "{entry}: {error}");
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        let error = open().unwrap_err();
        assert!(error.to_string().ends_with("it belongs to another user"), "{entry}: {error}");
        std::os::unix::fs::chown(&path, Some(0), Some(0)).unwrap();
    }
}
