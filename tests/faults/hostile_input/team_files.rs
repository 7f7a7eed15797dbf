//! The files of the teams, spoilt in place or by a rename, and others put where they were.

use super::mutate::{invalid_json, mutate, read_samples};
use super::{Contents, HostileRun, TEAMS};
use harness::TestEnv;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{Permissions, create_dir, hard_link, remove_dir, remove_file, rename, set_permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The files that are spoilt, as they were when they were sound.
pub(super) struct CorruptedFiles {
    /// By path below the environment: what was put there, and what is to be there again.
    corrupted: BTreeMap<String, (Replacement, Vec<u8>)>,
    /// Of each team, what its config.json was spoilt with and nobody has looked at since.
    configs: Vec<Option<Vec<u8>>>,
    last: usize,
    /// All of the root, as it must stay.
    original: Contents,
    samples: Vec<Vec<u8>>,
}

/// What was put in a file's place.
enum Replacement {
    Bytes(Vec<u8>),
    /// Something else, with its device, inode and type.
    NonFile(u64, u64, u32),
}

impl CorruptedFiles {
    pub(super) fn new(env: &TestEnv) -> CorruptedFiles {
        let sound = stable_contents(env);
        CorruptedFiles {
            corrupted: BTreeMap::new(),
            configs: vec![None; TEAMS],
            last: 0,
            original: sound,
            samples: read_samples(),
        }
    }
}

pub(super) fn team(number: usize) -> String {
    format!("t{number}")
}

/// What lies below a directory: bytes of files, where links lead.
pub(super) fn contents_below(directory: &Path) -> Contents {
    let mut found = Contents::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.append(&mut contents_below(&path));
        } else if kind.is_file() {
            found.insert(path.clone(), std::fs::read(path).unwrap_or_default());
        } else {
            found.insert(path, format!("{kind:?}").into_bytes());
        }
    }
    found
}

/// What must stay as it is: not what is on its way, nor whose files are written to because all goes on.
fn stable_contents(env: &TestEnv) -> Contents {
    let mut found = contents_below(&env.root());
    found.append(&mut contents_below(&env.path("home/victim")));
    found.retain(|path, _| {
        let name = path.to_string_lossy();
        let goes_on = name.ends_with("/ann.json") || name.ends_with("/team-lead.json");
        !goes_on
            && !name.ends_with("/config.json")
            && ![".tmp.", ".shadow", ".lock"].iter().any(|ours| name.contains(ours))
    });
    found
}

/// As writers do: in place, which truncates, or by a rename.
fn write(siege: &mut HostileRun, name: &str, bytes: &[u8]) {
    if siege.rng.bool() {
        siege.env.write_file(name, bytes);
    } else {
        replace(&siege.env, name, bytes);
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the foreign writer")]
fn replace(env: &TestEnv, name: &str, bytes: &[u8]) {
    env.write_file("out/new", bytes);
    rename(env.path("out/new"), env.path(name)).unwrap();
}

/// Remembers what is there and will be put back.
fn corrupt(siege: &mut HostileRun, name: &str, bytes: Vec<u8>) {
    if siege.files.corrupted.get(name).is_some_and(|(put, _)| matches!(put, Replacement::NonFile(..))) {
        return;
    }
    let sound = std::fs::read(siege.env.path(name)).unwrap();
    write(siege, name, &bytes);
    let sound = siege.files.corrupted.remove(name).map_or(sound, |(_, sound)| sound);
    siege.files.corrupted.insert(name.to_owned(), (Replacement::Bytes(bytes), sound));
}

/// An inbox that is damaged or strange. Nothing is sent to it: what was acknowledged would be put back after it is mended.
pub(super) fn corrupt_inbox(siege: &mut HostileRun) {
    let owner = siege.rng.usize(0..4);
    let name = match owner {
        0 => "root/teams/survey/inboxes/bob.json".to_owned(),
        other => member_inbox(siege, other),
    };
    let sample = siege.rng.usize(0..siege.files.samples.len());
    let bytes = match siege.rng.bool() {
        true => siege.files.samples[sample].clone(),
        false => {
            let sound: Vec<Value> = siege.env.inbox("survey", "team-lead").into_iter().take(5).collect();
            mutate(&mut siege.rng, serde_json::to_string_pretty(&sound).unwrap().as_bytes())
        }
    };
    corrupt(siege, &name, bytes);
}

/// The inbox of a team's only member, which nobody reads.
fn member_inbox(siege: &mut HostileRun, number: usize) -> String {
    let name = format!("root/teams/{}/inboxes/m.json", team(number));
    if !siege.env.path(&name).exists() {
        siege.env.write_file(&name, "[]");
        siege.files.original.insert(siege.env.path(&name), b"[]".to_vec());
    }
    name
}

/// A message in a member's inbox, past every door.
pub(super) fn append_message(siege: &mut HostileRun, entry: &Value) {
    let number = siege.rng.usize(1..4);
    let name = member_inbox(siege, number);
    corrupt(siege, &name, Value::from(vec![entry.clone()]).to_string().into_bytes());
}

fn to_lossy_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(2_000)]).into_owned()
}

