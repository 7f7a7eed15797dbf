//! All there is to see of an environment at rest: what must be the same before and after.

use harness::{TaggedProcesses, TestEnv};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Teams, members, panes, processes; and the files that stay.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EnvSnapshot {
    /// `TEAM/NAME`, of the roster on disk.
    agents: BTreeSet<String>,
    /// `TEAM/NAME`, of all config.json.
    members: BTreeSet<String>,
    teams: BTreeSet<String>,
    panes: usize,
    /// First processes of agents.
    shims: usize,
    files: BTreeSet<String>,
}

impl EnvSnapshot {
    /// What of it is not as in `other`; nothing where all is.
    pub(super) fn difference(&self, other: &EnvSnapshot) -> String {
        let sets =
            |of: &EnvSnapshot| [of.agents.clone(), of.members.clone(), of.teams.clone(), of.files.clone()];
        let (now, then) = (sets(self), sets(other));
        let mut unlike = String::new();
        for (now, then) in now.iter().zip(&then) {
            now.symmetric_difference(then).for_each(|name| unlike += &format!("{name}\n"));
        }
        if (self.panes, self.shims) != (other.panes, other.shims) {
            unlike += &format!("{} panes, {} shims\n", self.panes, self.shims);
        }
        unlike
    }
}

pub(super) fn take_snapshot(env: &TestEnv) -> EnvSnapshot {
    let roster = roster(env);
    let agents = roster["records"].as_array().into_iter().flatten();
    EnvSnapshot {
        agents: agents
            .map(|agent| {
                format!("{}/{}", value_text(&agent["request"]["team"]), value_text(&agent["request"]["name"]))
            })
            .collect(),
        members: directories(&env.root().join("teams"))
            .iter()
            .flat_map(|team| members(env, team).into_iter().map(move |name| format!("{team}/{name}")))
            .collect(),
        teams: roster["joined_counts"]
            .as_object()
            .map(|teams| teams.keys().cloned().collect())
            .unwrap_or_default(),
        panes: panes(env),
        shims: count_shims(env),
        files: ["root", "state", "run"].iter().flat_map(|top| remaining_files(env, top)).collect(),
    }
}

/// Of what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StoredItem {
    /// To ann.
    Message,
    Task,
}

/// Mail and tasks of survey that are there and have no business to be, or not as often as once.
pub(super) fn missing_items(env: &TestEnv, kept: &BTreeSet<(StoredItem, String)>) -> String {
    let mails =
        env.inbox("survey", "ann").into_iter().map(|mail| (StoredItem::Message, value_text(&mail["text"])));
    let tasks = env.tasks("survey").into_iter().map(|task| (StoredItem::Task, value_text(&task["subject"])));
    // Agents have tasks of their own, which say what they are for.
    let mut there: Vec<_> = mails.chain(tasks).filter(|(_, text)| text.starts_with("the ")).collect();
    there.sort();
    let told = |how: &str, of: &(StoredItem, String)| format!("{how}: {of:?}\n");
    let twice = there.windows(2).filter(|two| two[0] == two[1]).map(|two| told("twice", &two[0]));
    let lost = kept.iter().filter(|of| !there.contains(of)).map(|of| told("lost", of));
    let more = there.iter().filter(|of| !kept.contains(of)).map(|of| told("not asked for", of));
    twice.chain(lost).chain(more).collect()
}

fn value_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The roster on disk.
pub(super) fn roster(env: &TestEnv) -> Value {
    let path = directories(&env.path("state/teamd"));
    let text = env.read(&format!("state/teamd/{}/roster.json", path.first().map_or("", String::as_str)));
    serde_json::from_str(&text).unwrap_or_default()
}

/// Who is in a team's config.json; nobody where there is none.
pub(super) fn members(env: &TestEnv, team: &str) -> Vec<String> {
    let text = env.read(&format!("root/teams/{team}/config.json"));
    if text.is_empty() {
        return Vec::new();
    }
    let config: Value = serde_json::from_str(&text).expect("a config is whole at every instant");
    let members = config["members"].as_array().expect("a config has members").iter();
    members.map(|member| member["name"].as_str().expect("a member has a name").to_owned()).collect()
}

/// Panes with our mark.
pub(super) fn panes(env: &TestEnv) -> usize {
    let marks = env.tmux(["list-panes", "-a", "-F", "#{@teamd_spawn}"]);
    marks.lines().filter(|mark| !mark.is_empty()).count()
}

/// Living first processes of agents.
pub(super) fn count_shims(env: &TestEnv) -> usize {
    let all = TaggedProcesses::with_tag(&env.process_tag()).list();
    all.iter().filter(|line| line.contains("teamd-shim run")).count()
}

/// Processes with the environment of an agent of this team, first processes aside.
pub(super) fn count_agents(env: &TestEnv, team: &str) -> usize {
    let mark = format!("TEAMD_TEAM={team}");
    let pids = TaggedProcesses::with_tag(&env.process_tag()).list().into_iter();
    let pids = pids.filter_map(|line| line.split(' ').next()?.parse::<u32>().ok());
    let environs = pids.map(|pid| std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default());
    environs.filter(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())).count()
}

fn directories(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.path().is_dir().then(|| entry.file_name().into_string().ok())?).collect()
}

/// Mail and tasks come and go with the trial, logs grow, locks of the kernel's stay, and the trash is nobody's to empty.
const IGNORED_FILES: [&str; 8] = [
    "root/tasks/survey/",
    "/inboxes/",
    "/logs/",
    "/corrupt/",
    "/journal/",
    "/run-t",
    "/daemon-start.lock",
    "/trash/",
];

/// Those that stay.
fn remaining_files(env: &TestEnv, top: &str) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), vec![top.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(env.path(&directory)).into_iter().flatten().flatten() {
            let name = format!("{directory}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                left.push(name);
            } else if !IGNORED_FILES.iter().any(|of| name.contains(of)) {
                found.push(name);
            }
        }
    }
    found
}
