//! The task cache: changed files are always read again, and unchanged files are not.

use crate::test_root::{TestRoot, agent, overwrite_in_place, sleep_ms};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Error, NewTask, Tasks};

fn id(number: u32) -> TaskId {
    TaskId::from_number(number).unwrap()
}

/// A root with three tasks, and a handle whose cache has them. The handle reads the task files when
/// they are old enough to be cached.
fn cached_list() -> (TestRoot, Tasks) {
    let env = TestRoot::new();
    for subject in ["one", "two", "six"] {
        env.reopen_team().tasks().create(NewTask::new(subject, &agent("ann"))).unwrap();
    }
    let tasks = env.team.tasks();
    sleep_ms(80);
    tasks.list().unwrap();
    (env, tasks)
}

fn subjects(tasks: &Tasks) -> Vec<String> {
    tasks.list().unwrap().into_iter().map(|task| task.subject).collect()
}

fn task_path(tasks: &Tasks, number: u32) -> PathBuf {
    tasks.path().join(format!("{number}.json"))
}

/// The text of the task file with another subject of the same length.
fn with_subject(path: &Path, subject: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let old = Task::parse(&text).unwrap().subject;
    assert_eq!(old.len(), subject.len());
    text.replace(&format!("\"{old}\""), &format!("\"{subject}\""))
}

