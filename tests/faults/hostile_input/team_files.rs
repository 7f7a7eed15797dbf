//! Damages the files of the teams, in place or by a rename, and replaces them with other file
//! types.

use super::mutate::{invalid_json, mutate, read_samples};
use super::{Contents, HostileRun, TEAMS};
use harness::TestEnv;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{Permissions, create_dir, hard_link, remove_dir, remove_file, rename, set_permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The damaged files, and their contents before the damage.
pub(super) struct CorruptedFiles {
    /// By path below the environment: the replacement, and the original bytes.
    corrupted: BTreeMap<String, (Replacement, Vec<u8>)>,
    /// For each team, the bytes of its damaged config.json. `None` if it is not damaged, or if the
    /// rewritten config was checked already.
    configs: Vec<Option<Vec<u8>>>,
    /// The index of the team whose config.json was damaged last.
    last: usize,
    /// All files that must stay unchanged, except for the damage.
    original: Contents,
    samples: Vec<Vec<u8>>,
}

/// What a file was replaced with.
enum Replacement {
    Bytes(Vec<u8>),
    /// Not a regular file: its device, inode and mode.
    NonFile(u64, u64, u32),
}

impl CorruptedFiles {
    pub(super) fn new(env: &TestEnv) -> CorruptedFiles {
        let original = stable_contents(env);
        CorruptedFiles {
            corrupted: BTreeMap::new(),
            configs: vec![None; TEAMS],
            last: 0,
            original,
            samples: read_samples(),
        }
    }
}

pub(super) fn team_name(number: usize) -> String {
    format!("t{number}")
}

/// Returns the files below a directory: the bytes of regular files, and the type of each other
/// file.
pub(super) fn contents_below(directory: &Path) -> Contents {
    let mut contents = Contents::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            contents.append(&mut contents_below(&path));
        } else if kind.is_file() {
            contents.insert(path.clone(), std::fs::read(path).unwrap_or_default());
        } else {
            contents.insert(path, format!("{kind:?}").into_bytes());
        }
    }
    contents
}

/// Returns the files that must stay unchanged: all but temporary files, locks, configs, and the
/// inboxes that get messages during the test.
fn stable_contents(env: &TestEnv) -> Contents {
    let mut contents = contents_below(&env.root());
    contents.append(&mut contents_below(&env.path("home/victim")));
    contents.retain(|path, _| {
        let name = path.to_string_lossy();
        let is_used_inbox = name.ends_with("/ann.json") || name.ends_with("/team-lead.json");
        !is_used_inbox
            && !name.ends_with("/config.json")
            && ![".tmp.", ".shadow", ".lock"].iter().any(|temporary| name.contains(temporary))
    });
    contents
}

/// Writes a file as another program does: in place, which truncates the file, or by a rename.
fn write(run: &mut HostileRun, name: &str, bytes: &[u8]) {
    if run.rng.bool() {
        run.env.write_file(name, bytes);
    } else {
        replace(&run.env, name, bytes);
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the foreign writer")]
fn replace(env: &TestEnv, name: &str, bytes: &[u8]) {
    env.write_file("out/new", bytes);
    rename(env.path("out/new"), env.path(name)).unwrap();
}

/// Damages a file and remembers its original bytes. Does nothing if something that is no regular
/// file has replaced it.
fn corrupt(run: &mut HostileRun, name: &str, bytes: Vec<u8>) {
    if let Some((Replacement::NonFile(..), _)) = run.files.corrupted.get(name) {
        return;
    }
    let before = std::fs::read(run.env.path(name)).unwrap();
    write(run, name, &bytes);
    let original = run.files.corrupted.remove(name).map_or(before, |(_, original)| original);
    run.files.corrupted.insert(name.to_owned(), (Replacement::Bytes(bytes), original));
}

/// Damages an inbox, or replaces it with an unusual one. No message is stored in this inbox while
/// the test runs, because the daemon would restore it when the inbox is valid again.
pub(super) fn corrupt_inbox(run: &mut HostileRun) {
    let owner = run.rng.usize(0..4);
    let name = match owner {
        0 => "root/teams/survey/inboxes/bob.json".to_owned(),
        other => member_inbox(run, other),
    };
    let sample = run.rng.usize(0..run.files.samples.len());
    let bytes = match run.rng.bool() {
        true => run.files.samples[sample].clone(),
        false => {
            let messages: Vec<Value> = run.env.inbox("survey", "team-lead").into_iter().take(5).collect();
            mutate(&mut run.rng, serde_json::to_string_pretty(&messages).unwrap().as_bytes())
        }
    };
    corrupt(run, &name, bytes);
}

/// Returns the path of the inbox of a team's only member, and creates it if it is missing. No
/// program reads the inbox.
fn member_inbox(run: &mut HostileRun, number: usize) -> String {
    let name = format!("root/teams/{}/inboxes/m.json", team_name(number));
    if !run.env.path(&name).exists() {
        run.env.write_file(&name, "[]");
        run.files.original.insert(run.env.path(&name), b"[]".to_vec());
    }
    name
}

/// Replaces a member's inbox with an inbox that has only this message.
pub(super) fn replace_inbox(run: &mut HostileRun, entry: &Value) {
    let number = run.rng.usize(1..4);
    let name = member_inbox(run, number);
    corrupt(run, &name, Value::from(vec![entry.clone()]).to_string().into_bytes());
}

fn to_lossy_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(2_000)]).into_owned()
}

