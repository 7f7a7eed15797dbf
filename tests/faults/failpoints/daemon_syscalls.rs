//! Lets strace break one system call of the daemon per case: during an operation, or while the
//! daemon starts after a kill. The calls need no failpoint. strace also traces the processes that
//! the daemon starts.

use super::case_counter::CaseCounter;
use super::failpoint_directory;
use super::operations::{OPERATIONS, SweepOperation};
use super::sweep_env::SweepEnv;
use harness::{TestEnv, iterations, record_result, record_skip};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};

/// The system calls with which the daemon changes files and processes.
const SYSCALLS: [&str; 16] = [
    "openat",
    "write",
    "mkdirat",
    "mkdir",
    "renameat",
    "renameat2",
    "unlinkat",
    "unlink",
    "fchmod",
    "ftruncate",
    "fsync",
    "fdatasync",
    "flock",
    "sendto",
    "connect",
    "clone3",
];

/// What strace does to a call: it kills the daemon, returns an error, or delays the call by 60 ms.
const INJECTIONS: [&str; 4] = ["signal=KILL", "error=ENOSPC", "error=EIO", "delay_enter=60000"];

/// The strace process that is attached to the daemon.
struct StraceProcess(Child);

impl StraceProcess {
    /// Attaches strace to the daemon. `None` if this is not permitted here.
    fn attach(env: &TestEnv, words: &[String]) -> Option<StraceProcess> {
        env.write_file("out/strace", "");
        let said = std::fs::File::options().append(true).open(env.path("out/strace")).unwrap();
        let mut strace = env.command("strace");
        strace.args(["-f", "-p", &env.daemon_pid().to_string(), "-o"]).arg(env.path("out/trace")).args(words);
        let strace = strace.stderr(Stdio::from(said)).spawn().ok()?;
        let attached = env.wait_until("strace is there", || {
            let said = env.read("out/strace");
            (said.contains("attach")).then(|| said.contains("attached") && !said.contains("not permitted"))
        });
        let tracer = StraceProcess(strace);
        if attached {
            Some(tracer)
        } else {
            tracer.detach(env);
            None
        }
    }

    /// Ends strace and returns its trace. On SIGINT strace waits until each thread has stopped. A thread
    /// that has just forked cannot stop while strace holds its child, so strace may hang. After 5 s
    /// it is killed, and the kernel releases all threads.
    fn detach(mut self, env: &TestEnv) -> String {
        let strace = Pid::from_child(&self.0);
        kill_process(strace, Signal::INT).unwrap_or_default();
        let pidfd = pidfd_open(strace, PidfdFlags::empty()).unwrap();
        let gone = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&Timespec { tv_sec: 5, tv_nsec: 0 }));
        if gone != Ok(1) {
            kill_process(strace, Signal::KILL).unwrap_or_default();
        }
        self.0.wait().unwrap();
        env.read("out/trace")
    }
}

/// An index in `OPERATIONS`. `None` stands for a daemon's start after a kill.
type OperationIndex = Option<usize>;

