//! Tests real agent programs as members of a team. Each program gets a first prompt, a message
//! while idle, a message while busy, and a shutdown request.
//!
//! Opt-in: `make test-agents` installs the programs and sets `TEAMD_TEST_AGENTS` to their
//! directory. It runs this test in a network namespace that has only the loopback device. The model
//! is a script, `tests/compat/scripted_model.js`. The script carries out the last message that it
//! gets, so the messages of the test decide what an agent does.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot continue must stop; the table is the result"
)]

mod codex_config;
mod programs;
mod scenario;

use programs::{AgentProgram, PROGRAMS, programs_with_usage};
use scenario::{ProgramScenario, STEPS};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// The profiles that `teamctl ask` accepts: their delivery is `turn`, or they stand for a profile
/// with this delivery.
const ASKED_PROFILES: [&str; 4] = ["aider", "opencode", "codex", "gemini"];

/// The directory with the agent programs. `None` if `TEAMD_TEST_AGENTS` is not set.
fn install_directory() -> Option<PathBuf> {
    let directory = std::env::var_os("TEAMD_TEST_AGENTS").map(PathBuf::from);
    if directory.is_none() {
        println!("skipped: the agent programs are not installed; make test-agents installs them");
    }
    directory
}

/// The programs under test. `TEAMD_TEST_ONLY` can select profiles, separated by commas.
fn selected_programs() -> impl Iterator<Item = &'static AgentProgram> {
    let only = std::env::var("TEAMD_TEST_ONLY").unwrap_or_default();
    let only: Vec<String> = only.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    PROGRAMS.iter().filter(move |program| only.is_empty() || only.iter().any(|name| name == program.profile))
}

#[test]
fn programs_take_prompt_messages_and_shutdown() {
    let Some(directory) = install_directory() else { return };
    let rows: Vec<(&AgentProgram, usize)> = selected_programs()
        .map(|program| {
            let mut done = 0;
            // The panic hook prints the failure. The loop continues with the next program.
            catch_unwind(AssertUnwindSafe(|| ProgramScenario::new(program, &directory).run(&mut done))).ok();
            (program, done)
        })
        .collect();
    println!("{:14} {}", "", STEPS.join("  "));
    for (program, done) in &rows {
        let cells = STEPS.iter().enumerate().map(|(index, step)| {
            let cell = if index < *done { "ok" } else { "-" };
            format!("{cell:width$}", width = step.len())
        });
        println!("{:14} {}", program.profile, cells.collect::<Vec<_>>().join("  "));
    }
    assert!(rows.iter().all(|(_, done)| *done == STEPS.len()), "at least one program failed a step");
}

#[test]
fn programs_leave_plan_mode_by_approval() {
    let Some(directory) = install_directory() else { return };
    // Copilot is excluded. Its hook does not report the agent's last message, and Copilot writes
    // its transcript too late.
    let failed = selected_programs().filter(|program| program.profile != "copilot").filter(|program| {
        let done =
            catch_unwind(AssertUnwindSafe(|| ProgramScenario::new(program, &directory).run_plan_mode()))
                .is_ok();
        println!("{:14} {}", program.profile, if done { "plans" } else { "-" });
        !done
    });
    assert_eq!(failed.map(|program| program.profile).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn idle_programs_are_woken() {
    let Some(directory) = install_directory() else { return };
    for program in selected_programs().filter(|program| ["codex", "gemini"].contains(&program.profile)) {
        let mut times = ProgramScenario::new(program, &directory).measure_wakes(20);
        times.sort_by(f64::total_cmp);
        let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
        println!(
            "{}: send to request, {} wakes: median {median:.0} ms, worst {worst:.0} ms",
            program.profile,
            times.len()
        );
    }
}

#[test]
fn questions_are_answered_without_a_team() {
    let Some(directory) = install_directory() else { return };
    let asked = selected_programs().filter(|program| ASKED_PROFILES.contains(&program.profile));
    let failed = asked.filter(|program| {
        catch_unwind(AssertUnwindSafe(|| ProgramScenario::new(program, &directory).run_ask())).is_err()
    });
    assert_eq!(failed.map(|program| program.profile).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn reported_usage_matches_the_model() {
    let Some(directory) = install_directory() else { return };
    let failed = programs_with_usage().into_iter().filter(|program| {
        catch_unwind(AssertUnwindSafe(|| ProgramScenario::new(program, &directory).run_usage_check()))
            .is_err()
    });
    assert_eq!(failed.map(|program| program.profile).collect::<Vec<_>>(), [""; 0]);
}