/// Damages the config.json of the next team. The daemon must rewrite it with all members and keep a
/// copy of the damaged file.
pub(super) fn corrupt_config(run: &mut HostileRun) {
    // The config that was damaged first is usually rewritten by now.
    run.files.last = (run.files.last + 1) % TEAMS;
    let index = run.files.last;
    wait_for_rewritten_config(run, index);
    let name = format!("root/teams/{}/config.json", team_name(index));
    let valid = std::fs::read(run.env.path(&name)).unwrap();
    let bytes = invalid_json(&mut run.rng, &valid);
    write(run, &name, &bytes);
    // If this writer is delayed between the truncation and the write, the daemon rewrites the empty
    // file by a rename. The bytes then go into the replaced file, and config.json is not damaged.
    let is_damaged = std::fs::read(run.env.path(&name)).is_ok_and(|current| current == bytes);
    run.files.configs[index] = is_damaged.then_some(bytes);
}

/// Waits until the daemon has rewritten the damaged config.json of a team, and checks and removes
/// the copy of the damaged file.
fn wait_for_rewritten_config(run: &mut HostileRun, index: usize) {
    let Some(damaged) = run.files.configs[index].take() else { return };
    let (env, team) = (&run.env, team_name(index));
    let path = env.root().join(format!("teams/{team}/config.json"));
    env.wait_until("config.json is rewritten", || {
        let config: Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        config["members"].as_array()?.iter().any(|member| member["name"] == "m").then_some(())
    });
    let copies = contents_below(&super::single_file_below(&env.path("state/teamd"), "corrupt"));
    let copy = copies.iter().find(|(path, bytes)| {
        path.file_name().unwrap().to_string_lossy().contains(&format!("{team}-config")) && **bytes == damaged
    });
    let (copy, _) = copy.unwrap_or_else(|| panic!("no copy of {} in {copies:?}", to_lossy_text(&damaged)));
    // A person does this after a repair. With five copies of a file, the daemon keeps no further
    // copy and does not rewrite the file.
    remove_file(copy).unwrap();
}

/// Damages a task file. The daemon must not change it.
pub(super) fn corrupt_task(run: &mut HostileRun) {
    let name = format!("root/tasks/survey/{}.json", run.rng.u32(1..=2));
    let path = run.env.path(&name);
    if !path.symlink_metadata().unwrap().is_file() {
        return super::control_frames::send_frame(run);
    }
    let valid = std::fs::read(&path).unwrap();
    let sample = run.rng.usize(0..run.files.samples.len());
    let bytes = match run.rng.u32(0..3) {
        0 => run.files.samples[sample].clone(),
        _ => mutate(&mut run.rng, &valid),
    };
    corrupt(run, &name, bytes);
}