/// Returns, for each system call, the largest number of calls by one thread of the operation. strace
/// counts the calls of each thread. `None` if strace cannot attach.
fn count_syscalls(sweep: &mut SweepEnv, which: OperationIndex) -> Option<BTreeMap<&'static str, u64>> {
    let trace = trace(sweep, which, &[format!("-etrace={}", SYSCALLS.join(","))])?;
    let mut times: BTreeMap<(&str, &'static str), u64> = BTreeMap::new();
    for line in trace.lines() {
        let thread = line.split(' ').next().unwrap_or_default();
        for call in SYSCALLS.into_iter().filter(|call| line.contains(&format!(" {call}("))) {
            *times.entry((thread, call)).or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    times.into_iter().for_each(|((_, call), times)| {
        most.entry(call).and_modify(|most: &mut u64| *most = times.max(*most)).or_insert(times);
    });
    Some(most)
}

fn trace(sweep: &mut SweepEnv, which: OperationIndex, words: &[String]) -> Option<String> {
    sweep.assert_tmux_runs();
    match which {
        Some(which) => run_traced(sweep, &OPERATIONS[which], words),
        None => Some(recover_traced(sweep, words)),
    }
}

/// Runs one operation while strace is attached to the daemon, retries it until it is complete, and
/// returns the trace.
fn run_traced(sweep: &mut SweepEnv, operation: &SweepOperation, words: &[String]) -> Option<String> {
    sweep.case_number += 1;
    let typed = (operation.prepare)(&sweep.env, sweep.case_number);
    let tracer = StraceProcess::attach(&sweep.env, words)?;
    sweep.start_teamctl(&typed);
    let case = format!("{typed:?} under {words:?}");
    sweep.wait_until(&format!("{case} ends"), || sweep.exit_code());
    sweep.env.wait_until_quiet(failpoint_directory::SETTLE_TIME);
    let trace = tracer.detach(&sweep.env);
    sweep.env.age_locks_and_temp_files();
    sweep.reap_daemon();
    sweep.ensure_daemon();
    sweep.check_partial(operation, &case, false);
    sweep.retry_until_complete(operation, &case);
    Some(trace)
}

/// Kills the daemon and starts one under strace, then one without strace. Checks that the state is
/// unchanged with both. Returns the trace.
fn recover_traced(sweep: &mut SweepEnv, words: &[String]) -> String {
    let words = [&["-f".to_owned(), "-o".to_owned(), "out/trace".to_owned()], words].concat();
    sweep.restart_daemon_under("strace", &words);
    let trace = sweep.env.read("out/trace");
    let case = format!("recovery under {words:?}");
    sweep.env.age_locks_and_temp_files();
    sweep.ensure_daemon();
    sweep.assert_baseline(&case);
    sweep.kill_daemon();
    sweep.ensure_daemon();
    sweep.assert_baseline(&case);
    trace
}

/// Returns each call of each operation with each injection. The order is random, and the injections
/// take turns.
fn all_cases(
    sweep: &mut SweepEnv,
    rng: &mut fastrand::Rng,
) -> Option<Vec<(OperationIndex, &'static str, u64, &'static str)>> {
    let daemons = (0..OPERATIONS.len()).filter(|which| OPERATIONS[*which].runs_in_daemon());
    let mut all = Vec::new();
    for which in daemons.map(Some).chain([None]) {
        let calls = count_syscalls(sweep, which)?;
        let each = calls.into_iter().flat_map(|(call, times)| (1..=times).map(move |nth| (which, call, nth)));
        all.extend(each);
    }
    rng.shuffle(&mut all);
    let with = |turn: usize| {
        move |(n, (which, call, nth)): (usize, &(_, _, _))| {
            (*which, *call, *nth, INJECTIONS[(n + turn) % INJECTIONS.len()])
        }
    };
    Some((0..INJECTIONS.len()).flat_map(|turn| all.iter().enumerate().map(with(turn))).collect())
}

fn was_injected(trace: &str, how: &str) -> bool {
    trace.contains(match how {
        "signal=KILL" => "killed by SIGKILL",
        how if how.starts_with("delay") => "DELAYED",
        _ => "INJECTED",
    })
}

#[test]
fn operations_complete_once_at_every_daemon_syscall() {
    let (wanted, seed) = (iterations("CALLS", 20), iterations("SEED", 1));
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut sweep = SweepEnv::new(false);
    let (mut tally, mut broken, mut recoveries) = (CaseCounter::default(), BTreeSet::new(), 0);
    while tally.hits < wanted {
        let Some(all) = all_cases(&mut sweep, &mut rng) else {
            return record_skip("daemon-calls-broken", "strace can't attach here");
        };
        for (which, call, nth, how) in all {
            let words = [format!("-etrace={call}"), format!("-einject={call}:{how}:when={nth}")];
            let before = tally.hits;
            tally.count(&mut sweep, false, |sweep| {
                u64::from(was_injected(&trace(sweep, which, &words).unwrap(), how))
            });
            if tally.hits > before {
                broken.insert(how);
                recoveries += u64::from(which.is_none());
            }
            if tally.hits >= wanted && recoveries > 0 && broken.len() == INJECTIONS.len() {
                break;
            }
        }
    }
    assert!(
        broken == BTreeSet::from(INJECTIONS) && recoveries > 0,
        "each has hit, and in a recovery: {broken:?}"
    );
    // Some libraries panic if a call fails that never fails otherwise, such as the write that wakes a
    // thread. The whole daemon then ends. So only panics in our own crates count as failures.
    let log = sweep.env.teamd_log();
    let ours = log.lines().find(|line| line.contains("panicked at crates/"));
    assert_eq!(ours, None);
    sweep.env.clean_up_after_kills();
    sweep.env.shut_down_after_panics();
    record_result("daemon-calls-broken", tally.hits);
}
