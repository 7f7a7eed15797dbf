//! The daemon is killed again and again while three teams are created, used and deleted. Every operation ends, no deleted
//! team comes back, and nothing of a team is left.
//!
//! `DELETION_KILLS=n` sets the number of kills (20 by default), `SEED=n` their moments. The test also writes down how long
//! `send` and `status` took when a daemon or the files answered.

use harness::{CommandOutput, TaggedProcesses, TestEnv, iterations, record_result};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const TEAMS: [&str; 3] = ["one", "two", "three"];
/// How long an operation may take, with all its repetitions. The daemon answers only between two kills.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(60);

/// Exit codes after which a command is repeated: no daemon, or a timeout.
const RETRY_CODES: [i32; 2] = [69, 75];

/// Repeats a command until a daemon has carried it out.
fn run_to_end(env: &TestEnv, is_over: &AtomicBool, arguments: &[&str]) -> CommandOutput {
    let deadline = Instant::now() + OPERATION_TIMEOUT;
    loop {
        let ran = env.teamctl_with(arguments, &[]);
        if !RETRY_CODES.contains(&ran.code) {
            return ran;
        }
        let over = is_over.load(Ordering::Relaxed);
        assert!(Instant::now() < deadline, "{arguments:?} does not end, kills over: {over}: {ran:#?}");
    }
}

/// Runs a command once, and adds its time in ms to `times` if it succeeded.
fn measure(env: &TestEnv, times: &mut Vec<u64>, arguments: &[&str]) {
    let begun = Instant::now();
    if env.teamctl_with(arguments, &[]).code == 0 {
        times.push(u64::try_from(begun.elapsed().as_millis()).unwrap());
    }
}

/// What one team has done.
#[derive(Default)]
struct TeamResult {
    lives: u64,
    send_times: Vec<u64>,
    status_times: Vec<u64>,
}

/// One whole life of a team.
fn run_team(env: &TestEnv, is_over: &AtomicBool, team: &str, result: &mut TeamResult) {
    let run = |arguments: &[&str]| run_to_end(env, is_over, &[&["-t", team], arguments].concat());
    // A command whose daemon was killed may have been carried out, so its repetition may fail.
    let repeatable = |arguments: &[&str], also: &[i32]| {
        let ran = run(arguments);
        assert!(ran.code == 0 || also.contains(&ran.code), "{team} {arguments:?}: {ran:#?}");
    };
    let created = run_to_end(env, is_over, &["create", team]);
    assert!([0, 73].contains(&created.code), "{created:#?}");
    for name in ["ann", "bob"] {
        repeatable(&["spawn", name, "--profile", "worker", "--backend", "in-process"], &[73, 76]);
    }
    measure(env, &mut result.send_times, &["-t", team, "send", "ann", "hello"]);
    measure(env, &mut result.status_times, &["-t", team, "status"]);
    repeatable(&["task", "create", "count"], &[]);
    repeatable(&["shutdown", "--all", "--force"], &[1]);
    let deleted = run_to_end(env, is_over, &["delete", team, "--force"]);
    assert!([0, 67].contains(&deleted.code), "{team}: {deleted:#?}");
    for directory in ["teams", "tasks"] {
        let path = env.path("root").join(directory).join(team);
        assert!(!path.exists(), "{} is left after {deleted:#?}", path.display());
    }
}

/// Kills one daemon after the other, the next in 20 to 500 ms.
fn kill_daemons(env: &TestEnv, kills: u64, seed: u64) -> Child {
    let mut rng = fastrand::Rng::with_seed(seed);
    let start = || {
        let mut daemon = env.daemon_command();
        daemon.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("teamd starts")
    };
    let mut daemon = start();
    for _ in 0..kills {
        harness::sleep(Duration::from_millis(rng.u64(20..500)));
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        daemon = start();
    }
    daemon
}

#[test]
fn lives_of_three_teams_are_completed_while_the_daemon_is_killed() {
    let (kills, seed) = (iterations("DELETION_KILLS", 20), iterations("SEED", 1));
    let env = TestEnv::new();
    let is_over = AtomicBool::new(false);
    let (mut daemon, results) = std::thread::scope(|scope| {
        let drive = |team: &'static str| {
            let mut result = TeamResult::default();
            while !is_over.load(Ordering::Relaxed) {
                run_team(&env, &is_over, team, &mut result);
                result.lives += 1;
            }
            result
        };
        let drivers = TEAMS.map(|team| scope.spawn(move || drive(team)));
        let daemon = kill_daemons(&env, kills, seed);
        is_over.store(true, Ordering::Relaxed);
        (daemon, drivers.map(|driver| driver.join().unwrap()))
    });
    let lives: Vec<u64> = results.iter().map(|result| result.lives).collect();
    assert!(lives.iter().all(|lives| *lives > 0), "a team has not completed one life: {lives:?}");
    let status = env.json(["status"]);
    assert_eq!(status["teams"], serde_json::json!([]), "a deleted team has come back");
    let agents = TaggedProcesses::with_tag(&env.process_tag()).list();
    let left: Vec<String> = agents.into_iter().filter(|process| process.contains("sleep")).collect();
    assert!(left.is_empty(), "{left:?}");
    env.shut_down_after_kills();
    daemon.wait().unwrap();
    record_result("deletion-kills", kills);
    record_result("deletion-lives", lives.iter().sum());
    record_result("deletion-send-p99-ms", p99(results.iter().flat_map(|result| &result.send_times)));
    record_result("deletion-status-p99-ms", p99(results.iter().flat_map(|result| &result.status_times)));
}

/// The time that 99 of 100 do not exceed. 0 without times.
fn p99<'a>(times: impl Iterator<Item = &'a u64>) -> u64 {
    let mut times: Vec<u64> = times.copied().collect();
    times.sort_unstable();
    times.get((times.len() * 99).saturating_sub(1) / 100).copied().unwrap_or(0)
}
