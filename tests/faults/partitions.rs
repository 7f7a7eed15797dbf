//! A team works on two hosts while faults kill the line between them and the programs at both ends.
//! The command of each task runs once, and both hosts have the same tasks. Each message is once in
//! the inbox of its recipient, in the order of its sender. Each event of the other host is once in the
//! home's event log.
//!
//! `ROUNDS=n` sets the number of faults (8 by default), `SEED=n` chooses their moments. A team meets
//! at most 50 of them, then the next team begins.

mod events;
mod fault;
mod messages;
mod tasks;

use fault::Fault;
use harness::foreign_writer::{ForeignWriter, WriterKind, WriterReport};
use harness::{TaggedProcesses, TwoHosts, number_from_env, record_result};
use messages::{FOREIGN, NumberedMessage, Senders};
use std::time::Duration;

/// The members at the home. [`ANNEX_MEMBERS`] are the members at the other host.
const HOME_MEMBERS: [&str; 2] = ["bob", "kit"];
const ANNEX_MEMBERS: [&str; 2] = ["ann", "amy"];

/// The longest pause between two messages of the foreign writer.
const FOREIGN_PAUSE: Duration = Duration::from_millis(100);

/// The most faults in the life of one team.
const ROUNDS_OF_TEAM: u64 = 50;

/// Whether a foreign program also writes an inbox at the other host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ForeignMessages {
    None,
    ToAnn,
}

#[test]
fn tasks_run_once_and_messages_arrive_once_over_a_line_that_breaks() {
    let rounds = number_from_env("ROUNDS", 8);
    let Some(messages) = run_teams(rounds, ForeignMessages::None) else { return };
    record_result("partitions", rounds);
    record_result("partition-messages", messages);
}

#[test]
fn messages_of_a_foreign_writer_on_the_other_host_arrive_once() {
    let rounds = number_from_env("ROUNDS", 8).div_ceil(2);
    // Without node, the harness has recorded that the writer was skipped.
    let Some(messages) = run_teams(rounds, ForeignMessages::ToAnn) else { return };
    record_result("partition-foreign-messages", messages);
}

/// Runs teams under `rounds` faults in all. Returns the number of messages that have arrived. `None`
/// if the foreign writer can't run.
fn run_teams(rounds: u64, foreign: ForeignMessages) -> Option<u64> {
    let mut rng = fastrand::Rng::with_seed(number_from_env("SEED", 1));
    let rounds_of_team = |first: u64| ROUNDS_OF_TEAM.min(rounds - first);
    (0..rounds)
        .step_by(ROUNDS_OF_TEAM as usize)
        .map(|first| run_team(rounds_of_team(first), &mut rng, foreign))
        .sum()
}

/// Runs one team. The result is that of [`run_teams`].
fn run_team(rounds: u64, rng: &mut fastrand::Rng, foreign: ForeignMessages) -> Option<u64> {
    let hosts = TwoHosts::new();
    for (names, host) in [(HOME_MEMBERS, &[][..]), (ANNEX_MEMBERS, &["--host", "devbox"])] {
        for name in names {
            let spawn = [&["spawn", name, "--profile", "worker"], host].concat();
            hosts.home.teamctl_with(&spawn, &[]).expect_success();
        }
    }
    let writer = match foreign {
        ForeignMessages::None => None,
        ForeignMessages::ToAnn => match start_writer(&hosts) {
            Some(writer) => Some(writer),
            None => {
                end(hosts);
                return None;
            }
        },
    };
    let mut tasks = tasks::Tasks::default();
    let sent = std::thread::scope(|scope| {
        let senders = Senders::start(scope, &hosts);
        for round in 0..rounds {
            tasks.create(&hosts, rng);
            senders.send_some();
            Fault::of_round(round).inject(&hosts, rng, &senders);
        }
        senders.finish()
    });
    let report = writer.map(ForeignWriter::finish).unwrap_or_default();
    hosts.heal();
    hosts.check(|| tasks.check(&hosts));
    let sent = [sent, foreign_messages(&report)].concat();
    hosts.check(|| messages::check(&hosts, &sent));
    hosts.check(|| events::check(&hosts));
    end(hosts);
    Some(sent.len() as u64)
}

fn start_writer(hosts: &TwoHosts) -> Option<ForeignWriter> {
    let inbox = hosts.annex.root().join("teams/survey/inboxes/ann.json");
    let kind = WriterKind::RenameUnderLock;
    ForeignWriter::start_with_pause(&hosts.annex, kind, &inbox, FOREIGN, None, Some(FOREIGN_PAUSE))
}

fn foreign_messages(report: &WriterReport) -> Vec<NumberedMessage> {
    report.stored.iter().map(|text| (FOREIGN, "ann", text.clone())).collect()
}

/// Deletes the team. Afterwards, the other host must have no program and no file of the team.
fn end(hosts: TwoHosts) {
    let TwoHosts { home, annex } = hosts;
    home.teamctl(["shutdown", "--all"]).expect_success();
    home.teamctl(["delete", "survey"]).expect_success();
    for directory in ["root/teams/survey", "root/tasks/survey"] {
        annex.wait_until("the mirror is deleted", || (!annex.path(directory).exists()).then_some(()));
    }
    for env in [&home, &annex] {
        let processes = TaggedProcesses::with_tag(&env.process_tag()).list();
        assert_eq!(processes.iter().find(|line| line.contains("teamd-shim")), None);
    }
    home.shut_down_after_kills();
    annex.shut_down_after_kills();
}
