//! Tests that no child of an agent keeps running after the agent has ended. The children run in the
//! background, ignore hang-ups, have a name that is not valid UTF-8, run under nohup, have their
//! own session or are forked twice. The agent exits by itself, its pane is closed, its tmux server
//! or its shim is killed, it is shut down, or its pane is closed while no daemon runs.
//!
//! `ORPHANS=n` sets the number of children (100 by default). The test holds a pidfd of each child.

use harness::{
    Facility, TaggedProcesses, TestEnv, number_from_env, record_result, record_skip, skips_without,
};
use std::fs::File;
use std::io::Write;
use std::process::{Child, Command};
use std::time::Duration;

/// The end of the script of a child: writes the pid to a file and sleeps. The script `out/deaf`
/// ignores the signals HUP and TERM too.
const CHILD: &str = "echo $$ >>out/children\nexec sleep 3600\n";

/// The shell commands that start a child.
const KINDS: [&str; 6] = [
    "out/named &",
    "out/child &",
    "out/deaf &",
    "nohup out/deaf >/dev/null 2>&1 &",
    "setsid out/deaf &",
    "(setsid sh -c 'out/deaf & exit' &)",
];

/// The last command, but the child has no environment, so nothing identifies its agent.
const WITHOUT_ENVIRONMENT: &str = "(setsid env -i out/deaf &)";

/// How long a child may run after the end of its agent.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Number of agents in a batch, each with one child.
const BATCH_SIZE: usize = 25;

/// How the agents of a batch are ended.
#[derive(Debug, Clone, Copy)]
enum AgentEnd {
    OwnExit,
    PaneClosed,
    ServerKilled,
    ShimKilled,
    Shutdown,
    /// The daemon is killed, and then the panes are closed.
    DaemonKilled,
}

const AGENT_ENDS: [AgentEnd; 6] = [
    AgentEnd::OwnExit,
    AgentEnd::PaneClosed,
    AgentEnd::ServerKilled,
    AgentEnd::ShimKilled,
    AgentEnd::Shutdown,
    AgentEnd::DaemonKilled,
];

/// A test environment whose daemon runs outside of tmux, so that it keeps running when the tmux
/// server is killed.
struct OrphanTest {
    env: TestEnv,
    daemon: Child,
    /// A named pipe. An agent exits when it reads a line from it. The test opens the pipe for
    /// reading and writing, so that opening it does not block.
    gate: File,
}

impl OrphanTest {
    fn open() -> OrphanTest {
        let env = TestEnv::new();
        let daemon = env.start_daemon_without_pane();
        env.teamctl(["create", "survey"]).expect_success();
        env.create_gate("out/go");
        env.write_script("out/child", &format!("#!/bin/sh\n{CHILD}"));
        env.write_script("out/deaf", &format!("#!/bin/sh\ntrap '' HUP TERM\n{CHILD}"));
        // This name ends in the middle of a character, like a long name that the kernel has cut.
        env.create_gate("out/never");
        let named = "printf 'cut\\303' >/proc/self/comm\necho $$ >>out/children\nread -r line <out/never\n";
        env.write_script("out/named", &format!("#!/bin/sh\ntrap '' HUP TERM\n{named}"));
        let gate = File::options().read(true).write(true).open(env.path("out/go")).unwrap();
        OrphanTest { env, daemon, gate }
    }