/// A config that parses no more: it comes back with everybody, and what it said is set aside.
pub(super) fn corrupt_config(siege: &mut HostileRun) {
    // The one that was spoilt longest ago is back by now.
    siege.files.last = (siege.files.last + 1) % TEAMS;
    let which = siege.files.last;
    wait_for_rewritten_config(siege, which);
    let name = format!("root/teams/{}/config.json", team(which));
    let sound = std::fs::read(siege.env.path(&name)).unwrap();
    let bytes = invalid_json(&mut siege.rng, &sound);
    write(siege, &name, &bytes);
    // Who truncates and is held up before the write finds the empty file mended, and writes into nobody's.
    let has_landed = std::fs::read(siege.env.path(&name)).is_ok_and(|now| now == bytes);
    siege.files.configs[which] = has_landed.then_some(bytes);
}

fn wait_for_rewritten_config(siege: &mut HostileRun, which: usize) {
    let Some(spoilt) = siege.files.configs[which].take() else { return };
    let (env, team) = (&siege.env, team(which));
    let path = env.root().join(format!("teams/{team}/config.json"));
    env.wait_until("the config is whole again", || {
        let config: Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        config["members"].as_array()?.iter().any(|member| member["name"] == "m").then_some(())
    });
    let aside = super::single_file_below(&env.path("state/teamd"), "corrupt");
    let copies = contents_below(&aside);
    let copy = copies.iter().find(|(path, bytes)| {
        path.file_name().unwrap().to_string_lossy().contains(&format!("{team}-config")) && **bytes == spoilt
    });
    let (copy, _) = copy.unwrap_or_else(|| panic!("no copy of {} in {copies:?}", to_lossy_text(&spoilt)));
    // As whoever has mended it does: with five of one file no further one is kept, and nothing is written anew.
    remove_file(copy).unwrap();
}

/// A task file. The list is told all the same, and the file stays.
pub(super) fn corrupt_task(siege: &mut HostileRun) {
    let name = format!("root/tasks/survey/{}.json", siege.rng.u32(1..=2));
    let path = siege.env.path(&name);
    if !path.symlink_metadata().unwrap().is_file() {
        return replace_with_frames(siege);
    }
    let sound = std::fs::read(&path).unwrap();
    let sample = siege.rng.usize(0..siege.files.samples.len());
    let bytes = match siege.rng.u32(0..3) {
        0 => siege.files.samples[sample].clone(),
        _ => mutate(&mut siege.rng, &sound),
    };
    corrupt(siege, &name, bytes);
}

