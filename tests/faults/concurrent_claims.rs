//! Sixteen make tasks at once, and sixteen take each of them at once, by every door and beside foreign programs that lock
//! as theirs do: each task has one id and one owner, whoever is killed meanwhile.
//!
//! In rounds, each with a team of its own. `CLAIMS=n` says for how many tasks; `SEED=n` chooses who is killed when.

mod claimers;
mod creators;

use claimers::{ClaimResult, Claimer};
use harness::foreign_writer::{ForeignWriter, WriterKind, WriterReport};
use harness::history::{History, HistoryEvent, HistoryEventKind, monotonic_ns};
use harness::{TestEnv, checker, iterations, record_result};
use protocol::color::Color;
use protocol::name::{AgentName, TeamName};
use protocol::team_config::{Member, TeammateEntry};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use store::{Durability, Root, Team};

const CONCURRENCY: usize = 16;
/// So many tasks each makes in a round.
const TASKS_PER_ROUND: u64 = 50;
/// So many of them all try to take.
const CLAIMED_TASKS: usize = 50;
/// One that has not answered by then hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// One round: a team of its own.
struct ClaimRound<'h> {
    env: &'h TestEnv,
    number: u64,
    team: TeamName,
}

/// Who writes in place has cut the file, and the disk takes its time to free what was cut: seconds, where its journal is
/// full of others' changes. To be told of that is to have lost without a winner's name.
fn is_half_written(why: &str) -> bool {
    why.contains("it is empty")
}

