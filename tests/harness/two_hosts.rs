//! A team's home and another host, and a line between them that a test can cut. The other host is a
//! second environment on this machine.

use crate::TestEnv;
use crate::processes::TaggedProcesses;
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The connect command. Its arguments run with the environment of the other host.
const LINE: &str = "out/line";

/// While this file exists, the connect command fails.
const GATE: &str = "out/cut";

/// The file with the numbers of bytes after which the next connection breaks: to the other host,
/// and from it.
const LIMITS: &str = "out/limits";

/// The reason that the connect command gives while the line is cut.
pub const CUT_REASON: &str = "the line is cut";

/// The home with the team `survey`, and the host `devbox`. Both have a daemon.
pub struct TwoHosts {
    /// The environment of the home.
    pub home: TestEnv,
    /// The environment of the other host.
    pub annex: TestEnv,
}

impl Default for TwoHosts {
    fn default() -> TwoHosts {
        TwoHosts::new()
    }
}

/// A part of the command line of the program that carries the line, and the end of its first words.
const LINE_PROGRAM: (&str, &str) = (" annex --stdio", "/scripted-agent line");

impl TwoHosts {
    /// Starts both daemons, and lists `devbox` in the hosts file.
    pub fn new() -> TwoHosts {
        TwoHosts::with_environments(TestEnv::with_team(), TestEnv::with_daemon())
    }

    /// As [`TwoHosts::new`], with a home that has the team and with a host that has a daemon.
    pub fn with_environments(home: TestEnv, annex: TestEnv) -> TwoHosts {
        let hosts = TwoHosts { home, annex };
        let line = hosts.home.write_script(LINE, &hosts.script()).display().to_string();
        let file = format!("[host.devbox]\nconnect = {}\n", json!([line]));
        hosts.home.write_file("home/.config/teamd/hosts.toml", file);
        hosts
    }

    fn script(&self) -> String {
        let [gate, limits] = [GATE, LIMITS].map(|name| self.home.path(name).display().to_string());
        format!(
            "#!/bin/sh\nif [ -e {gate} ]; then echo '{CUT_REASON}' >&2; exit 1; fi\nlimits='- -'\n\
             mv {limits} {limits}.$$ 2>/dev/null && read -r limits <{limits}.$$ && rm {limits}.$$\n\
             exec env -i {} '{}' line $limits \"$@\"\n",
            quoted_variables(&self.annex),
            self.home.scripted_agent_path()
        )
    }

    /// Lists the home as `laptop` in the hosts file of the other host, for a home that moves there.
    pub fn add_line_back(&self) {
        let script = format!("#!/bin/sh\nexec env -i {} \"$@\"\n", quoted_variables(&self.home));
        let line = self.annex.write_script(LINE, &script).display().to_string();
        let file = format!("[host.laptop]\nconnect = {}\n", json!([line]));
        self.annex.write_file("home/.config/teamd/hosts.toml", file);
    }

    /// Lets each further connection from the other host to the home fail. Otherwise the other host
    /// would connect to the home again while the home shuts down.
    pub fn end_line_back(&self) {
        self.annex.write_script(LINE, "#!/bin/sh\nexit 1\n");
    }

    /// Breaks the line. It stays cut until [`TwoHosts::heal`].
    pub fn cut(&self) {
        self.home.write_file(GATE, "");
        // Without a connection, the line is cut already.
        self.kill(LINE_PROGRAM);
    }

    /// Lets the next connection work again.
    pub fn heal(&self) {
        std::fs::remove_file(self.home.path(GATE)).ok();
    }

    /// Breaks the line once: kills the program that carries it.
    pub fn kill_line(&self) {
        self.kill_when_it_runs(LINE_PROGRAM);
    }

    /// Kills the program at the other end of the line, `teamctl annex`.
    pub fn kill_far_end(&self) {
        self.kill_when_it_runs(("teamctl annex --stdio", "teamctl annex"));
    }

    fn kill_when_it_runs(&self, program: (&str, &str)) {
        self.annex.wait_until("the program runs", || (self.kill(program) > 0).then_some(()));
    }

    /// Kills the line. The next connection breaks after `to_annex` bytes to the other host or
    /// `from_annex` bytes from it.
    pub fn break_next_line_after(&self, to_annex: u64, from_annex: u64) {
        self.home.write_file(LIMITS, format!("{to_annex} {from_annex}\n"));
        self.kill_line();
    }

    /// Kills the processes of the other host whose command line contains `text`, and whose first
    /// two words end with `program`. Returns their number.
    fn kill(&self, (text, program): (&str, &str)) -> usize {
        let is_selected = |line: &&String| {
            let first_words: Vec<&str> = line.split(' ').skip(1).take(2).collect();
            line.contains(text) && first_words.join(" ").ends_with(program)
        };
        let processes = TaggedProcesses::with_tag(&self.annex.process_tag()).list();
        let selected: Vec<&String> = processes.iter().filter(is_selected).collect();
        for line in &selected {
            let pid = line.split(' ').next().and_then(|pid| pid.parse().ok());
            TaggedProcesses::single(pid.expect("the line begins with a pid")).kill();
        }
        selected.len()
    }

    /// Checks something. If the check fails, the failure shows the state of the other host too.
    #[allow(clippy::print_stderr, reason = "a test's own output")]
    pub fn check(&self, check: impl FnOnce()) {
        if let Err(failure) = catch_unwind(AssertUnwindSafe(check)) {
            eprintln!("── the other host\n{}", self.annex.dump_state());
            resume_unwind(failure);
        }
    }

    /// The contact with `devbox`, as `teamctl status` reports it. Null if there is no such host or
    /// no daemon.
    pub fn contact(&self) -> Value {
        let status = self.home.teamctl_with(&["--json", "status"], &[]);
        if status.code != 0 {
            return Value::Null;
        }
        let team = status.json()["teams"][0].clone();
        team["hosts"][0].clone()
    }

    /// Waits for contact.
    pub fn wait_for_contact(&self) {
        self.home.wait_until("there is contact", || (self.contact()["contact"] == "connected").then_some(()));
    }

    /// Waits for contact, and until the home has everything that `devbox` had.
    pub fn wait_for_exchange(&self) {
        let request = json!({"await_host": {"team": "survey", "host": "devbox"}});
        self.home.wait_until("the home has what the other host has", || {
            self.wait_for_contact();
            (self.home.call_daemon(None, &request)["done"] == "ack").then_some(())
        });
    }
}

/// The variables of an environment, as arguments of `env` in a shell script.
fn quoted_variables(env: &TestEnv) -> String {
    let command = env.command("teamctl");
    let variables = command.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)));
    let variables: Vec<String> = variables.map(|(name, value)| format!("'{name}={value}'")).collect();
    variables.join(" ")
}
