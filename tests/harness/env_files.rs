//! Reads and writes files of the test environment, as a person or another program does. Also reads
//! the event log, a member's flags and the lead's inbox. The team is always `survey`.

use crate::TestEnv;
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

impl TestEnv {
    /// Writes a file and creates its missing parent directories. Returns the path as a command-line
    /// argument.
    #[allow(clippy::disallowed_methods, reason = "a test's own file, or one that a foreign writer damages")]
    pub fn write_file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("the path is in the test environment"))
            .expect("the directory can be created");
        std::fs::write(&path, text).expect("the file can be written");
        path.display().to_string()
    }

    /// Writes a user profile.
    pub fn write_profile(&self, name: &str, text: &str) {
        self.write_file(&format!("home/.config/teamd/profiles/{name}.toml"), text);
    }

    /// Reads the current config.json.
    pub fn read_config(&self) -> Value {
        serde_json::from_str(&self.read("root/teams/survey/config.json")).expect("config.json is valid JSON")
    }

    /// Makes all locks and temporary files below the root a day old. The next program that finds
    /// them treats them as stale at once.
    pub fn age_locks_and_temp_files(&self) {
        age_below(&self.root(), &|_| true);
    }

    /// As [`TestEnv::age_locks_and_temp_files`], but skips the locks that teamd's programs took.
    /// They have the sticky bit, and the next program detects without their age that the holder is
    /// dead.
    pub fn age_foreign_locks(&self) {
        let is_not_sticky = |lock: &Path| lock.metadata().is_ok_and(|meta| meta.mode() & 0o1000 == 0);
        age_below(&self.root(), &is_not_sticky);
    }

    /// Reads all events of the event log.
    pub fn events(&self) -> Vec<Value> {
        let output = self.teamctl(["--json", "events"]).expect_success();
        output.lines().map(|line| serde_json::from_str(line).expect("each event is JSON")).collect()
    }

    /// The flags of a member in `teamctl status`. Null if there is no such member.
    pub fn flags(&self, name: &str) -> Value {
        self.member(name).map(|member| member["flags"].clone()).unwrap_or_default()
    }

    /// The JSON messages of the type `kind` from `name` in the lead's inbox.
    pub fn payloads_to_lead(&self, name: &str, kind: &str) -> Vec<Value> {
        let messages =
            self.inbox("survey", "team-lead").into_iter().filter(|message| message["from"] == name);
        let payloads =
            messages.filter_map(|message| serde_json::from_str::<Value>(message["text"].as_str()?).ok());
        payloads.filter(|payload| payload["type"] == kind).collect()
    }
}

/// Makes the temporary files and the locks that `is_selected` accepts a day old. Skips files that
/// another process removes at the same time.
fn age_below(directory: &Path, is_selected: &dyn Fn(&Path) -> bool) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.to_string_lossy().into_owned();
        let is_lock = name.ends_with(".lock") && path.is_dir();
        if is_lock && is_selected(&path) || name.contains(".tmp.") {
            let old = SystemTime::now() - Duration::from_secs(86_400);
            std::fs::File::open(&path).and_then(|file| file.set_modified(old)).unwrap_or_default();
        } else if path.is_dir() && !is_lock {
            age_below(&path, is_selected);
        }
    }
}