impl ClaimRound<'_> {
    fn rng(&self, who: usize) -> fastrand::Rng {
        fastrand::Rng::with_seed((iterations("SEED", 1) * 1_000_000 + self.number) * 1_000 + who as u64)
    }

    /// A handle of one's own, as another process has one.
    fn open(&self) -> Team {
        let root = self.env.root();
        let root = Root::open(&root, &self.env.path("state/library"), Durability::Process).unwrap();
        root.team(&self.team).unwrap()
    }

    fn tasks(&self) -> PathBuf {
        self.env.root().join(format!("tasks/{}", self.team))
    }

    fn task(&self, id: u64) -> Value {
        let text = std::fs::read_to_string(self.tasks().join(format!("{id}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Members that some other program has added, so that nobody need run for them.
    fn create_team(&self) {
        self.env.teamctl(["create", self.team.as_str()]).expect_success();
        let team = self.open();
        for which in 0..CONCURRENCY {
            team.add_member(&Member::teammate(&self.team, teammate_entry(&claimers::name(which)))).unwrap();
        }
    }

    /// All make tasks, and a foreign program too that takes but one of the two locks; what each says it made.
    fn create_all(&self) -> Vec<(u64, String)> {
        let foreign = ForeignWriter::start(
            self.env,
            WriterKind::TasksWithFlock,
            &self.tasks(),
            "f",
            Some(TASKS_PER_ROUND / 2),
        );
        let mut made: Vec<_> = std::thread::scope(|scope| {
            let making = |which| scope.spawn(move || creators::run_creator(self, which));
            let makers: Vec<_> = (0..CONCURRENCY).map(making).collect();
            makers.into_iter().flat_map(|maker| maker.join().unwrap()).collect()
        });
        let theirs = foreign.map(ForeignWriter::finish).unwrap_or_default();
        made.extend(foreign_tasks(&theirs));
        made
    }

    /// Every id is one task's, none was left out, and each task is what its maker made.
    fn check_created(&self, made: &[(u64, String)]) {
        let names = std::fs::read_dir(self.tasks()).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.filter_map(|name| name.into_string().ok()?.strip_suffix(".json")?.parse().ok());
        let there: BTreeSet<u64> = names.collect();
        assert_eq!(there, (1..=there.len() as u64).collect(), "ids have no gap");
        let told: BTreeSet<u64> = made.iter().map(|(id, _)| *id).collect();
        assert_eq!(told.len(), made.len(), "an id was given to two");
        for (id, subject) in made {
            assert_eq!(self.task(*id)["subject"], subject.as_str(), "task {id}");
        }
    }

    /// All try to take one task after the other, each at the same moment.
    fn claim_all(&self, ids: &[u64]) -> History {
        let (answer, answers) = channel();
        std::thread::scope(|scope| {
            let start = |which| {
                let (word, words) = channel::<u64>();
                let answer: Sender<(usize, ClaimResult)> = answer.clone();
                scope.spawn(move || {
                    let mut claimant = Claimer::new(self, which);
                    for id in words {
                        answer.send((which, claimant.claim(self, id))).unwrap();
                    }
                    claimant.close();
                });
                word
            };
            let all: Vec<Sender<u64>> = (0..CONCURRENCY).map(start).collect();
            let mut deeds = Vec::new();
            for id in ids {
                all.iter().for_each(|word| word.send(*id).unwrap());
                let became: Vec<_> = all.iter().map(|_| answers.recv_timeout(TIMEOUT).unwrap()).collect();
                deeds.extend(self.check_claimed(*id, &became));
            }
            History { events: deeds, ..History::default() }
        })
    }

    /// The file names the winner, or one that was killed before it could say that it won; and so do all who lost.
    fn check_claimed(&self, id: u64, became: &[(usize, ClaimResult)]) -> Vec<HistoryEvent> {
        let owner = self.task(id)["owner"].as_str().unwrap_or("nobody").to_owned();
        let mut winners = Vec::new();
        for (which, became) in became {
            let name = claimers::name(*which);
            match became {
                ClaimResult::Won => winners.push(name),
                ClaimResult::Lost(why) => {
                    assert!(
                        (why.contains(&owner) || is_half_written(why)) && owner != name,
                        "task {id} is {owner}'s, {name} is told: {why}"
                    );
                }
                ClaimResult::LostUnexplained => assert!(owner != name, "task {id} is {name}'s, which lost"),
                ClaimResult::Killed => {}
            }
        }
        let killed = became.iter().filter(|(_, became)| *became == ClaimResult::Killed);
        let is_killed = killed.map(|(which, _)| claimers::name(*which)).any(|name| name == owner);
        assert!(winners.iter().all(|name| *name == owner), "task {id} is {owner}'s, and {winners:?} won");
        assert!(!winners.is_empty() || is_killed, "task {id} is {owner}'s, and nobody won: {became:?}");
        let deed = |by| HistoryEvent {
            at: monotonic_ns(),
            kind: HistoryEventKind::Claimed { task: id, round: self.number, by },
        };
        winners.into_iter().map(deed).collect()
    }

    /// How many tasks were made, and for how many all claimed.
    fn run(&self) -> (u64, u64) {
        self.create_team();
        let made = self.create_all();
        self.check_created(&made);
        let free = made.iter().filter(|(_, subject)| !subject.starts_with("f:")).map(|(id, _)| *id);
        let ids: Vec<u64> = free.take(CLAIMED_TASKS).collect();
        let history = self.claim_all(&ids);
        assert_eq!(checker::check(&history), [], "in round {}", self.number);
        self.env.teamctl(["delete", self.team.as_str(), "--force"]).expect_success();
        (made.len() as u64, ids.len() as u64)
    }
}

/// `ID SUBJECT OWNER` of each.
fn foreign_tasks(theirs: &WriterReport) -> Vec<(u64, String)> {
    let task = |said: &String| {
        let (id, rest) = said.split_once(' ')?;
        Some((id.parse().ok()?, rest.split(' ').next()?.to_owned()))
    };
    theirs.stored.iter().map(|said| task(said).unwrap()).collect()
}

fn teammate_entry(name: &str) -> TeammateEntry {
    TeammateEntry {
        name: AgentName::new_unchecked(name),
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
    let (wanted, mut made, mut claimed) = (iterations("CLAIMS", 200), 0, 0);
    for number in 0.. {
        if claimed >= wanted {
            break;
        }
        let round = ClaimRound { env: &env, number, team: TeamName::parse(&format!("c{number}")).unwrap() };
        let (more, taken) = env.with_timeout(TIMEOUT * 4, || round.run());
        (made, claimed) = (made + more, claimed + taken);
    }
    env.shut_down();
    record_result("tasks-made", made);
    record_result("claims", claimed);
}
