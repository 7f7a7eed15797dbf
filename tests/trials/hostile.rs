//! Inputs that are damaged or meant to do harm, at every door of a daemon that is at work: files, messages, frames,
//! hooks, run files, profiles, MCP, words and descriptors. It lives, answers and delivers as before; what was spoilt is
//! still there or was set aside, and nothing else has changed.
//!
//! `INPUTS=n` says how many, in batches of twenty, at four daemons; `SEED=n` chooses them.

mod doors;
mod files;
mod frames;
mod mutate;
mod races;
mod requests;
mod roles;
mod words;

use files::Files;
use harness::{House, Mcp, figure, rounds};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Houses side by side, since nearly all of it is waiting: for what is half written, say.
const LANES: u64 = 4;
/// After so many inputs everything is looked at.
const BATCH: u64 = 20;
/// Teams whose config.json is spoilt in turn, since each is waited for before it is mended.
const TEAMS: usize = 8;
/// Beyond what it had after the first batch: descriptors, and resident memory in KiB.
const MORE: (usize, u64) = (12, 24 * 1024);

/// One house under siege.
struct Siege {
    house: House,
    rng: fastrand::Rng,
    lead: Mcp,
    living: Vec<Living>,
    files: Files,
    /// Peers that are slow: they stay until the batch is over.
    slow: Vec<UnixStream>,
    panes: String,
    batches: u64,
}

impl Siege {
    fn lay(seed: u64) -> Siege {
        let house = House::with_team();
        let heard = house.path("out/heard").display().to_string();
        let script = format!("cat >>{heard}; echo >>{heard}");
        house.profile("heard", &format!("feed = 'turn'\nprogram = 'sh'\nargs = ['-c', '{script}']\n"));
        house.teamctl(["spawn", "ann", "--agent", "heard", "--backend", "in-process"]).ok();
        house.teamctl(["spawn", "bob", "--", &house.agent(), "stay"]).ok();
        house.teamctl(["task", "create", "one"]).ok();
        // Of one who works on nothing: where its blocker is spoilt so that it reads as done, or is away, it may be begun.
        house.teamctl(["task", "create", "two", "--blocked-by", "1", "--owner", "bob"]).ok();
        let agent = house.agent();
        for team in (0..TEAMS).map(files::team) {
            house.teamctl(["create", &team]).ok();
            house.teamctl(["spawn", "m", "-t", &team, "--backend", "in-process", "--", &agent, "stay"]).ok();
        }
        // By no door: what was acknowledged comes back, once, where a spoilt inbox can be read and lacks it. So does here what
        // bob was told of its task.
        let first = json!([{"from": "team-lead", "text": "the first", "timestamp": "2026-01-01T00:00:00.000Z", "read": false}]);
        house.put("root/teams/survey/inboxes/bob.json", first.to_string());
        house.until("it is back", || (house.inbox("survey", "bob").len() == 2).then_some(()));
        house.put("home/victim/kept", "nobody's to touch\n");
        let lead = Mcp::of(&house, &["--team", "survey"]);
        let panes = house.tmux(["list-panes", "-a", "-F", "#{pane_id} #{pane_pid}"]);
        let rng = fastrand::Rng::with_seed(seed);
        let (living, files) = (living(&house), Files::of(&house));
        Siege { house, rng, lead, living, files, slow: Vec::new(), panes, batches: 0 }
    }

    /// One input. Files are the most of what comes from outside, frames the quickest.
    fn input(&mut self) {
        match self.rng.u32(0..100) {
            0..17 => files::inbox(self),
            17..20 => files::config(self),
            20..30 => files::task(self),
            30..40 => files::odd(self),
            40..55 => doors::payload(self),
            55..85 => frames::frame(self),
            85..91 => words::verb(self),
            91..94 => doors::hook(self),
            94..96 => doors::run_file(self),
            96..98 => doors::profile(self),
            98..99 => doors::mcp(self),
            _ => files::modes(self),
        }
    }

