//! Measures spawn, status and kill of members in panes, compared with the same tmux commands.
//!
//! One comparison is between `teamctl` processes and tmux processes. The other is between one
//! client of the daemon's socket and one tmux control connection.

use crate::tmux_connection::TmuxConnection;
use crate::{env_with_team, print_row, time_call};
use harness::{TestEnv, programs};
use protocol::control_socket::shim_subcommands::{LOG, RUN};
use protocol::control_socket::{StartAgent, ToShim};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Child;
use std::time::Duration;

/// The durations of [`STEPS`] for one implementation.
type StepTimes = [Duration; 3];
/// Measures one implementation with this number of panes.
type Measure = fn(usize) -> StepTimes;

const STEPS: [&str; 3] = ["spawn", "status", "kill"];

pub(crate) fn measure_panes() {
    for count in [1, 10, 50, 200] {
        print_ratio(
            count,
            "one teamctl process each; one tmux process each",
            "-",
            [measure_teamctl_processes, measure_tmux_processes],
        );
        let implementations = "one client of the socket; the same tmux commands on one control connection, until the shim has begun";
        print_ratio(count, implementations, "1.3 ×", [measure_control_socket, measure_connection]);
        measure_spawn_with_agents(count);
    }
}

/// Compares spawns by the daemon with shims on a tmux connection that also start an agent. The
/// daemon replies to a spawn once the agent runs, so this comparison is fair.
fn measure_spawn_with_agents(count: usize) {
    let pairs: Vec<[Duration; 2]> = (0..round_count(count))
        .map(|_| [measure_control_socket(count)[0], measure_agents_on_connection(count)])
        .collect();
    let [teamd, tmux] = [0, 1].map(|index| median(pairs.iter().map(|pair| pair[index]).collect()));
    let ratio = median(pairs.iter().map(|[teamd, tmux]| teamd.as_secs_f64() / tmux.as_secs_f64()).collect());
    let implementations =
        "one client of the socket; the same, but the shims on the control connection also start the agent";
    print_row(
        &format!("spawn of {count}: {implementations}"),
        &format!("{teamd:.1?}; {tmux:.1?}; {ratio:.2} ×"),
        "1.3 ×",
    );
}

/// The number of rounds. It is smaller for many panes, which take longer.
fn round_count(count: usize) -> usize {
    if count > 50 { 3 } else { 5 }
}

/// Measures teamd and tmux alternately. Prints the medians of both and of their ratio for each
/// step.
fn print_ratio(count: usize, implementations: &str, target: &str, [teamd, tmux]: [Measure; 2]) {
    let pairs: Vec<[StepTimes; 2]> = (0..round_count(count)).map(|_| [teamd(count), tmux(count)]).collect();
    for (step, name) in STEPS.into_iter().enumerate() {
        let [teamd, tmux] = [0, 1].map(|index| median(pairs.iter().map(|pair| pair[index][step]).collect()));
        let ratios = pairs.iter().map(|[teamd, tmux]| teamd[step].as_secs_f64() / tmux[step].as_secs_f64());
        let ratio = median(ratios.collect());
        print_row(
            &format!("{name} of {count}: {implementations}"),
            &format!("{teamd:.1?}; {tmux:.1?}; {ratio:.2} ×"),
            target,
        );
    }
}

fn median<T: PartialOrd + Copy>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).expect("times can be compared"));
    values[values.len() / 2]
}

