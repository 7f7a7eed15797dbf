//! Tests that each task has a unique id and one owner. Sixteen creators create tasks at the same
//! time, and then sixteen claimers claim each task at the same time. They use the command line, the
//! MCP server and the `store` crate. Foreign programs with their own locks create and claim tasks
//! too, and MCP servers are killed meanwhile.
//!
//! The test runs in rounds, each with its own team. `CLAIMS=n` sets the number of claimed tasks;
//! `SEED=n` chooses the kills.

mod claimers;
mod creators;

use claimers::{ClaimResult, Claimer};
use harness::foreign_writer::{ForeignWriter, WriterKind, WriterReport};
use harness::history::{History, HistoryEvent, HistoryEventKind, monotonic_ns};
use harness::{TestEnv, checker, number_from_env, record_result};
use protocol::member_color::Color;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::{Member, TeammateEntry};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use store::{Durability, Root, Team};

/// Number of creators and of claimers.
const CONCURRENCY: usize = 16;
/// Number of tasks that each creator creates in a round.
const TASKS_PER_CREATOR: u64 = 50;
/// Number of tasks that are claimed in a round.
const CLAIMED_TASKS: usize = 50;
/// How long a claim may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// One round, with its own team.
struct ClaimRound<'h> {
    env: &'h TestEnv,
    number: u64,
    team: TeamName,
}

/// Whether a claim failed because the task's file was empty. A foreign program truncates the file
/// before it writes it, and on a busy disk the file can stay empty for seconds. Such an error does
/// not name the owner.
fn is_half_written(error: &str) -> bool {
    error.contains("it is empty")
}