    /// Spawns `count` agents, each with one child. The kinds of children are used in turn. Returns
    /// the children when all of them run.
    fn start_batch(&self, batch: usize, kinds: &[&str], count: usize) -> Vec<TaggedProcesses> {
        let env = &self.env;
        env.write_file("out/children", "");
        let spawn = |n: usize| {
            let script = format!("{}\nread -r line <out/go", kinds[n % kinds.len()]);
            let (name, cwd) = (format!("a{batch}-{n}"), env.path("").display().to_string());
            env.start_teamctl(["spawn", &name, "--cwd", &cwd, "--", "sh", "-c", &script])
        };
        for spawned in (0..count).map(spawn).collect::<Vec<_>>() {
            let output = spawned.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
        let pids = env.wait_until("every child runs", || {
            let pids: Vec<u32> =
                env.read("out/children").lines().filter_map(|pid| pid.trim().parse().ok()).collect();
            (pids.len() == count).then_some(pids)
        });
        let children: Vec<TaggedProcesses> = pids.into_iter().map(TaggedProcesses::single).collect();
        assert!(children.iter().all(|child| child.list().len() == 1), "each child runs: {children:#?}");
        children
    }

    /// Expands a tmux format for each pane with a pane tag.
    fn panes(&self, format: &str) -> Vec<String> {
        let lines = self.env.tmux(["list-panes", "-a", "-F", &format!("#{{?#{{@teamd_spawn}},{format},}}")]);
        lines.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    fn end_agents(&mut self, ending: AgentEnd, count: usize) {
        let env = &self.env;
        match ending {
            AgentEnd::OwnExit => self.gate.write_all("\n".repeat(count).as_bytes()).unwrap(),
            AgentEnd::PaneClosed => self.panes("#{pane_id}").iter().for_each(|pane| {
                env.tmux(["kill-pane", "-t", pane]);
            }),
            AgentEnd::ServerKilled => {
                env.kill_process(env.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap());
            }
            AgentEnd::ShimKilled => {
                self.panes("#{pane_pid}").iter().for_each(|pid| env.kill_process(pid.parse().unwrap()));
            }
            AgentEnd::Shutdown => {
                env.teamctl(["shutdown", "--all", "--grace", "10ms", "--force"]).expect_success();
            }
            AgentEnd::DaemonKilled => {
                self.daemon.kill().unwrap();
                self.daemon.wait().unwrap();
                self.end_agents(AgentEnd::PaneClosed, count);
            }
        }
    }

    /// Starts a new tmux server or daemon if the last one was killed, and waits until the members
    /// of the batch are removed.
    fn prepare_next_batch(&mut self, ending: AgentEnd) {
        let env = &self.env;
        match ending {
            AgentEnd::ServerKilled => {
                env.start_tmux_server("user");
            }
            AgentEnd::DaemonKilled => self.daemon = env.start_daemon_without_pane(),
            _ => {}
        }
        env.wait_until("all members are removed", || {
            let status = env.json(["status"]);
            (status["teams"][0]["members"].as_array()?.len() == 1).then_some(())
        });
    }

    fn finish(mut self) {
        self.env.teamctl(["down"]).expect_success();
        assert!(self.daemon.wait().unwrap().success());
        self.env.shut_down();
    }
}

/// Returns the children that still run after the timeout.
fn surviving_children(children: &[TaggedProcesses]) -> Vec<String> {
    let deadline = std::time::Instant::now() + TIMEOUT;
    let survives = |child: &&TaggedProcesses| {
        !child.exit_within(deadline.saturating_duration_since(std::time::Instant::now()))
    };
    children.iter().filter(survives).flat_map(TaggedProcesses::list).collect()
}

/// Plans the batches for `count` children: the first four ends in turn, and then the last two in
/// turn for a quarter as many batches, at least two.
fn planned_ends(count: usize) -> Vec<AgentEnd> {
    let batches = count.div_ceil(BATCH_SIZE);
    let further_batches = (batches / 4).max(2);
    AGENT_ENDS[..4]
        .iter()
        .cycle()
        .take(batches)
        .chain(AGENT_ENDS[4..].iter().cycle().take(further_batches))
        .copied()
        .collect()
}

#[test]
fn agents_leave_no_processes() {
    let mut test = OrphanTest::open();
    let endings = planned_ends(number_from_env("ORPHANS", 100) as usize);
    for (batch, ending) in endings.iter().enumerate() {
        let children = test.start_batch(batch, &KINDS, BATCH_SIZE);
        test.end_agents(*ending, BATCH_SIZE);
        let remaining = surviving_children(&children);
        assert!(remaining.is_empty(), "{ending:?}: {remaining:#?}\n{}", test.env.dump_state());
        test.prepare_next_batch(*ending);
    }
    test.finish();
    record_result("orphan-trials", (endings.len() * BATCH_SIZE) as u64);
}

/// While the shim runs, a process that cleared its environment is still a descendant of the shim.
/// After the shim is killed, nothing identifies such a process. docs/ARCHITECTURE.md names this as
/// the only case in which processes remain.
#[test]
fn processes_without_environment_escape_only_if_the_shim_is_killed() {
    // Without it, such processes escape whenever their parent has exited.
    if skips_without(Facility::Subreaper) {
        return;
    }
    let mut test = OrphanTest::open();
    let endings = [AgentEnd::OwnExit, AgentEnd::PaneClosed, AgentEnd::ServerKilled, AgentEnd::Shutdown];
    for (batch, ending) in endings.into_iter().enumerate() {
        let children = test.start_batch(batch, &[WITHOUT_ENVIRONMENT], 5);
        test.end_agents(ending, 5);
        let remaining = surviving_children(&children);
        assert!(remaining.is_empty(), "{ending:?}: {remaining:#?}");
        test.prepare_next_batch(ending);
    }
    let children = test.start_batch(endings.len(), &[WITHOUT_ENVIRONMENT], 5);
    test.end_agents(AgentEnd::ShimKilled, 5);
    test.prepare_next_batch(AgentEnd::ShimKilled);
    let escaped = children.iter().filter(|child| !child.exit_within(Duration::ZERO)).count();
    assert_eq!(escaped, children.len(), "docs/ARCHITECTURE.md says that these processes remain");
    children.iter().for_each(TaggedProcesses::kill);
    assert!(surviving_children(&children).is_empty());
    test.finish();
    record_result("orphans-beyond-reach", escaped as u64);
}

/// The fork bomb is not a shell script, because a shell exits when it cannot fork.
const FORK_BOMB: &str = "import os  # storm\nwhile True:\n try: os.fork()\n except OSError: pass";

/// The number of processes of the fork bomb is limited by the kernel.
#[test]
fn fork_bomb_is_ended() {
    let test = OrphanTest::open();
    let env = &test.env;
    // root has no process limit, so the fork bomb runs as another user.
    let setpriv_args = ["--reuid=65534", "--clear-groups", "prlimit", "--nproc=60", "python3", "-c"];
    let status = Command::new("setpriv").args(setpriv_args).arg("").status();
    if !status.is_ok_and(|status| status.success()) {
        record_skip("fork-storms", "no permission to change the user, or no process limit");
        return test.finish();
    }
    let spawn = [&["spawn", "ann", "--", "setpriv"], &setpriv_args[..], &[FORK_BOMB]].concat();
    let bomb_processes = || {
        let processes = TaggedProcesses::with_tag(&env.process_tag()).list();
        processes.into_iter().filter(|line| line.contains("storm")).collect::<Vec<_>>()
    };
    for ending in ["kill", "kill of the shim"] {
        env.teamctl_with(&spawn, &[]).expect_success();
        env.wait_until("the fork bomb has many processes", || (bomb_processes().len() > 30).then_some(()));
        match ending {
            "kill" => drop(env.teamctl(["kill", "ann"]).expect_success()),
            _ => {
                test.panes("#{pane_pid}").iter().for_each(|pid| env.kill_process(pid.parse().unwrap()));
                env.wait_until("the exit is reported", || {
                    (!env.payloads_to_lead("ann", "teammate_terminated").is_empty()).then_some(())
                });
                env.wait_until("the member is removed", || env.member("ann").is_none().then_some(()));
            }
        }
        let remaining = bomb_processes();
        assert!(remaining.is_empty(), "{ending}: {remaining:#?}");
    }
    test.finish();
    record_result("fork-storms", 2);
}
