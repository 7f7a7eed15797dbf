//! Kills the daemon again and again while three teams are created, used and deleted. Tests that
//! every operation ends, that no deleted team comes back, and that nothing of a deleted team
//! remains.
//!
//! `DELETION_KILLS=n` sets the number of kills (20 by default), `SEED=n` sets when they happen. The
//! test also records how long successful `send` and `status` commands took.

use harness::{CommandOutput, TaggedProcesses, TestEnv, number_from_env, record_result};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const TEAMS: [&str; 3] = ["one", "two", "three"];
/// How long an operation may take with all its repetitions. The daemon answers only between two
/// kills.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(60);

/// Exit codes after which a command is repeated: no daemon, or a timeout.
const RETRY_CODES: [i32; 2] = [69, 75];

/// Repeats a command until a daemon has carried it out.
fn run_with_retries(env: &TestEnv, is_over: &AtomicBool, arguments: &[&str]) -> CommandOutput {
    let deadline = Instant::now() + OPERATION_TIMEOUT;
    loop {
        let output = env.teamctl_with(arguments, &[]);
        if !RETRY_CODES.contains(&output.code) {
            return output;
        }
        let kills_over = is_over.load(Ordering::Relaxed);
        assert!(
            Instant::now() < deadline,
            "{arguments:?} does not end, kills over: {kills_over}: {output:#?}"
        );
    }
}

/// Runs a command once, and adds its time in ms to `times` if it succeeded.
fn measure(env: &TestEnv, times: &mut Vec<u64>, arguments: &[&str]) {
    let start = Instant::now();
    if env.teamctl_with(arguments, &[]).code == 0 {
        times.push(u64::try_from(start.elapsed().as_millis()).unwrap());
    }
}

/// How often a team was created and deleted, and how long its commands took.
#[derive(Default)]
struct TeamResult {
    cycles: u64,
    send_times: Vec<u64>,
    status_times: Vec<u64>,
}

/// Creates a team, uses it and deletes it.
fn run_team(env: &TestEnv, is_over: &AtomicBool, team: &str, result: &mut TeamResult) {
    let run = |arguments: &[&str]| run_with_retries(env, is_over, &[&["-t", team], arguments].concat());
    // If the daemon was killed after it carried out a command, the repetition of the command may
    // fail.
    let run_allowing = |arguments: &[&str], allowed_codes: &[i32]| {
        let output = run(arguments);
        assert!(
            output.code == 0 || allowed_codes.contains(&output.code),
            "{team} {arguments:?}: {output:#?}"
        );
    };
    let created = run_with_retries(env, is_over, &["create", team]);
    assert!([0, 73].contains(&created.code), "{created:#?}");
    for name in ["ann", "bob"] {
        run_allowing(&["spawn", name, "--profile", "worker", "--backend", "in-process"], &[73, 76]);
    }
    measure(env, &mut result.send_times, &["-t", team, "send", "ann", "hello"]);
    measure(env, &mut result.status_times, &["-t", team, "status"]);
    run_allowing(&["task", "create", "count"], &[]);
    run_allowing(&["shutdown", "--all", "--force"], &[1]);
    let deleted = run_with_retries(env, is_over, &["delete", team, "--force"]);
    assert!([0, 67].contains(&deleted.code), "{team}: {deleted:#?}");
    for directory in ["teams", "tasks"] {
        let path = env.path("root").join(directory).join(team);
        assert!(!path.exists(), "{} still exists after {deleted:#?}", path.display());
    }
}

/// Kills `kills` daemons one after the other, each 20 to 500 ms after its start. Returns the last
/// daemon, which still runs.
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
fn teams_are_created_and_deleted_while_the_daemon_is_killed() {
    let (kills, seed) = (number_from_env("DELETION_KILLS", 20), number_from_env("SEED", 1));
    let env = TestEnv::new();
    let is_over = AtomicBool::new(false);
    let (mut daemon, results) = std::thread::scope(|scope| {
        let run_repeatedly = |team: &'static str| {
            let mut result = TeamResult::default();
            while !is_over.load(Ordering::Relaxed) {
                run_team(&env, &is_over, team, &mut result);
                result.cycles += 1;
            }
            result
        };
        let threads = TEAMS.map(|team| scope.spawn(move || run_repeatedly(team)));
        let daemon = kill_daemons(&env, kills, seed);
        is_over.store(true, Ordering::Relaxed);
        (daemon, threads.map(|thread| thread.join().unwrap()))
    });
    let cycles: Vec<u64> = results.iter().map(|result| result.cycles).collect();
    assert!(cycles.iter().all(|cycles| *cycles > 0), "a team was never created and deleted: {cycles:?}");
    let status = env.json(["status"]);
    assert_eq!(status["teams"], serde_json::json!([]), "a deleted team has come back");
    let agents = TaggedProcesses::with_tag(&env.process_tag()).list();
    let remaining: Vec<String> = agents.into_iter().filter(|process| process.contains("sleep")).collect();
    assert!(remaining.is_empty(), "{remaining:?}");
    env.shut_down_after_kills();
    daemon.wait().unwrap();
    record_result("deletion-kills", kills);
    record_result("deletion-lives", cycles.iter().sum());
    record_result("deletion-send-p99-ms", p99(results.iter().flat_map(|result| &result.send_times)));
    record_result("deletion-status-p99-ms", p99(results.iter().flat_map(|result| &result.status_times)));
}

/// The 99th percentile. 0 if there are no times.
fn p99<'a>(times: impl Iterator<Item = &'a u64>) -> u64 {
    let mut times: Vec<u64> = times.copied().collect();
    times.sort_unstable();
    times.get((times.len() * 99).saturating_sub(1) / 100).copied().unwrap_or(0)
}