/// Runs all `teamctl spawn` processes at the same time, as a lead does that starts a team.
fn measure_teamctl_processes(count: usize) -> StepTimes {
    let env = env_with_team();
    let spawn = time_call(|| {
        let children: Vec<Child> = (0..count)
            .map(|n| env.start_teamctl(["spawn", &format!("a{n}"), "--", "sleep", "3600"]))
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    });
    let status = time_call(|| drop(env.teamctl(["status"]).expect_success()));
    let names: Vec<String> = (0..count).map(|n| format!("a{n}")).collect();
    let args: Vec<&str> = ["kill"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let kill = time_call(|| drop(env.teamctl_with(&args, &[]).expect_success()));
    env.shut_down();
    [spawn, status, kill]
}

fn measure_tmux_processes(count: usize) -> StepTimes {
    let env = TestEnv::new();
    let new_window = ["new-window", "-d", "-P", "-F", "#{pane_id}", "--", "sleep", "3600"];
    let mut panes = Vec::new();
    let spawn = time_call(|| panes = (0..count).map(|_| env.tmux(new_window)).collect());
    let status = time_call(|| drop(env.tmux(["list-panes", "-a", "-F", "#{pane_id} #{pane_pid}"])));
    let kill = time_call(|| panes.iter().for_each(|pane| drop(env.tmux(["kill-pane", "-t", pane]))));
    env.shut_down();
    [spawn, status, kill]
}

/// Uses one connection for each request. Sends all spawn requests at the same time.
fn measure_control_socket(count: usize) -> StepTimes {
    let env = env_with_team();
    let spawn = |n: usize| {
        json!({"spawn": {"team": "bench", "name": format!("a{n}"), "unique": false, "argv": ["sleep", "3600"],
            "cwd": "/", "env": {"PATH": "/usr/bin:/bin"}, "prompt": "", "delivery": "pull"}})
    };
    let requests: Vec<Value> = (0..count).map(spawn).collect();
    let spawn = time_call(|| call_daemon(&env, &requests));
    let status = time_call(|| call_daemon(&env, &[json!("status")]));
    // The daemon arranges the panes after the last spawn. This call waits until that is done, so
    // that the time of the kill does not include it.
    call_daemon(&env, &[json!({"capture_pane": {"team": "bench", "name": "a0", "lines": null}})]);
    let names: Vec<String> = (0..count).map(|n| format!("a{n}")).collect();
    let kill = time_call(|| call_daemon(&env, &[json!({"kill": {"team": "bench", "names": names}})]));
    env.shut_down();
    [spawn, status, kill]
}

/// Sends all requests to the daemon, then waits for all replies.
fn call_daemon(env: &TestEnv, requests: &[Value]) {
    let directory = std::fs::read_dir(env.path("run/teamd")).unwrap().flatten().next().unwrap().path();
    let streams: Vec<UnixStream> = requests
        .iter()
        .map(|request| {
            let mut stream = UnixStream::connect(directory.join("control.sock")).unwrap();
            stream.write_all(format!("{}\n", json!({"version": 2, "request": request})).as_bytes()).unwrap();
            stream
        })
        .collect();
    for stream in streams {
        let mut reply = String::new();
        BufReader::new(stream).read_line(&mut reply).unwrap();
        assert!(!reply.is_empty() && !reply.contains("\"failed\""), "{reply}");
    }
}

/// Waits until every shim has connected, as the daemon does.
fn measure_connection(count: usize) -> StepTimes {
    let (env, mut connection) = env_with_connection();
    let listener = UnixListener::bind(env.path("socket")).unwrap();
    let (mut panes, mut shims): (Vec<String>, Vec<UnixStream>) = Default::default();
    let spawn = time_call(|| {
        panes = create_panes_with_shims(&env, &mut connection, count);
        // The connections stay open, because a shim that is disconnected connects again.
        shims.extend((0..count).map(|_| listener.accept().unwrap().0));
    });
    let status = time_call(|| {
        drop(connection.run_commands(&["list-panes -a -F '#{pane_id} #{pane_pid}'".to_owned()]));
    });
    let kill = time_call(|| drop(connection.run_commands(&kill_commands(&panes))));
    drop(shims);
    connection.close();
    env.shut_down();
    [spawn, status, kill]
}

/// As [`measure_connection`], but each shim gets the request to start its agent at once. Waits
/// until every shim has reported that its agent runs.
fn measure_agents_on_connection(count: usize) -> Duration {
    let (env, mut connection) = env_with_connection();
    let listener = UnixListener::bind(env.path("socket")).unwrap();
    let start_agent = to_line(&ToShim::StartAgent(Box::new(StartAgent {
        argv: ["sleep", "3600"].map(str::to_owned).to_vec(),
        cwd: "/".into(),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        state_dir: env.path(""),
        turn_setup: None,
        iterm2_color: None,
    })));
    let shims = std::thread::spawn(move || {
        let accept = |_| {
            let mut shim = listener.accept().unwrap().0;
            shim.write_all(start_agent.as_bytes()).unwrap();
            BufReader::new(shim)
        };
        let mut shims: Vec<_> = (0..count).map(accept).collect();
        shims.iter_mut().for_each(|shim| receive_line(shim, "started"));
        shims
    });
    let (mut panes, mut running) = (Vec::new(), Vec::new());
    let spawn = time_call(|| {
        panes = create_panes_with_shims(&env, &mut connection, count);
        running = shims.join().unwrap();
    });
    connection.run_commands(&kill_commands(&panes));
    for shim in &mut running {
        receive_line(shim, "exited");
        // The shim waits for this reply before it exits, but not for long.
        shim.get_mut().write_all(to_line(&ToShim::ExitRecorded).as_bytes()).ok();
    }
    connection.close();
    env.shut_down();
    spawn
}

fn to_line(message: &ToShim) -> String {
    format!("{}\n", serde_json::to_string(message).unwrap())
}

/// Reads lines of a shim until one contains `message`.
fn receive_line(shim: &mut BufReader<UnixStream>, message: &str) {
    let mut line = String::new();
    while !line.contains(message) {
        line.clear();
        assert!(shim.read_line(&mut line).unwrap() > 0, "the shim disconnected before it reported {message}");
    }
}

fn kill_commands(panes: &[String]) -> Vec<String> {
    panes.iter().map(|pane| format!("kill-pane -t {pane}")).collect()
}

fn env_with_connection() -> (TestEnv, TmuxConnection) {
    let env = TestEnv::new();
    let connection = TmuxConnection::open(&env);
    (env, connection)
}

/// Runs the tmux commands that the daemon runs for an agent, without its queries: a pane with the
/// shim in it, in a window for nine panes, the pane's tags, what its border shows, and the program
/// that logs the agent's output.
fn create_panes_with_shims(env: &TestEnv, connection: &mut TmuxConnection, count: usize) -> Vec<String> {
    let (socket, log, program) = (env.path("socket"), env.path("log"), programs().join("teamd-shim"));
    let mut window = String::new();
    let create_pane = |n| {
        let daemon = format!("--socket {} --state-dir {}", socket.display(), env.path("").display());
        let shim = format!("{} {RUN} bench-{n} {daemon}", program.display());
        let shim = format!("-d -P -F '#{{pane_id}} #{{window_id}}' -c / -- {shim}");
        let window_is_new = n % PANES_PER_WINDOW == 0;
        let ids = match window_is_new {
            true => {
                connection.run_commands(&[format!("new-window -a -n bench -t '{{end}}' {shim}")]).remove(0)
            }
            false => split_window(connection, &window, &shim),
        };
        let (pane, pane_window) = ids.split_once(' ').unwrap();
        pane_window.clone_into(&mut window);
        let options = WINDOW_COMMANDS.map(|option| format!("set-option -w -t {window} {option}"));
        let tags = TAG_COMMANDS.map(|tag| format!("set-option -p -t {pane} {tag} bench-{n}"));
        let output_log = format!("exec {} {LOG} {}-{n}", program.display(), log.display());
        let output_log = [
            format!("set-option -p -t {pane} remain-on-exit on"),
            format!("pipe-pane -t {pane} '{output_log}'"),
        ];
        connection
            .run_commands(&[if window_is_new { &options[..] } else { &[] }, &tags, &output_log].concat());
        pane.to_owned()
    };
    (0..count).map(create_pane).collect()
}

/// How many panes the daemon puts into a window of 200 by 50.
const PANES_PER_WINDOW: usize = 9;

const WINDOW_COMMANDS: [&str; 7] = [
    "pane-border-status top",
    "pane-border-format '#{?#{@teamd_spawn}, #[fg=#{@teamd_color}]#{@teamd_name} #{@teamd_state} #{@teamd_task},#{pane_index}}'",
    "remain-on-exit off",
    "automatic-rename off",
    "allow-rename off",
    "synchronize-panes off",
    "@teamd_window 1",
];

const TAG_COMMANDS: [&str; 6] =
    ["@teamd_spawn", "@teamd_pane_pid", "@teamd_name", "@teamd_color", "@teamd_state", "@teamd_task"];

/// Adds a pane to a window. If there is no space, applies the tiled layout first.
fn split_window(connection: &mut TmuxConnection, window: &str, shim: &str) -> String {
    let command = format!("split-window -t {window} {shim}");
    connection.run_command(&command).unwrap_or_else(|_| {
        connection.run_commands(&[format!("select-layout -t {window} tiled"), command]).remove(1)
    })
}
