//! What a call of the command line takes as a process, beside the least that a process takes.

use crate::{env_with_team, median, print_row, time_call};
use harness::TestEnv;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 200;

/// In turn; beside a daemon, which looks at what came while the process ends, and without one. What `send` does at the files
/// is measured by itself, by the benches of the store.
pub(crate) fn measure_cli_startup() {
    let env = env_with_team();
    let [_, _, beside] = medians(&env);
    env.teamctl(["down"]).expect_success();
    let [nothing, hello, send] = medians(&env);
    print_row(
        "whole process, median of 200: `true`; a Rust hello with clap; `teamctl send`; the same beside teamd",
        &format!(
            "{nothing:.2?}; {hello:.2?}; {send:.2?}, {:.2} × the hello; {beside:.2?}",
            send.as_secs_f64() / hello.as_secs_f64()
        ),
        "1.5 × the hello and what it does at the files",
    );
    env.shut_down();
}

fn medians(env: &TestEnv) -> [Duration; 3] {
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

fn program_command(env: &TestEnv, program: &str, words: &[&str]) -> Command {
    let mut command = env.command(harness::programs().join(program));
    command.args(words);
    command
}