    /// Everything is as it was: who lives, who answers, who is reached, what the files say.
    fn look(&mut self) {
        self.batches += 1;
        let probe = format!("probe {} is here", self.batches);
        assert_eq!(living(&self.house), self.living, "somebody else lives");
        // A file that is half written is waited for by whoever needs it, and a batch is to be short.
        if self.batches.is_multiple_of(10) {
            self.house.teamctl(["status"]).ok();
        } else {
            files::mend(self, "root/tasks/");
        }
        self.lead
            .call("SendMessage", &json!({"recipient": "ann", "content": probe, "summary": "s"}))
            .unwrap();
        self.house.until("the probe is fed", || self.house.read("out/heard").contains(&probe).then_some(()));
        let panes = self.house.tmux(["list-panes", "-a", "-F", "#{pane_id} #{pane_pid}"]);
        assert_eq!(panes, self.panes, "a pane was touched");
        self.slow.clear();
        files::mend(self, "root/");
        files::nothing_else_changed(self);
    }

    fn daemon(&self) -> u32 {
        self.house.daemon()
    }

    fn end(mut self) {
        files::settle(&mut self);
        self.lead.end();
        let log = doors::logs(&self.house);
        assert!(!log.contains("panicked at"), "{log}");
        let evil: Vec<PathBuf> = files::below(&self.house.path("out")).into_keys().collect();
        assert!(!evil.iter().any(|path| path.ends_with("evil")), "something ran: {evil:?}");
        self.house.end();
    }
}

/// Name, team, mode and pid.
type Living = (String, String, String, u64);

/// As the daemon tells it, at once: `teamctl status` looks into the files besides, and waits for those half written.
fn living(house: &House) -> Vec<Living> {
    let status = frames::asked(house, &json!("status"));
    let teams = status["done"]["status"]["teams"].as_array().unwrap().iter();
    let members = teams.flat_map(|team| {
        let members = team["members"].as_array().unwrap().iter();
        members.filter_map(|member| {
            Some((text(&member["name"]), text(&team["name"]), text(&member["mode"]), member["pid"].as_u64()?))
        })
    });
    members.collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// How many descriptors a process has, and how much resident memory, in KiB.
fn weight(pid: u32) -> (usize, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib = resident.trim().trim_end_matches(" kB").parse().unwrap();
    (std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(), kib)
}

fn withstands(inputs: u64, seed: u64) {
    let mut siege = Siege::lay(seed);
    let pid = siege.daemon();
    let mut before = None;
    for input in 1..=inputs {
        siege.input();
        if input % BATCH == 0 || input == inputs {
            siege.look();
            before.get_or_insert_with(|| weight(pid));
        }
    }
    files::settle(&mut siege);
    // Connections that were dropped are heard of a moment later.
    let (descriptors, kib) = before.unwrap();
    siege.house.until("its descriptors are let go", || (weight(pid).0 <= descriptors + MORE.0).then_some(()));
    let now = weight(pid);
    assert!(now.1 <= kib + MORE.1, "its memory grew from {kib} to {} KiB", now.1);
    siege.end();
}

#[test]
fn whatever_comes_in_the_daemon_answers_and_nothing_is_lost() {
    let (inputs, seed) = (rounds("INPUTS", 1_000).div_ceil(LANES), rounds("SEED", 1) * LANES);
    std::thread::scope(|scope| {
        let lanes: Vec<_> =
            (0..LANES).map(|lane| scope.spawn(move || withstands(inputs, seed + lane))).collect();
        lanes.into_iter().for_each(|lane| lane.join().unwrap());
    });
    figure("hostile-inputs", inputs * LANES);
}

/// Path to what is there, below a directory.
type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// The only thing in a directory, and so on down to a file of that name.
fn only(directory: &Path, name: &str) -> PathBuf {
    let place = std::fs::read_dir(directory).unwrap().flatten().next().unwrap().path();
    place.join(name)
}
