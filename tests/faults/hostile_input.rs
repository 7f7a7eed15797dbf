//! Sends damaged and hostile inputs to running daemons: files, messages, frames on the control
//! socket, hook inputs, run files, profiles, MCP requests, arguments and file descriptors. Tests
//! that the daemon keeps running, answers and delivers messages as before. A damaged file must be
//! unchanged, or a copy of it must be kept, and no other file may change.
//!
//! `INPUTS=n` sets the number of inputs, which four daemons get in batches of twenty. `SEED=n`
//! chooses the inputs.

mod command_permissions;
mod control_frames;
mod invalid_arguments;
mod mutate;
mod payloads_and_files;
mod request_permissions;
mod symlink_races;
mod team_files;

use harness::{McpClient, TestEnv, number_from_env, record_result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use team_files::CorruptedFiles;

/// Number of test environments that run in parallel. Most of the time is waiting, for example for
/// half-written files.
const SHARDS: u64 = 4;
/// Number of inputs between two checks.
const BATCH: u64 = 20;
/// Number of teams whose config.json is damaged in turn. The daemon waits before it rewrites a
/// damaged config.json, so one team would be too slow.
const TEAMS: usize = 8;
/// How much the daemon may grow after the first batch: descriptors, and resident memory in KiB.
const ALLOWED_GROWTH: (usize, u64) = (12, 24 * 1024);

/// One test environment, and the state that must not change in it.
struct HostileRun {
    env: TestEnv,
    rng: fastrand::Rng,
    lead: McpClient,
    members: Vec<TestMember>,
    files: CorruptedFiles,
    /// Connections with an incomplete frame. They stay open until the batch is over.
    incomplete_connections: Vec<UnixStream>,
    /// Id and pid of each pane.
    panes: String,
    batches: u64,
}

impl HostileRun {
    fn start(seed: u64) -> HostileRun {
        let env = TestEnv::with_team();
        let prompts = env.path("out/heard").display().to_string();
        let script = format!("cat >>{prompts}; echo >>{prompts}");
        env.write_profile(
            "heard",
            &format!("delivery = 'turn'\nprogram = 'sh'\nargs = ['-c', '{script}']\n"),
        );
        env.teamctl(["spawn", "ann", "--profile", "heard", "--backend", "in-process"]).expect_success();
        env.teamctl(["spawn", "bob", "--", &env.scripted_agent_path(), "stay"]).expect_success();
        env.teamctl(["task", "create", "one"]).expect_success();
        // bob works on no task. A damaged blocker may read as completed or be missing, and then
        // another owner could start this task.
        env.teamctl(["task", "create", "two", "--blocked-by", "1", "--owner", "bob"]).expect_success();
        let agent = env.scripted_agent_path();
        for team in (0..TEAMS).map(team_files::team_name) {
            env.teamctl(["create", &team]).expect_success();
            env.teamctl(["spawn", "m", "-t", &team, "--backend", "in-process", "--", &agent, "stay"])
                .expect_success();
        }
        // This message bypasses the journal. The daemon restores a journaled message once if the
        // inbox lacks it, which would change a damaged inbox. The task assignment to bob is in the
        // journal, so it is restored here, before the inbox is damaged.
        let first = json!([{"from": "team-lead", "text": "the first", "timestamp": "2026-01-01T00:00:00.000Z", "read": false}]);
        env.write_file("root/teams/survey/inboxes/bob.json", first.to_string());
        env.wait_until("the task assignment is restored", || {
            (env.inbox("survey", "bob").len() == 2).then_some(())
        });
        env.write_file("home/victim/kept", "must not change\n");
        let lead = McpClient::connect(&env, &["--team", "survey"]);
        let panes = env.tmux(["list-panes", "-a", "-F", "#{pane_id} #{pane_pid}"]);
        let rng = fastrand::Rng::with_seed(seed);
        let (members, files) = (list_members(&env), CorruptedFiles::new(&env));
        HostileRun { env, rng, lead, members, files, incomplete_connections: Vec::new(), panes, batches: 0 }
    }

    /// Sends one random input. Files are frequent because they are the daemon's main input. Frames
    /// are frequent because they are fast.
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

    /// Checks that the same members and panes exist, that a message is delivered, and that only the
    /// damaged files have changed. Restores the damaged files.
    fn check(&mut self) {
        self.batches += 1;
        let probe = format!("probe {} is here", self.batches);
        assert_eq!(list_members(&self.env), self.members, "the members have not changed");
        // Commands wait for half-written task files. To save time, `teamctl status` runs with
        // damaged task files only after every tenth batch. After the other batches they are
        // restored first.
        if self.batches.is_multiple_of(10) {
            self.env.teamctl(["status"]).expect_success();
        } else {
            team_files::restore(self, "root/tasks/");
        }
        self.lead
            .call("SendMessage", &json!({"recipient": "ann", "content": probe, "summary": "s"}))
            .unwrap();
        self.env.wait_until("the probe is delivered", || {
            self.env.read("out/heard").contains(&probe).then_some(())
        });
        let panes = self.env.tmux(["list-panes", "-a", "-F", "#{pane_id} #{pane_pid}"]);
        assert_eq!(panes, self.panes, "no pane has changed");
        self.incomplete_connections.clear();
        team_files::restore(self, "root/");
        team_files::assert_only_corrupted_files_changed(self);
    }

    fn finish(mut self) {
        team_files::restore_all(&mut self);
        self.lead.close();
        let log = payloads_and_files::all_logs(&self.env);
        assert!(!log.contains("panicked at"), "{log}");
        let paths: Vec<PathBuf> = team_files::contents_below(&self.env.path("out")).into_keys().collect();
        assert!(!paths.iter().any(|path| path.ends_with("evil")), "an input was executed: {paths:?}");
        self.env.shut_down();
    }
}

/// Name, team, mode and pid.
type TestMember = (String, String, String, u64);

/// Asks the daemon for the running members. `teamctl status` would also read the files, and wait
/// for half-written ones.
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

/// Returns the number of open descriptors of a process, and its resident memory in KiB.
fn resource_usage(pid: u32) -> (usize, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib = resident.trim().trim_end_matches(" kB").parse().unwrap();
    (std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(), kib)
}

fn run_inputs(inputs: u64, seed: u64) {
    let mut run = HostileRun::start(seed);
    let pid = run.env.daemon_pid();
    let mut before = None;
    for input in 1..=inputs {
        run.send_input();
        if input % BATCH == 0 || input == inputs {
            run.check();
            before.get_or_insert_with(|| resource_usage(pid));
        }
    }
    team_files::restore_all(&mut run);
    // The daemon closes its side of a dropped connection a moment later.
    let (descriptors, kib) = before.unwrap();
    run.env.wait_until("the daemon has closed its descriptors", || {
        (resource_usage(pid).0 <= descriptors + ALLOWED_GROWTH.0).then_some(())
    });
    let after = resource_usage(pid);
    assert!(after.1 <= kib + ALLOWED_GROWTH.1, "the daemon's memory grew from {kib} to {} KiB", after.1);
    run.finish();
}

#[test]
fn daemon_survives_hostile_input_without_loss() {
    let (inputs, seed) =
        (number_from_env("INPUTS", 1_000).div_ceil(SHARDS), number_from_env("SEED", 1) * SHARDS);
    std::thread::scope(|scope| {
        let shards: Vec<_> =
            (0..SHARDS).map(|shard| scope.spawn(move || run_inputs(inputs, seed + shard))).collect();
        shards.into_iter().for_each(|shard| shard.join().unwrap());
    });
    record_result("hostile-inputs", inputs * SHARDS);
}

/// The files below a directory with their contents.
type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// Returns the path of `name` in the only subdirectory of `directory`.
fn single_file_below(directory: &Path, name: &str) -> PathBuf {
    let subdirectory = std::fs::read_dir(directory).unwrap().flatten().next().unwrap().path();
    subdirectory.join(name)
}
