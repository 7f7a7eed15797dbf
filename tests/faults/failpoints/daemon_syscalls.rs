//! Lets strace break one system call of the daemon per case: during an operation, or while the
//! daemon starts after a kill. The calls need no failpoint. strace also traces the processes that
//! the daemon starts.

use super::case_counter::CaseCounter;
use super::failpoint_directory;
use super::operations::{OPERATIONS, SweepOperation};
use super::sweep_env::SweepEnv;
use harness::{Facility, TestEnv, number_from_env, record_result, record_skip, skips_without};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Stdio};
use std::time::Duration;

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
    fn attach(env: &TestEnv, args: &[String]) -> Option<StraceProcess> {
        env.write_file("out/strace", "");
        let stderr = std::fs::File::options().append(true).open(env.path("out/strace")).unwrap();
        let mut strace = env.command("strace");
        strace.args(["-f", "-p", &env.daemon_pid().to_string(), "-o"]).arg(env.path("out/trace")).args(args);
        let strace = strace.stderr(Stdio::from(stderr)).spawn().ok()?;
        let attached = env.wait_until("strace has attached or failed", || {
            let stderr = env.read("out/strace");
            stderr
                .contains("attach")
                .then(|| stderr.contains("attached") && !stderr.contains("not permitted"))
        });
        let tracer = StraceProcess(strace);
        if attached {
            Some(tracer)
        } else {
            tracer.detach(env);
            None
        }
    }

    /// Ends strace and returns its trace. On SIGINT strace waits until each thread has stopped. A
    /// thread that has just forked cannot stop while strace holds its child, so strace may hang.
    /// After 5 s it is killed, and the kernel releases all threads.
    fn detach(mut self, env: &TestEnv) -> String {
        let strace = Pid::from_child(&self.0);
        kill_process(strace, Signal::INT).unwrap_or_default();
        let has_exited = platform::ExitHandle::open(self.0.id())
            .is_none_or(|process| process.exits_within(Duration::from_secs(5)).unwrap());
        if !has_exited {
            kill_process(strace, Signal::KILL).unwrap_or_default();
        }
        self.0.wait().unwrap();
        env.read("out/trace")
    }
}

/// An index in `OPERATIONS`. `None` stands for a daemon's start after a kill.
type OperationIndex = Option<usize>;

/// Returns, for each system call, the largest number of calls by one thread of the operation.
/// strace counts the calls of each thread. `None` if strace cannot attach.
fn count_syscalls(sweep: &mut SweepEnv, operation: OperationIndex) -> Option<BTreeMap<&'static str, u64>> {
    let trace = trace(sweep, operation, &[format!("-etrace={}", SYSCALLS.join(","))])?;
    let mut counts: BTreeMap<(&str, &'static str), u64> = BTreeMap::new();
    for line in trace.lines() {
        let thread = line.split(' ').next().unwrap_or_default();
        for call in SYSCALLS.into_iter().filter(|call| line.contains(&format!(" {call}("))) {
            *counts.entry((thread, call)).or_default() += 1;
        }
    }
    let mut maxima = BTreeMap::new();
    counts.into_iter().for_each(|((_, call), count)| {
        maxima.entry(call).and_modify(|maximum: &mut u64| *maximum = count.max(*maximum)).or_insert(count);
    });
    Some(maxima)
}

fn trace(sweep: &mut SweepEnv, operation: OperationIndex, strace_args: &[String]) -> Option<String> {
    sweep.assert_tmux_runs();
    match operation {
        Some(index) => run_traced(sweep, &OPERATIONS[index], strace_args),
        None => Some(recover_traced(sweep, strace_args)),
    }
}

/// Runs one operation while strace is attached to the daemon, retries it until it is complete, and
/// returns the trace.
fn run_traced(sweep: &mut SweepEnv, operation: &SweepOperation, strace_args: &[String]) -> Option<String> {
    sweep.case_number += 1;
    let teamctl_args = (operation.prepare)(&sweep.env, sweep.case_number);
    let tracer = StraceProcess::attach(&sweep.env, strace_args)?;
    sweep.start_teamctl(&teamctl_args);
    let case = format!("{teamctl_args:?} under {strace_args:?}");
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
fn recover_traced(sweep: &mut SweepEnv, args: &[String]) -> String {
    let strace_args = [&["-f".to_owned(), "-o".to_owned(), "out/trace".to_owned()], args].concat();
    sweep.restart_daemon_under("strace", &strace_args);
    let trace = sweep.env.read("out/trace");
    let case = format!("recovery under {strace_args:?}");
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
    let operations = (0..OPERATIONS.len()).filter(|index| OPERATIONS[*index].runs_in_daemon());
    let mut calls = Vec::new();
    for operation in operations.map(Some).chain([None]) {
        let counts = count_syscalls(sweep, operation)?;
        let numbered =
            counts.into_iter().flat_map(|(call, count)| (1..=count).map(move |nth| (operation, call, nth)));
        calls.extend(numbered);
    }
    rng.shuffle(&mut calls);
    let with_injection = |offset: usize| {
        move |(n, (operation, call, nth)): (usize, &(_, _, _))| {
            (*operation, *call, *nth, INJECTIONS[(n + offset) % INJECTIONS.len()])
        }
    };
    let rounds = 0..INJECTIONS.len();
    Some(rounds.flat_map(|offset| calls.iter().enumerate().map(with_injection(offset))).collect())
}

fn was_injected(trace: &str, injection: &str) -> bool {
    trace.contains(match injection {
        "signal=KILL" => "killed by SIGKILL",
        delay if delay.starts_with("delay") => "DELAYED",
        _ => "INJECTED",
    })
}

#[test]
fn operations_complete_once_at_every_daemon_syscall() {
    // strace would also kill each `ps` of the daemon at its own call.
    if skips_without(Facility::FastProcessTable) {
        return;
    }
    let (wanted, seed) = (number_from_env("CALLS", 20), number_from_env("SEED", 1));
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut sweep = SweepEnv::new(false);
    let (mut counter, mut injections, mut recoveries) = (CaseCounter::default(), BTreeSet::new(), 0);
    while counter.hits < wanted {
        let Some(cases) = all_cases(&mut sweep, &mut rng) else {
            return record_skip("daemon-calls-broken", "strace can't attach here");
        };
        for (operation, call, nth, injection) in cases {
            let args = [format!("-etrace={call}"), format!("-einject={call}:{injection}:when={nth}")];
            let before = counter.hits;
            counter.count(&mut sweep, false, |sweep| {
                u64::from(was_injected(&trace(sweep, operation, &args).unwrap(), injection))
            });
            if counter.hits > before {
                injections.insert(injection);
                recoveries += u64::from(operation.is_none());
            }
            if counter.hits >= wanted && recoveries > 0 && injections.len() == INJECTIONS.len() {
                break;
            }
        }
    }
    assert!(
        injections == BTreeSet::from(INJECTIONS) && recoveries > 0,
        "an injection has not hit, or none in a recovery: {injections:?}"
    );
    // Some libraries panic if a call fails that never fails otherwise, such as the write that wakes
    // a thread. The whole daemon then ends. So only panics in our own crates count as failures.
    let log = sweep.env.teamd_log();
    let own_panic = log.lines().find(|line| line.contains("panicked at crates/"));
    assert_eq!(own_panic, None);
    sweep.env.clean_up_after_kills();
    sweep.env.shut_down_after_panics();
    record_result("daemon-calls-broken", counter.hits);
}