impl ClaimRound<'_> {
    /// A random generator with a seed for this round and the given thread.
    fn rng(&self, thread: usize) -> fastrand::Rng {
        let round_seed = number_from_env("SEED", 1) * 1_000_000 + self.number;
        fastrand::Rng::with_seed(round_seed * 1_000 + thread as u64)
    }

    /// Opens a new handle of the team, as another process would.
    fn open_team(&self) -> Team {
        let root = self.env.root();
        let root = Root::open(&root, &self.env.path("state/library"), Durability::Process).unwrap();
        root.team(&self.team).unwrap()
    }

    fn tasks_dir(&self) -> PathBuf {
        self.env.root().join(format!("tasks/{}", self.team))
    }

    fn read_task(&self, id: u64) -> Value {
        let text = std::fs::read_to_string(self.tasks_dir().join(format!("{id}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Creates the team. The members are added to config.json directly, so they need no agents.
    fn create_team(&self) {
        self.env.teamctl(["create", self.team.as_str()]).expect_success();
        let team = self.open_team();
        for index in 0..CONCURRENCY {
            let entry = teammate_entry(&claimers::claimer_name(index));
            team.add_member(&Member::teammate(&self.team, entry)).unwrap();
        }
    }

    /// Runs all creators and a foreign program that takes only the flock. Returns the id and
    /// subject of each task that they created.
    fn create_all(&self) -> Vec<(u64, String)> {
        let foreign = ForeignWriter::start(
            self.env,
            WriterKind::TasksWithFlock,
            &self.tasks_dir(),
            "f",
            Some(TASKS_PER_CREATOR / 2),
        );
        let mut tasks: Vec<_> = std::thread::scope(|scope| {
            let start = |index| scope.spawn(move || creators::run_creator(self, index));
            let creators: Vec<_> = (0..CONCURRENCY).map(start).collect();
            creators.into_iter().flat_map(|creator| creator.join().unwrap()).collect()
        });
        let report = foreign.map(ForeignWriter::finish).unwrap_or_default();
        tasks.extend(foreign_tasks(&report));
        tasks
    }

    /// Checks that the ids of the task files have no gap, that no id was given to two tasks, and
    /// that each task has the subject that its creator set.
    fn check_created(&self, tasks: &[(u64, String)]) {
        let names = std::fs::read_dir(self.tasks_dir()).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.filter_map(|name| name.into_string().ok()?.strip_suffix(".json")?.parse().ok());
        let stored_ids: BTreeSet<u64> = names.collect();
        assert_eq!(stored_ids, (1..=stored_ids.len() as u64).collect(), "ids have no gap");
        let created_ids: BTreeSet<u64> = tasks.iter().map(|(id, _)| *id).collect();
        assert_eq!(created_ids.len(), tasks.len(), "an id was given to two tasks");
        for (id, subject) in tasks {
            assert_eq!(self.read_task(*id)["subject"], subject.as_str(), "task {id}");
        }
    }

    /// Lets all claimers claim one task after the other, each task at the same time.
    fn claim_all(&self, ids: &[u64]) -> History {
        let (result_sender, result_receiver) = channel();
        std::thread::scope(|scope| {
            let start = |index| {
                let (id_sender, id_receiver) = channel::<u64>();
                let result_sender: Sender<(usize, ClaimResult)> = result_sender.clone();
                scope.spawn(move || {
                    let mut claimer = Claimer::new(self, index);
                    for id in id_receiver {
                        result_sender.send((index, claimer.claim(self, id))).unwrap();
                    }
                    claimer.close();
                });
                id_sender
            };
            let id_senders: Vec<Sender<u64>> = (0..CONCURRENCY).map(start).collect();
            let mut events = Vec::new();
            for id in ids {
                id_senders.iter().for_each(|sender| sender.send(*id).unwrap());
                let results: Vec<_> =
                    id_senders.iter().map(|_| result_receiver.recv_timeout(TIMEOUT).unwrap()).collect();
                events.extend(self.check_claimed(*id, &results));
            }
            History { events, ..History::default() }
        })
    }

    /// Checks that the task's owner has won, or was killed before it could report this, and that
    /// the errors of the losers name the owner. Returns an event for each winner.
    fn check_claimed(&self, id: u64, results: &[(usize, ClaimResult)]) -> Vec<HistoryEvent> {
        let owner = self.read_task(id)["owner"].as_str().unwrap_or("nobody").to_owned();
        let mut winners = Vec::new();
        for (index, result) in results {
            let name = claimers::claimer_name(*index);
            match result {
                ClaimResult::Won => winners.push(name),
                ClaimResult::Lost(error) => {
                    assert!(
                        (error.contains(&owner) || is_half_written(error)) && owner != name,
                        "{owner} owns task {id}, and {name} got the error: {error}"
                    );
                }
                ClaimResult::LostUnexplained => assert!(owner != name, "{name} owns task {id} and has lost"),
                ClaimResult::Killed => {}
            }
        }
        let killed = results.iter().filter(|(_, result)| *result == ClaimResult::Killed);
        let is_owner_killed =
            killed.map(|(index, _)| claimers::claimer_name(*index)).any(|name| name == owner);
        assert!(
            winners.iter().all(|name| *name == owner),
            "{owner} owns task {id}, and {winners:?} have won"
        );
        assert!(
            !winners.is_empty() || is_owner_killed,
            "{owner} owns task {id}, and no claimer has won: {results:?}"
        );
        let claim_event = |by| HistoryEvent {
            at: monotonic_ns(),
            kind: HistoryEventKind::Claimed { task: id, round: self.number, by },
        };
        winners.into_iter().map(claim_event).collect()
    }

    /// Runs the round. Returns how many tasks were created and how many of them were claimed.
    fn run(&self) -> (u64, u64) {
        self.create_team();
        let tasks = self.create_all();
        self.check_created(&tasks);
        let unowned = tasks.iter().filter(|(_, subject)| !subject.starts_with("f:")).map(|(id, _)| *id);
        let ids: Vec<u64> = unowned.take(CLAIMED_TASKS).collect();
        let history = self.claim_all(&ids);
        assert_eq!(checker::check(&history), [], "in round {}", self.number);
        self.env.teamctl(["delete", self.team.as_str(), "--force"]).expect_success();
        (tasks.len() as u64, ids.len() as u64)
    }
}

/// Parses the lines `ID SUBJECT OWNER` of a report.
fn foreign_tasks(report: &WriterReport) -> Vec<(u64, String)> {
    let parse_task = |line: &String| {
        let (id, rest) = line.split_once(' ')?;
        Some((id.parse().ok()?, rest.split(' ').next()?.to_owned()))
    };
    report.stored.iter().map(|line| parse_task(line).unwrap()).collect()
}

fn teammate_entry(name: &str) -> TeammateEntry {
    TeammateEntry {
        name: MemberName::new_unchecked(name),
        agent_type: None,
        model: String::new(),
        prompt: "claim".to_owned(),
        color: Color::Blue,
        plan_mode_required: false,
        joined_at: 2,
        tmux_pane_id: String::new(),
        cwd: "/".to_owned(),
        backend_type: "in-process".to_owned(),
        worktree_path: None,
    }
}

#[test]
fn concurrent_claims_give_one_owner_and_unique_ids() {
    let env = TestEnv::with_daemon();
    let (wanted, mut created_count, mut claimed_count) = (number_from_env("CLAIMS", 100), 0, 0);
    for number in 0.. {
        if claimed_count >= wanted {
            break;
        }
        let round = ClaimRound { env: &env, number, team: TeamName::parse(&format!("c{number}")).unwrap() };
        let (created, claimed) = env.with_timeout(TIMEOUT * 4, || round.run());
        (created_count, claimed_count) = (created_count + created, claimed_count + claimed);
    }
    env.shut_down();
    record_result("tasks-made", created_count);
    record_result("claims", claimed_count);
}
