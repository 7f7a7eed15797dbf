//! Inputs that are damaged or meant to do harm, at every door of a daemon that is at work: files, messages, frames,
//! hooks, run files, profiles, MCP, words and descriptors. It lives, answers and delivers as before; what was spoilt is
//! still there or was set aside, and nothing else has changed.
//!
//! `INPUTS=n` says how many, in batches of twenty, at four daemons; `SEED=n` chooses them.

mod command_permissions;
mod control_frames;
mod invalid_arguments;
mod mutate;
mod payloads_and_files;
mod request_permissions;
mod symlink_races;
mod team_files;

use harness::{McpClient, TestEnv, iterations, record_result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use team_files::CorruptedFiles;

/// Houses side by side, since nearly all of it is waiting: for what is half written, say.
const SHARDS: u64 = 4;
/// After so many inputs everything is looked at.
const BATCH: u64 = 20;
/// Teams whose config.json is spoilt in turn, since each is waited for before it is mended.
const TEAMS: usize = 8;
/// Beyond what it had after the first batch: descriptors, and resident memory in KiB.
const ALLOWED_GROWTH: (usize, u64) = (12, 24 * 1024);

/// One environment under siege.
struct HostileRun {
    env: TestEnv,
    rng: fastrand::Rng,
    lead: McpClient,
    members: Vec<TestMember>,
    files: CorruptedFiles,
    /// Peers that are slow: they stay until the batch is over.
    slow: Vec<UnixStream>,
    panes: String,
    batches: u64,
}

impl HostileRun {
    fn start(seed: u64) -> HostileRun {
        let env = TestEnv::with_team();
        let heard = env.path("out/heard").display().to_string();
        let script = format!("cat >>{heard}; echo >>{heard}");
        env.write_profile(
            "heard",
            &format!("delivery = 'turn'\nprogram = 'sh'\nargs = ['-c', '{script}']\n"),
        );
        env.teamctl(["spawn", "ann", "--profile", "heard", "--backend", "in-process"]).expect_success();
        env.teamctl(["spawn", "bob", "--", &env.scripted_agent_path(), "stay"]).expect_success();
        env.teamctl(["task", "create", "one"]).expect_success();
        // Of one who works on nothing: where its blocker is spoilt so that it reads as done, or is away, it may be begun.
        env.teamctl(["task", "create", "two", "--blocked-by", "1", "--owner", "bob"]).expect_success();
        let agent = env.scripted_agent_path();
        for team in (0..TEAMS).map(team_files::team) {
            env.teamctl(["create", &team]).expect_success();
            env.teamctl(["spawn", "m", "-t", &team, "--backend", "in-process", "--", &agent, "stay"])
                .expect_success();
        }
        // By no door: what was acknowledged comes back, once, where a spoilt inbox can be read and lacks it. So does here what
        // bob was told of its task.
        let first = json!([{"from": "team-lead", "text": "the first", "timestamp": "2026-01-01T00:00:00.000Z", "read": false}]);
        env.write_file("root/teams/survey/inboxes/bob.json", first.to_string());
        env.wait_until("it is back", || (env.inbox("survey", "bob").len() == 2).then_some(()));
        env.write_file("home/victim/kept", "nobody's to touch\n");
        let lead = McpClient::connect(&env, &["--team", "survey"]);
        let panes = env.tmux(["list-panes", "-a", "-F", "#{pane_id} #{pane_pid}"]);
        let rng = fastrand::Rng::with_seed(seed);
        let (living, files) = (list_members(&env), CorruptedFiles::new(&env));
        HostileRun { env, rng, lead, members: living, files, slow: Vec::new(), panes, batches: 0 }
    }

    /// One input. Files are the most of what comes from outside, frames the quickest.
    fn send_input(&mut self) {
        match self.rng.u32(0..100) {
            0..17 => team_files::corrupt_inbox(self),
            17..20 => team_files::corrupt_config(self),
            20..30 => team_files::corrupt_task(self),
            30..40 => team_files::replace_with_non_file(self),
            40..55 => payloads_and_files::send_payload(self),
            55..85 => control_frames::send_frame(self),
            85..91 => invalid_arguments::run_command_with_invalid_argument(self),
            91..94 => payloads_and_files::call_hook(self),
            94..96 => payloads_and_files::run_invalid_file(self),
            96..98 => payloads_and_files::spawn_with_invalid_profile(self),
            98..99 => payloads_and_files::call_mcp_server(self),
            _ => team_files::change_permissions(self),
        }
    }

    /// Everything is as it was: who lives, who answers, who is reached, what the files say.
    fn check(&mut self) {
        self.batches += 1;
        let probe = format!("probe {} is here", self.batches);
        assert_eq!(list_members(&self.env), self.members, "somebody else lives");
        // A file that is half written is waited for by whoever needs it, and a batch is to be short.
        if self.batches.is_multiple_of(10) {
            self.env.teamctl(["status"]).expect_success();
        } else {
            team_files::restore(self, "root/tasks/");
        }
        self.lead
            .call("SendMessage", &json!({"recipient": "ann", "content": probe, "summary": "s"}))
            .unwrap();
        self.env.wait_until("the probe is fed", || self.env.read("out/heard").contains(&probe).then_some(()));
        let panes = self.env.tmux(["list-panes", "-a", "-F", "#{pane_id} #{pane_pid}"]);
        assert_eq!(panes, self.panes, "a pane was touched");
        self.slow.clear();
        team_files::restore(self, "root/");
        team_files::assert_only_corrupted_files_changed(self);
    }

    fn daemon(&self) -> u32 {
        self.env.daemon_pid()
    }

    fn finish(mut self) {
        team_files::restore_all(&mut self);
        self.lead.close();
        let log = payloads_and_files::all_logs(&self.env);
        assert!(!log.contains("panicked at"), "{log}");
        let evil: Vec<PathBuf> = team_files::contents_below(&self.env.path("out")).into_keys().collect();
        assert!(!evil.iter().any(|path| path.ends_with("evil")), "something ran: {evil:?}");
        self.env.shut_down();
    }
}

/// Name, team, mode and pid.
type TestMember = (String, String, String, u64);

/// As the daemon tells it, at once: `teamctl status` looks into the files besides, and waits for those half written.
fn list_members(env: &TestEnv) -> Vec<TestMember> {
    let status = control_frames::call_daemon(env, &json!("status"));
    let teams = status["done"]["status"]["teams"].as_array().unwrap().iter();
    let members = teams.flat_map(|team| {
        let members = team["members"].as_array().unwrap().iter();
        members.filter_map(|member| {
            Some((
                to_text(&member["name"]),
                to_text(&team["name"]),
                to_text(&member["mode"]),
                member["pid"].as_u64()?,
            ))
        })
    });
    members.collect()
}

fn to_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// How many descriptors a process has, and how much resident memory, in KiB.
fn resource_usage(pid: u32) -> (usize, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib = resident.trim().trim_end_matches(" kB").parse().unwrap();
    (std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(), kib)
}

fn run_inputs(inputs: u64, seed: u64) {
    let mut siege = HostileRun::start(seed);
    let pid = siege.daemon();
    let mut before = None;
    for input in 1..=inputs {
        siege.send_input();
        if input % BATCH == 0 || input == inputs {
            siege.check();
            before.get_or_insert_with(|| resource_usage(pid));
        }
    }
    team_files::restore_all(&mut siege);
    // Connections that were dropped are heard of a moment later.
    let (descriptors, kib) = before.unwrap();
    siege.env.wait_until("its descriptors are let go", || {
        (resource_usage(pid).0 <= descriptors + ALLOWED_GROWTH.0).then_some(())
    });
    let now = resource_usage(pid);
    assert!(now.1 <= kib + ALLOWED_GROWTH.1, "its memory grew from {kib} to {} KiB", now.1);
    siege.finish();
}

#[test]
fn daemon_survives_hostile_input_without_loss() {
    let (inputs, seed) = (iterations("INPUTS", 1_000).div_ceil(SHARDS), iterations("SEED", 1) * SHARDS);
    std::thread::scope(|scope| {
        let lanes: Vec<_> =
            (0..SHARDS).map(|lane| scope.spawn(move || run_inputs(inputs, seed + lane))).collect();
        lanes.into_iter().for_each(|lane| lane.join().unwrap());
    });
    record_result("hostile-inputs", inputs * SHARDS);
}

/// Path to what is there, below a directory.
type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// The only thing in a directory, and so on down to a file of that name.
fn single_file_below(directory: &Path, name: &str) -> PathBuf {
    let place = std::fs::read_dir(directory).unwrap().flatten().next().unwrap().path();
    place.join(name)
}
