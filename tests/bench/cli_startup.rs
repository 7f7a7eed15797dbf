//! Measures how long `teamctl send` and `teamctl ask` take as whole processes, compared with minimal
//! programs.

use crate::{env_with_team, median, print_row, time_call};
use harness::TestEnv;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 200;

/// Measures `teamctl send` with a daemon and without one. With a daemon, the time includes the work
/// of the daemon on the new message while the process ends. The benchmarks of the store measure the
/// file work of `send` separately.
pub(crate) fn measure_cli_startup() {
    let env = env_with_team();
    let [_, _, send_with_daemon] = measure_medians(&env);
    env.teamctl(["down"]).expect_success();
    let [empty, hello, send] = measure_medians(&env);
    print_row(
        "whole process, median of 200: `true`; a Rust hello with clap; `teamctl send`; the same beside teamd",
        &format!(
            "{empty:.2?}; {hello:.2?}; {send:.2?}, {:.2} × hello; {send_with_daemon:.2?}",
            send.as_secs_f64() / hello.as_secs_f64()
        ),
        "1.5 × hello plus the file work",
    );
    env.shut_down();
}

/// Measures what `teamctl ask` adds to the program that it asks: itself, its shim, and the record on the
/// disk.
pub(crate) fn measure_ask() {
    let env = TestEnv::new();
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..ROUNDS {
        let commands = [env.command("true"), program_command(&env, "teamctl", &["ask", "--", "true"])];
        for (mut command, times) in commands.into_iter().zip(&mut times) {
            command.stdin(Stdio::null()).stdout(Stdio::null());
            times.push(time_call(|| assert!(command.status().unwrap().success())));
        }
    }
    let [empty, ask] = times.map(median);
    print_row(
        "whole process, median of 200: `true`; `teamctl ask -- true`",
        &format!("{empty:.2?}; {ask:.2?}"),
        "10 ms more than `true`",
    );
    env.shut_down();
}

/// Medians of `true`, minimal-cli and `teamctl send`. The programs alternate, so that changes in
/// the machine's speed affect all of them.
fn measure_medians(env: &TestEnv) -> [Duration; 3] {
    let mut times: [Vec<Duration>; 3] = Default::default();
    for n in 0..ROUNDS {
        let send = program_command(env, "teamctl", &["send", "team-lead", &format!("message {n}")]);
        let commands = [env.command("true"), program_command(env, "minimal-cli", &["you", "--twice"]), send];
        for (mut command, times) in commands.into_iter().zip(&mut times) {
            command.stdin(Stdio::null()).stdout(Stdio::null());
            times.push(time_call(|| assert!(command.status().unwrap().success())));
        }
    }
    times.map(median)
}

fn program_command(env: &TestEnv, program: &str, args: &[&str]) -> Command {
    let mut command = env.command(harness::programs().join(program));
    command.args(args);
    command
}
