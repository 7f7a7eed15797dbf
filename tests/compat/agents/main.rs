//! Real agent programs, each through a team: a first prompt, a message while idle, one while busy, a shutdown.
//!
//! Opt-in: `make test-agents` installs the programs, names their place in `TEAMD_TEST_AGENTS`, and runs this where
//! nothing but loopback can be reached. The model that they talk to is a script (tests/compat/scripted_model.js): it does what the
//! last message to it says. So the test's own messages say what an agent does.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on must stop, and shows a table"
)]

mod codex_config;
mod programs;
mod scenario;

use programs::{AgentProgram, PROGRAMS, programs_with_usage};
use scenario::{ProgramScenario, STEPS};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// The profiles with delivery `turn`, or with a variant of it.
const ASKED_PROFILES: [&str; 4] = ["aider", "opencode", "codex", "gemini"];

/// Where the programs are, if somebody wants this.
fn install_directory() -> Option<PathBuf> {
    let place = std::env::var_os("TEAMD_TEST_AGENTS").map(PathBuf::from);
    if place.is_none() {
        println!("skipped: it needs the programs; make test-agents brings them");
    }
    place
}

/// Those that `TEAMD_TEST_ONLY` names, else all.
fn selected_programs() -> impl Iterator<Item = &'static AgentProgram> {
    let only = std::env::var("TEAMD_TEST_ONLY").unwrap_or_default();
    let only: Vec<String> = only.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    PROGRAMS.iter().filter(move |program| only.is_empty() || only.iter().any(|name| name == program.profile))
}

#[test]
fn programs_take_prompt_messages_and_shutdown() {
    let Some(place) = install_directory() else { return };
    let rows: Vec<(&AgentProgram, usize)> = selected_programs()
        .map(|program| {
            let mut done = 0;
            // What it panicked with is printed already; the others have their turn all the same.
            catch_unwind(AssertUnwindSafe(|| ProgramScenario::new(program, &place).run(&mut done))).ok();
            (program, done)
        })
        .collect();
    println!("{:14} {}", "", STEPS.join("  "));
    for (program, done) in &rows {
        let cells = STEPS.iter().enumerate().map(|(index, step)| {
            let word = if index < *done { "ok" } else { "-" };
            format!("{word:width$}", width = step.len())
        });
        println!("{:14} {}", program.profile, cells.collect::<Vec<_>>().join("  "));
    }
    assert!(rows.iter().all(|(_, done)| *done == STEPS.len()), "not every step of every program");
}

#[test]
fn programs_leave_plan_mode_by_approval() {
    let Some(place) = install_directory() else { return };
    // Copilot's hook does not tell what it said, and its transcript is written down only later.
    let failed = selected_programs().filter(|program| program.profile != "copilot").filter(|program| {
        let done =
            catch_unwind(AssertUnwindSafe(|| ProgramScenario::new(program, &place).run_plan_mode())).is_ok();
        println!("{:14} {}", program.profile, if done { "plans" } else { "-" });
        !done
    });
    assert_eq!(failed.map(|program| program.profile).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn idle_programs_are_woken() {
    let Some(place) = install_directory() else { return };
    for program in selected_programs().filter(|program| ["codex", "gemini"].contains(&program.profile)) {
        let mut times = ProgramScenario::new(program, &place).measure_wakes(20);
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
    let Some(place) = install_directory() else { return };
    let asked = selected_programs().filter(|program| ASKED_PROFILES.contains(&program.profile));
    let failed = asked.filter(|program| {
        catch_unwind(AssertUnwindSafe(|| ProgramScenario::new(program, &place).run_ask())).is_err()
    });
    assert_eq!(failed.map(|program| program.profile).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn reported_usage_matches_the_model() {
    let Some(place) = install_directory() else { return };
    let failed = programs_with_usage().into_iter().filter(|program| {
        catch_unwind(AssertUnwindSafe(|| ProgramScenario::new(program, &place).run_usage_check())).is_err()
    });
    assert_eq!(failed.map(|program| program.profile).collect::<Vec<_>>(), [""; 0]);
}
