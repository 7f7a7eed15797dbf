//! Files that are not valid JSON. The store reads such a file again for a while, then copies it and
//! does not change it. Only a damaged config of teamd's own team is repaired.

use crate::test_root::{TestRoot, agent, hostile_inbox, message, overwrite_in_place, sleep_ms};
use protocol::error_kind_and_report::ErrorKind;
use protocol::task::TaskStatus;
use protocol::team_and_member_names::MemberName;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use store::{Error, NewTask};

/// How long a file may be empty at most without counting as damaged. The store waits twice as long.
const MAX_WRITE_TIME: Duration = Duration::from_secs(1);

#[test]
fn damaged_inboxes_are_not_changed_and_copied_once() {
    let names = [
        "deep",
        "empty",
        "invalid-utf8",
        "nul-tail",
        "object-not-array",
        "trailing-comma",
        "truncated",
        "two-documents",
    ];
    std::thread::scope(|scope| {
        for name in names {
            scope.spawn(move || assert_unchanged_and_copied_once(name));
        }
    });
}

fn assert_unchanged_and_copied_once(name: &str) {
    let env = TestRoot::new();
    let (inbox, bytes) = (env.team.inbox(&agent("bob")), hostile_inbox(name));
    overwrite_in_place(&inbox.path(), &bytes);
    for error in [
        inbox.append(&message("x")).unwrap_err(),
        inbox.mark_all_read().unwrap_err(),
        inbox.read().unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{name}: {error}");
        let Error::Corrupt { backup, .. } = error else { panic!("{name}: {error}") };
        assert_eq!(std::fs::read(backup.unwrap()).unwrap(), bytes, "{name}");
    }
    assert_eq!(std::fs::read(inbox.path()).unwrap(), bytes, "{name}");
    assert_eq!(env.backups().len(), 1, "{name}: equal content is copied once");
}

#[test]
fn a_half_written_task_is_read_next_to_a_damaged_one() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    let create = |subject: &str| tasks.create(NewTask::new(subject, &MemberName::lead())).unwrap();
    let [damaged, half_written] =
        ["damaged", "half-written"].map(|subject| tasks.path().join(format!("{}.json", create(subject).id)));
    overwrite_in_place(&damaged, "{");
    sleep_ms(2_100);
    let text = std::fs::read_to_string(&half_written).unwrap();
    overwrite_in_place(&half_written, "");
    let all = std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep_ms(700);
            overwrite_in_place(&half_written, &text);
        });
        tasks.list().unwrap()
    });
    assert_eq!(all[1].subject, "half-written");
    assert_eq!(all[0].status, TaskStatus::Other("unreadable".to_owned()));
}

#[test]
fn a_half_written_file_is_read_again() {
    let env = TestRoot::new();
    let inbox = env.team.inbox(&agent("bob"));
    inbox.append(&message("one")).unwrap();
    let text = std::fs::read_to_string(inbox.path()).unwrap();
    overwrite_in_place(&inbox.path(), &text[..text.len() / 2]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep_ms(700);
            overwrite_in_place(&inbox.path(), &text);
        });
        inbox.append(&message("two")).unwrap();
    });
    assert_eq!(inbox.read().unwrap().len(), 2);
    assert!(env.backups().is_empty());
}

/// The kernel shows the new size of a truncated file before its new timestamp. On a very busy disk,
/// a file can stay empty for so long that an error is correct.
#[test]
fn old_files_that_were_just_truncated_are_read_again() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    let all = [0; 200].map(|_| tasks.create(NewTask::new("x", &MemberName::lead())).unwrap().id);
    sleep_ms(2_100);
    let (reads, written, mut failed) = (AtomicUsize::new(0), AtomicUsize::new(0), Vec::new());
    let slow = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut slow = Vec::new();
            for id in all {
                let path = tasks.path().join(format!("{id}.json"));
                let text = std::fs::read_to_string(&path).unwrap();
                let before = reads.load(Ordering::Relaxed);
                while reads.load(Ordering::Relaxed) < before + 3 {}
                let start = Instant::now();
                overwrite_in_place(&path, "");
                overwrite_in_place(&path, &text);
                slow.extend((start.elapsed() > MAX_WRITE_TIME).then_some(id));
                written.fetch_add(1, Ordering::Relaxed);
            }
            slow
        });
        for (n, id) in all.iter().enumerate() {
            while written.load(Ordering::Relaxed) <= n {
                failed.extend(tasks.get(id).err().map(|error| (*id, error)));
                reads.fetch_add(1, Ordering::Relaxed);
            }
        }
        writer.join().unwrap()
    });
    failed.retain(|(id, _)| !slow.contains(id));
    assert!(failed.is_empty() && env.backups().len() <= slow.len(), "{failed:?}");
}

