//! Files of the environment, as a person or another program writes and reads them, and what is told of them. The team is
//! `survey` throughout.

use crate::TestEnv;
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

impl TestEnv {
    /// Writes a file, with the directories that it needs; gives its path as a word for a command line.
    #[allow(clippy::disallowed_methods, reason = "a test's own file, or one that a foreign writer spoils")]
    pub fn write_file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it lies in the test environment"))
            .expect("a directory can be made");
        std::fs::write(&path, text).expect("the test environment can be written");
        path.display().to_string()
    }

    /// A profile of the user's.
    pub fn write_profile(&self, name: &str, text: &str) {
        self.write_file(&format!("home/.config/teamd/profiles/{name}.toml"), text);
    }

    /// config.json as it stands.
    pub fn read_config(&self) -> Value {
        serde_json::from_str(&self.read("root/teams/survey/config.json")).expect("it is whole")
    }

    /// Locks and half files in the root are a day old: whoever comes next takes those of the dead for what they are.
    pub fn age_locks_and_temp_files(&self) {
        age_below(&self.root(), &|_| true);
    }

    /// The same, but for the locks that a holder of ours has marked: of those whoever comes next sees at once that their
    /// holder is dead.
    pub fn age_foreign_locks(&self) {
        let is_unmarked = |lock: &Path| lock.metadata().is_ok_and(|meta| meta.mode() & 0o1000 == 0);
        age_below(&self.root(), &is_unmarked);
    }

    /// What the event log has told.
    pub fn events(&self) -> Vec<Value> {
        let told = self.teamctl(["--json", "events"]).expect_success();
        told.lines().map(|line| serde_json::from_str(line).expect("an event is an object")).collect()
    }

    /// What `status` says of a member besides.
    pub fn flags(&self, name: &str) -> Value {
        self.member(name).map(|member| member["flags"].clone()).unwrap_or_default()
    }

    /// The payloads of this type that the lead has from `name`.
    pub fn payloads_to_lead(&self, name: &str, kind: &str) -> Vec<Value> {
        let letters = self.inbox("survey", "team-lead").into_iter().filter(|letter| letter["from"] == name);
        let payloads =
            letters.filter_map(|letter| serde_json::from_str::<Value>(letter["text"].as_str()?).ok());
        payloads.filter(|payload| payload["type"] == kind).collect()
    }
}

/// What is gone by now needs no age.
fn age_below(directory: &Path, is_meant: &dyn Fn(&Path) -> bool) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.to_string_lossy().into_owned();
        let is_lock = name.ends_with(".lock") && path.is_dir();
        if is_lock && is_meant(&path) || name.contains(".tmp.") {
            let old = SystemTime::now() - Duration::from_secs(86_400);
            std::fs::File::open(&path).and_then(|left| left.set_modified(old)).unwrap_or_default();
        } else if path.is_dir() && !is_lock {
            age_below(&path, is_meant);
        }
    }
}