/// Overwrites the file without truncating it.
fn overwrite(path: &Path, text: &str) {
    OpenOptions::new().write(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[allow(clippy::disallowed_methods, reason = "as newer foreign writers do")]
/// Replaces the file by a rename.
fn replace_by_rename(path: &Path, text: &str) {
    let new_path = path.with_extension("new");
    overwrite_in_place(&new_path, text);
    std::fs::rename(new_path, path).unwrap();
}

#[test]
fn unchanged_files_are_not_read_again() {
    let (env, tasks) = cached_list();
    let (before, clone_result) =
        (tasks.list_cached().unwrap(), env.team.clone().tasks().list_cached().unwrap());
    assert!(before.iter().zip(&clone_result).all(|(a, b)| Arc::ptr_eq(a, b)), "a clone shares the cache");
    env.reopen_team().tasks().claim(Some(&id(2)), &agent("bob")).unwrap();
    let after = tasks.list_cached().unwrap();
    let same: Vec<bool> = before.iter().zip(&after).map(|(a, b)| Arc::ptr_eq(a, b)).collect();
    assert_eq!(same, [true, false, true]);
    assert_eq!((&after[1].status, &after[1].owner), (&TaskStatus::InProgress, &Some(agent("bob"))));
}

#[test]
fn reading_some_files_again_finds_only_their_changes() {
    let (env, tasks) = cached_list();
    for number in [1, 2] {
        overwrite(&task_path(&tasks, number), &with_subject(&task_path(&tasks, number), "new"));
    }
    let subjects = |changed: &[TaskId]| -> Vec<String> {
        tasks.list_after_changes(changed).unwrap().iter().map(|task| task.subject.clone()).collect()
    };
    let earlier = tasks.list_after_changes(&[]).unwrap();
    assert_eq!(subjects(&[id(2)]), ["one", "new", "six"]);
    assert_eq!(earlier[1].subject, "two", "an older result does not change");
    env.reopen_team().tasks().create(NewTask::new("four", &agent("ann"))).unwrap();
    std::fs::remove_file(task_path(&tasks, 3)).unwrap();
    assert_eq!(subjects(&[id(1), id(3), id(4)]), ["new", "new", "four"]);
    assert_eq!(subjects(&[]), ["new", "new", "four"]);
}

#[test]
fn an_overwrite_in_place_of_equal_size_is_found() {
    let (_env, tasks) = cached_list();
    let path = task_path(&tasks, 2);
    overwrite_in_place(&path, with_subject(&path, "TWO"));
    assert_eq!(subjects(&tasks), ["one", "TWO", "six"]);
}

#[test]
fn overwrites_within_one_clock_tick_are_found() {
    let (_env, tasks) = cached_list();
    let path = task_path(&tasks, 2);
    for round in 100..900 {
        let text = with_subject(&path, &round.to_string());
        overwrite(&path, &text);
        assert_eq!(subjects(&tasks)[1], round.to_string());
    }
}

#[test]
fn a_timestamp_that_was_set_back_hides_no_change() {
    let (_env, tasks) = cached_list();
    let path = task_path(&tasks, 2);
    let modified = path.metadata().unwrap().modified().unwrap();
    overwrite(&path, &with_subject(&path, "TWO"));
    File::open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(subjects(&tasks)[1], "TWO");
}

#[test]
fn a_rename_of_equal_size_and_time_is_found() {
    let (_env, tasks) = cached_list();
    let path = task_path(&tasks, 2);
    let modified = path.metadata().unwrap().modified().unwrap();
    replace_by_rename(&path, &with_subject(&path, "TWO"));
    File::open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(subjects(&tasks)[1], "TWO");
}

/// Whether the inode number is reused depends on the file system; ext4 reuses it at once.
#[test]
fn a_recreated_file_with_the_same_inode_is_found() {
    let (_env, tasks) = cached_list();
    let path = task_path(&tasks, 2);
    let before = path.metadata().unwrap();
    let text = with_subject(&path, "TWO");
    std::fs::remove_file(&path).unwrap();
    overwrite_in_place(&path, &text);
    File::open(&path).unwrap().set_modified(before.modified().unwrap()).unwrap();
    assert_eq!(subjects(&tasks)[1], "TWO", "inode {} was {}", path.metadata().unwrap().ino(), before.ino());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(subjects(&tasks), ["one", "six"]);
    assert!(matches!(tasks.claim(Some(&id(2)), &agent("ann")), Err(Error::NoSuchTask { .. })));
}

#[test]
fn a_damaged_and_repaired_file_is_read_both_times() {
    let (_env, tasks) = cached_list();
    let path = task_path(&tasks, 2);
    let valid = std::fs::read_to_string(&path).unwrap();
    overwrite_in_place(&path, valid.replacen('}', "]", 1));
    assert_eq!(tasks.list().unwrap()[1].status, TaskStatus::Other("unreadable".to_owned()));
    assert!(matches!(tasks.complete(&id(2), &agent("ann")), Err(Error::Malformed { .. })));
    overwrite_in_place(&path, &valid);
    assert_eq!(subjects(&tasks), ["one", "two", "six"]);
    tasks.complete(&id(2), &agent("ann")).unwrap();
}

#[test]
fn a_change_is_made_to_the_file_and_not_to_the_cached_task() {
    let (env, tasks) = cached_list();
    let other_handle = env.reopen_team().tasks();
    other_handle.claim(Some(&id(1)), &agent("bob")).unwrap();
    assert_eq!(tasks.claim(None, &agent("ann")).unwrap().id, id(2));
    assert!(matches!(other_handle.claim(Some(&id(2)), &agent("bob")), Err(Error::TaskClaimed { .. })));
    let path = task_path(&tasks, 3);
    overwrite(&path, &with_subject(&path, "SIX"));
    assert_eq!(tasks.complete(&id(3), &agent("ann")).unwrap().subject, "SIX");
    assert!(std::fs::read_to_string(&path).unwrap().contains("SIX"));
}

#[test]
fn a_long_list_is_complete_and_sorted_after_any_change() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    for number in 1..=1500 {
        let text = format!(r#"{{"id":"{number}","subject":"x","status":"pending"}}"#);
        overwrite_in_place(&tasks.path().join(format!("{number}.json")), text);
    }
    for number in [1, 750, 1500] {
        assert_eq!(tasks.claim(Some(&id(number)), &agent("ann")).unwrap().id, id(number));
        std::fs::remove_file(task_path(&tasks, number + 1)).unwrap_or_default();
    }
    let all = tasks.list().unwrap();
    assert!(all.is_sorted_by_key(|task| task.id));
    let in_progress =
        all.iter().filter(|task| task.status == TaskStatus::InProgress).map(|task| task.id.number());
    assert_eq!((all.len(), in_progress.collect::<Vec<_>>()), (1498, vec![1, 750, 1500]));
}