#[test]
fn an_empty_config_is_reported_and_not_changed() {
    let env = TestRoot::new();
    overwrite_in_place(&env.team.config_path(), "");
    let error = env.team.set_member_fields(&agent("ann"), &[("isActive", false.into())]).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert_eq!(std::fs::read(env.team.config_path()).unwrap(), b"");
}

#[test]
fn the_error_for_a_wrong_field_type_names_file_and_value() {
    let env = TestRoot::new();
    let text = std::fs::read_to_string(env.team.config_path()).unwrap();
    overwrite_in_place(
        &env.team.config_path(),
        text.replacen("\"createdAt\": 1", "\"createdAt\": \"soon\"", 1),
    );
    let error = env.team.config().unwrap_err();
    let text = error.to_string();
    assert!(
        text.ends_with("config.json: field createdAt should be a whole number, but is \"soon\""),
        "{text}"
    );
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[test]
fn a_task_that_cannot_be_read_still_blocks() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    let first = tasks.create(store::NewTask::new("first", &agent("ann"))).unwrap();
    let second =
        store::NewTask { blocked_by: vec![first.id], ..store::NewTask::new("second", &agent("ann")) };
    let second = tasks.create(second).unwrap();
    let path = tasks.path().join("1.json");
    overwrite_in_place(&path, "{\"id\": \"1\",");
    let all = tasks.list().unwrap();
    assert_eq!(all[0].status, TaskStatus::Other("unreadable".to_owned()));
    assert!(matches!(tasks.claim(Some(&second.id), &agent("bob")), Err(Error::TaskBlocked { .. })));
    assert!(matches!(tasks.get(&first.id), Err(Error::Corrupt { .. })));
    let error = tasks.complete(&first.id, &agent("bob")).unwrap_err();
    assert!(error.to_string().contains("tasks/orchard/1.json: EOF while parsing"), "{error}");
    assert_eq!(std::fs::read(path).unwrap(), b"{\"id\": \"1\",");
}

#[test]
fn a_damaged_or_missing_config_is_repaired() {
    let contents: [Option<&[u8]>; 5] =
        [Some(b""), Some(b"{\"name\": \"orch"), Some(b"\xff"), Some(b"[]"), None];
    std::thread::scope(|scope| {
        for content in contents {
            scope.spawn(move || {
                let env = TestRoot::new();
                let path = env.team.config_path();
                let valid = std::fs::read_to_string(&path).unwrap();
                match content {
                    Some(content) => overwrite_in_place(&path, content),
                    None => std::fs::remove_file(&path).unwrap(),
                }
                assert!(env.team.repair_config(|| valid.clone()).unwrap().is_some());
                assert_eq!(std::fs::read_to_string(&path).unwrap(), valid);
                let copies: Vec<Vec<u8>> =
                    env.backups().iter().map(|copy| std::fs::read(copy).unwrap()).collect();
                assert_eq!(
                    copies,
                    Vec::from_iter(content.map(<[u8]>::to_vec)),
                    "a damaged config is copied once"
                );
                assert!(
                    env.team.repair_config(|| "{}".into()).unwrap().is_none(),
                    "a valid config is not changed"
                );
            });
        }
    });
}

#[test]
fn a_half_written_config_is_not_repaired() {
    let env = TestRoot::new();
    let path = env.team.config_path();
    let valid = std::fs::read_to_string(&path).unwrap();
    overwrite_in_place(&path, "");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep_ms(700);
            overwrite_in_place(&path, &valid);
        });
        assert!(env.team.repair_config(|| "{}".into()).unwrap().is_none());
    });
    assert_eq!(std::fs::read_to_string(&path).unwrap(), valid);
}

#[test]
fn a_config_without_backup_or_with_a_wrong_field_is_not_repaired() {
    let env = TestRoot::new();
    let path = env.team.config_path();
    overwrite_in_place(&path, "{\"name\": 5}");
    assert!(env.team.repair_config(|| "{}".into()).unwrap().is_none(), "the config is valid JSON");
    let error = env.team.config().unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
    for n in 0..5 {
        overwrite_in_place(
            &env.path().join(format!("corrupt/teams-orchard-config.json.{n:032}")),
            "an earlier team",
        );
    }
    overwrite_in_place(&path, "a sixth");
    let error = env.team.repair_config(|| "{}".into()).unwrap_err();
    assert!(matches!(error, Error::Corrupt { backup: None, .. }), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"a sixth");
}

#[test]
fn a_session_team_is_never_repaired() {
    let env = TestRoot::new();
    let dir = env.path().join("root/teams/session-0123abcd");
    std::fs::create_dir(&dir).unwrap();
    overwrite_in_place(&dir.join("config.json"), "");
    let name = protocol::team_and_member_names::TeamName::parse("session-0123abcd").unwrap();
    let team = env.root.open_team_without_config(&name).unwrap().unwrap();
    assert!(matches!(team.repair_config(|| "{}".into()), Err(Error::ReadOnly(_))));
    assert_eq!(std::fs::read(dir.join("config.json")).unwrap(), b"");
}
