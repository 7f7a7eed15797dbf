//! Snapshot of an idle environment. It must be the same before and after a case.

use harness::{TaggedProcesses, TestEnv};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The teams, members, panes, shims and permanent files of an environment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EnvSnapshot {
    /// `TEAM/NAME` of each record of the roster.
    agents: BTreeSet<String>,
    /// `TEAM/NAME` of each member in a config.json.
    members: BTreeSet<String>,
    /// The teams in the roster.
    teams: BTreeSet<String>,
    panes: usize,
    shims: usize,
    files: BTreeSet<String>,
}

impl EnvSnapshot {
    /// Describes the differences from `other`. Empty if there are none.
    pub(super) fn difference(&self, other: &EnvSnapshot) -> String {
        let sets = |env: &EnvSnapshot| {
            [env.agents.clone(), env.members.clone(), env.teams.clone(), env.files.clone()]
        };
        let mut difference = String::new();
        for (own_set, other_set) in sets(self).iter().zip(&sets(other)) {
            own_set.symmetric_difference(other_set).for_each(|name| difference += &format!("{name}\n"));
        }
        if (self.panes, self.shims) != (other.panes, other.shims) {
            difference += &format!("{} panes, {} shims\n", self.panes, self.shims);
        }
        difference
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
        panes: count_panes(env),
        shims: count_shims(env),
        files: ["root", "state", "run"].iter().flat_map(|top| permanent_files(env, top)).collect(),
    }
}

/// The kind of a stored item in the team survey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StoredItem {
    /// A message to ann.
    Message,
    Task,
}

/// Describes the messages and tasks of the team survey that are missing, duplicated or unexpected.
/// `expected` has those that must exist exactly once.
pub(super) fn describe_wrong_items(env: &TestEnv, expected: &BTreeSet<(StoredItem, String)>) -> String {
    let inbox = env.inbox("survey", "ann").into_iter();
    let messages = inbox.map(|message| (StoredItem::Message, value_text(&message["text"])));
    let tasks = env.tasks("survey").into_iter().map(|task| (StoredItem::Task, value_text(&task["subject"])));
    // Each agent has an internal task too. Only the items of the test begin with "the ".
    let mut found: Vec<_> = messages.chain(tasks).filter(|(_, text)| text.starts_with("the ")).collect();
    found.sort();
    let describe = |problem: &str, item: &(StoredItem, String)| format!("{problem}: {item:?}\n");
    let duplicates =
        found.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| describe("duplicate", &pair[0]));
    let missing = expected.iter().filter(|item| !found.contains(item)).map(|item| describe("missing", item));
    let unexpected =
        found.iter().filter(|item| !expected.contains(item)).map(|item| describe("unexpected", item));
    duplicates.chain(missing).chain(unexpected).collect()
}

fn value_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Reads the roster. `Null` if it is missing.
pub(super) fn roster(env: &TestEnv) -> Value {
    let path = directories(&env.path("state/teamd"));
    let text = env.read(&format!("state/teamd/{}/roster.json", path.first().map_or("", String::as_str)));
    serde_json::from_str(&text).unwrap_or_default()
}

/// Returns the names in a team's config.json. Empty if the file is missing.
pub(super) fn members(env: &TestEnv, team: &str) -> Vec<String> {
    let text = env.read(&format!("root/teams/{team}/config.json"));
    if text.is_empty() {
        return Vec::new();
    }
    let config: Value = serde_json::from_str(&text).expect("config.json is valid at any time");
    let members = config["members"].as_array().expect("a config has members").iter();
    members.map(|member| member["name"].as_str().expect("a member has a name").to_owned()).collect()
}

/// Counts the panes with a pane tag.
pub(super) fn count_panes(env: &TestEnv) -> usize {
    let tags = env.tmux(["list-panes", "-a", "-F", "#{@teamd_spawn}"]);
    tags.lines().filter(|tag| !tag.is_empty()).count()
}

/// Counts the running shims.
pub(super) fn count_shims(env: &TestEnv) -> usize {
    let processes = TaggedProcesses::with_tag(&env.process_tag()).list();
    processes.iter().filter(|line| line.contains("teamd-shim run")).count()
}

/// Counts the processes with the environment of an agent of this team. A shim has another
/// environment.
pub(super) fn count_agents(env: &TestEnv, team: &str) -> usize {
    let variable = format!("TEAMD_TEAM={team}");
    let pids = TaggedProcesses::with_tag(&env.process_tag()).list().into_iter();
    let pids = pids.filter_map(|line| line.split(' ').next()?.parse::<u32>().ok());
    let environs = pids.map(|pid| std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default());
    environs
        .filter(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()))
        .count()
}

fn directories(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.path().is_dir().then(|| entry.file_name().into_string().ok())?).collect()
}

/// Parts of paths that a snapshot ignores. Cases change messages, tasks, logs, journals and run
/// records. Lock files are never deleted, and nothing empties the trash.
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

/// Returns the permanent files below a directory.
fn permanent_files(env: &TestEnv, top: &str) -> Vec<String> {
    let (mut found, mut directories) = (Vec::new(), vec![top.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(env.path(&directory)).into_iter().flatten().flatten() {
            let name = format!("{directory}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                directories.push(name);
            } else if !IGNORED_FILES.iter().any(|part| name.contains(part)) {
                found.push(name);
            }
        }
    }
    found
}