/// Replaces a file with something that is not a regular file of its own: a pipe, a socket, a link
/// or a directory. Sometimes sends a message to the inbox that was replaced, which must fail.
pub(super) fn replace_with_non_file(run: &mut HostileRun) {
    let paths = ["teams/survey/inboxes/bob.json", "tasks/survey/1.json", "tasks/survey/2.json"];
    let name = format!("root/{}", paths[run.rng.usize(0..paths.len())]);
    if run.files.corrupted.contains_key(&name) {
        return super::control_frames::send_frame(run);
    }
    let (path, victim) = (run.env.path(&name), run.env.path("home/victim/kept"));
    let original = std::fs::read(&path).unwrap();
    remove_file(&path).unwrap();
    match run.rng.u32(0..7) {
        0 => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
        1 => drop(UnixListener::bind(&path).unwrap()),
        2 => symlink(&victim, &path).unwrap(),
        3 => symlink("/dev/zero", &path).unwrap(),
        4 => hard_link(&victim, &path).unwrap(),
        5 => symlink(&path, &path).unwrap(),
        _ => create_dir(&path).unwrap(),
    }
    let metadata = path.symlink_metadata().unwrap();
    let replacement = Replacement::NonFile(metadata.dev(), metadata.ino(), metadata.mode());
    run.files.corrupted.insert(name, (replacement, original));
    if path.ends_with("bob.json") && run.rng.bool() {
        let output = run.env.teamctl(["send", "-t", "survey", "bob", "into it"]);
        assert!([65, 74, 76, 77].contains(&output.code), "{output:#?}");
    }
}

/// Gives a file or directory wrong permissions, runs `teamctl status`, and restores the
/// permissions.
pub(super) fn change_permissions(run: &mut HostileRun) {
    let paths =
        ["root", "root/teams", "state/teamd", "run/teamd", "root/teams/survey", "root/tasks/survey/1.json"];
    let path = run.env.path(paths[run.rng.usize(0..paths.len())]);
    let Ok(metadata) = path.symlink_metadata() else { return };
    if metadata.file_type().is_symlink() || metadata.file_type().is_fifo() {
        return super::control_frames::send_frame(run);
    }
    let wrong = [0o777, 0o707, 0o400][run.rng.usize(0..3)];
    set_permissions(&path, Permissions::from_mode(wrong)).unwrap();
    let output = run.env.teamctl(["status"]);
    set_permissions(&path, metadata.permissions()).unwrap();
    assert!([0, 69, 77].contains(&output.code), "{wrong:o} {}: {output:#?}", path.display());
}

/// Checks that the damaged files whose path starts with `prefix` have not changed since, and
/// restores their original bytes.
pub(super) fn restore(run: &mut HostileRun, prefix: &str) {
    let names: Vec<String> =
        run.files.corrupted.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
    for name in names {
        let (replacement, original) = run.files.corrupted.remove(&name).unwrap();
        let path = run.env.path(&name);
        match replacement {
            Replacement::Bytes(bytes) => {
                let current = std::fs::read(&path).unwrap_or_default();
                assert!(
                    current == bytes,
                    "{name}: {} became {}",
                    to_lossy_text(&bytes),
                    to_lossy_text(&current)
                );
            }
            Replacement::NonFile(device, inode, mode) => {
                let current = path.symlink_metadata().unwrap();
                assert_eq!(
                    (current.dev(), current.ino(), current.mode()),
                    (device, inode, mode),
                    "{name} was replaced"
                );
                if current.is_dir() { remove_dir(&path) } else { remove_file(&path) }.unwrap();
            }
        }
        replace(&run.env, &name, &original);
    }
}

/// Checks that all files have their original contents. Called after the damaged files are restored.
pub(super) fn assert_only_corrupted_files_changed(run: &HostileRun) {
    let (current, original) = (stable_contents(&run.env), &run.files.original);
    let differs = |path: &&PathBuf| current.get(*path) != original.get(*path);
    let describe = |path: &PathBuf| {
        let text = |contents: &Contents| contents.get(path).map(|bytes| to_lossy_text(bytes));
        (path.clone(), text(original), text(&current))
    };
    let changed: Vec<_> = current.keys().chain(original.keys()).filter(differs).map(describe).collect();
    assert!(changed.is_empty(), "changed, new or missing files: {changed:?}");
    assert_copy_limit(&run.env);
}

/// Checks that the daemon keeps at most five copies of each file.
fn assert_copy_limit(env: &TestEnv) {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for path in contents_below(&super::single_file_below(&env.path("state/teamd"), "corrupt")).into_keys() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        *counts.entry(name.rsplit_once('.').unwrap().0.to_owned()).or_default() += 1;
    }
    assert!(counts.values().all(|count| *count <= 5), "{counts:?}");
}

/// Waits until the daemon has rewritten all damaged configs.
pub(super) fn restore_all(run: &mut HostileRun) {
    (0..TEAMS).for_each(|index| wait_for_rewritten_config(run, index));
}