/// Something that is no file of one's own, where one was.
pub(super) fn replace_with_non_file(siege: &mut HostileRun) {
    let places = ["teams/survey/inboxes/bob.json", "tasks/survey/1.json", "tasks/survey/2.json"];
    let name = format!("root/{}", places[siege.rng.usize(0..places.len())]);
    if siege.files.corrupted.contains_key(&name) {
        return replace_with_frames(siege);
    }
    let (path, victim) = (siege.env.path(&name), siege.env.path("home/victim/kept"));
    let sound = std::fs::read(&path).unwrap();
    remove_file(&path).unwrap();
    match siege.rng.u32(0..7) {
        0 => mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
        1 => drop(UnixListener::bind(&path).unwrap()),
        2 => symlink(&victim, &path).unwrap(),
        3 => symlink("/dev/zero", &path).unwrap(),
        4 => hard_link(&victim, &path).unwrap(),
        5 => symlink(&path, &path).unwrap(),
        _ => create_dir(&path).unwrap(),
    }
    let found = path.symlink_metadata().unwrap();
    let put = Replacement::NonFile(found.dev(), found.ino(), found.mode());
    siege.files.corrupted.insert(name, (put, sound));
    if path.ends_with("bob.json") && siege.rng.bool() {
        let ran = siege.env.teamctl(["send", "-t", "survey", "bob", "into it"]);
        assert!([65, 74, 76, 77].contains(&ran.code), "{ran:#?}");
    }
}

fn replace_with_frames(siege: &mut HostileRun) {
    super::control_frames::send_frame(siege);
}

/// Directories that everybody may write to, and files that nobody may read.
pub(super) fn change_permissions(siege: &mut HostileRun) {
    let places =
        ["root", "root/teams", "state/teamd", "run/teamd", "root/teams/survey", "root/tasks/survey/1.json"];
    let path = siege.env.path(places[siege.rng.usize(0..places.len())]);
    let Ok(found) = path.symlink_metadata() else { return };
    if found.file_type().is_symlink() || found.file_type().is_fifo() {
        return replace_with_frames(siege);
    }
    let wrong = [0o777, 0o707, 0o400][siege.rng.usize(0..3)];
    set_permissions(&path, Permissions::from_mode(wrong)).unwrap();
    let ran = siege.env.teamctl(["status"]);
    set_permissions(&path, found.permissions()).unwrap();
    assert!([0, 69, 77].contains(&ran.code), "{wrong:o} {}: {ran:#?}", path.display());
}

/// What was spoilt below a place is still what it was spoilt with; then it is as before.
pub(super) fn restore(siege: &mut HostileRun, place: &str) {
    let names: Vec<String> =
        siege.files.corrupted.keys().filter(|name| name.starts_with(place)).cloned().collect();
    for name in names {
        let (put, sound) = siege.files.corrupted.remove(&name).unwrap();
        let path = siege.env.path(&name);
        match put {
            Replacement::Bytes(bytes) => {
                let now = std::fs::read(&path).unwrap_or_default();
                assert!(now == bytes, "{name}: {} became {}", to_lossy_text(&bytes), to_lossy_text(&now));
            }
            Replacement::NonFile(device, inode, mode) => {
                let now = path.symlink_metadata().unwrap();
                assert_eq!((now.dev(), now.ino(), now.mode()), (device, inode, mode), "{name} was replaced");
                if now.is_dir() { remove_dir(&path) } else { remove_file(&path) }.unwrap();
            }
        }
        replace(&siege.env, &name, &sound);
    }
}

/// Once all is mended, every other file is as it was at the beginning.
pub(super) fn assert_only_corrupted_files_changed(siege: &HostileRun) {
    let (now, sound) = (stable_contents(&siege.env), &siege.files.original);
    let differs = |path: &&PathBuf| now.get(*path) != sound.get(*path);
    let told = |path: &PathBuf| {
        let of = |contents: &Contents| contents.get(path).map(|bytes| to_lossy_text(bytes));
        (path.clone(), of(sound), of(&now))
    };
    let differing: Vec<_> = now.keys().chain(sound.keys()).filter(differs).map(told).collect();
    assert!(differing.is_empty(), "changed, or come, or gone: {differing:?}");
    assert_copy_limit(&siege.env);
}

/// At most five copies of each file.
fn assert_copy_limit(env: &TestEnv) {
    let mut of: BTreeMap<String, u32> = BTreeMap::new();
    for path in contents_below(&super::single_file_below(&env.path("state/teamd"), "corrupt")).into_keys() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        *of.entry(name.rsplit_once('.').unwrap().0.to_owned()).or_default() += 1;
    }
    assert!(of.values().all(|count| *count <= 5), "{of:?}");
}

/// Every config is whole.
pub(super) fn restore_all(siege: &mut HostileRun) {
    (0..TEAMS).for_each(|which| wait_for_rewritten_config(siege, which));
}
