//! Tests of the turn loop on real files. The executor runs no programs: a script changes the files
//! as a program would.

mod damaged_files;
mod messages;
mod plans;
mod sessions;
mod shutdown_requests;
mod tasks;

use super::team_files::TeamFiles;
use super::turn_command_builder::TurnBuilder;
use super::turn_executor::{ExecutorEvent, StartError, TurnEndKind, TurnExecutor, TurnInput, TurnResult};
use super::turn_loop::{InitialState, TurnLoop, TurnLoopEnd};
use crate::turns::turn_executor::TurnCommand;
use protocol::control::TurnStatus;
use protocol::id::TaskId;
use protocol::message::Message;
use protocol::name::{AgentName, TeamName};
use protocol::payload::{IdleNotification, Payload};
use protocol::shim_turn_program::{PerTurnProgram, SessionSource, TurnProgram, Worker};
use protocol::task::{Task, TaskStatus};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Instant;
use store::now;
use store::{Durability, NewTask, Root, Team};

/// What happens during one wait: a change of the files, and the event that it returns.
type ScriptedEvent = Box<dyn FnMut(&Team) -> ExecutorEvent>;

/// Returns scripted events one after the other, and then `Terminate`.
struct FakeExecutor {
    team: Team,
    scenes: VecDeque<ScriptedEvent>,
    begun: Vec<TurnCommand>,
    told: Vec<TurnStatus>,
    said: Vec<String>,
    interrupted: usize,
    missing: bool,
    /// The output of every turn.
    words: String,
}

impl TurnExecutor for FakeExecutor {
    fn start_turn(&mut self, work: &TurnInput) -> Result<u32, StartError> {
        if self.missing {
            return Err(StartError::Permanent("cannot start p: no such program".to_owned()));
        }
        self.begun.push(match work {
            TurnInput::Command(process) => process.clone(),
            TurnInput::Text(text) => TurnCommand { stdin: Some(text.clone()), ..TurnCommand::default() },
        });
        Ok(77)
    }

    fn next_event(&mut self, _: Option<Instant>) -> ExecutorEvent {
        self.scenes.pop_front().map_or(ExecutorEvent::Terminate, |mut scene| scene(&self.team))
    }

    fn captured_output(&mut self) -> Vec<u8> {
        self.words.clone().into_bytes()
    }

    fn report_status(&mut self, now: &TurnStatus) {
        self.told.push(now.clone());
    }

    fn confirm_interrupt(&mut self) {
        self.interrupted += 1;
    }

    fn print_line(&mut self, text: &str) {
        self.said.push(text.to_owned());
    }
}

impl FakeExecutor {
    /// The text of each turn.
    fn texts(&self) -> Vec<&str> {
        self.begun.iter().map(|process| process.stdin.as_deref().unwrap()).collect()
    }

    /// The command line of each turn.
    fn argv(&self) -> Vec<String> {
        self.begun.iter().map(|process| process.argv.join(" ")).collect()
    }
}

/// A team with a lead, ann and bob. The turn loop runs ann.
struct TestTeam {
    dir: tempfile::TempDir,
    team: Team,
}

impl TestTeam {
    fn new() -> TestTeam {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(&dir.path().join("root"), dir.path(), Durability::Process).unwrap();
        let member = |name: &str| {
            format!(
                r#"{{"agentId":"{name}@t","name":"{name}","agentType":"x","model":"","joinedAt":1,"tmuxPaneId":"","cwd":"/","subscriptions":[]}}"#
            )
        };
        let members = ["team-lead", "ann", "bob"].map(member).join(",");
        let config = format!(
            r#"{{"name":"t","createdAt":1,"leadAgentId":"team-lead@t","leadSessionId":"x","members":[{members}]}}"#
        );
        std::fs::create_dir_all(root.path().join("teams/t/inboxes")).unwrap();
        put(&root.path().join("teams/t/config.json"), &config);
        let team = root.team(&TeamName::parse("t").unwrap()).unwrap();
        TestTeam { dir, team }
    }

    fn write(&self, from: &str, text: &str) {
        send(&self.team, from, "ann", text);
    }

    fn task(&self, subject: &str) -> Task {
        self.team.tasks().create(NewTask::new(subject, &AgentName::lead())).unwrap()
    }

    fn unread(&self) -> usize {
        unread(&self.team)
    }

    /// The messages to the lead, in order.
    fn lead(&self) -> Vec<Payload> {
        let entries = self.team.inbox(&AgentName::lead()).read().unwrap();
        entries.iter().map(|entry| Payload::parse(&entry.message.as_ref().unwrap().text).unwrap()).collect()
    }

    fn idles(&self) -> Vec<IdleNotification> {
        let idle = |payload| match payload {
            Payload::IdleNotification(idle) => Some(idle),
            _ => None,
        };
        self.lead().into_iter().filter_map(idle).collect()
    }

    fn run(
        &self,
        program: TurnProgram,
        beginning: InitialState,
        scenes: Vec<ScriptedEvent>,
    ) -> (FakeExecutor, TurnLoopEnd) {
        self.run_on(self.stage(scenes), program, beginning)
    }

    fn stage(&self, scenes: Vec<ScriptedEvent>) -> FakeExecutor {
        FakeExecutor {
            team: self.team.clone(),
            scenes: scenes.into(),
            begun: Vec::new(),
            told: Vec::new(),
            said: Vec::new(),
            interrupted: 0,
            missing: false,
            words: "the plan".to_owned(),
        }
    }

    fn run_on(
        &self,
        stage: FakeExecutor,
        program: TurnProgram,
        beginning: InitialState,
    ) -> (FakeExecutor, TurnLoopEnd) {
        self.run_again_on(stage, program, beginning, None)
    }

    fn run_again_on(
        &self,
        stage: FakeExecutor,
        program: TurnProgram,
        beginning: InitialState,
        session: Option<&str>,
    ) -> (FakeExecutor, TurnLoopEnd) {
        let session = session.map(str::to_owned);
        let program = TurnBuilder::new(program, session, self.dir.path().join("state"), "ann@t");
        let post = TeamFiles::new(self.team.clone(), name("ann"), Some("blue".to_owned()));
        TurnLoop::new(stage, post, program).run(beginning)
    }
}

fn put(path: &std::path::Path, text: &str) {
    File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

fn send(team: &Team, from: &str, to: &str, text: &str) {
    team.inbox(&name(to))
        .append(&Message::new(&AgentName::new_unchecked(from), text.to_owned(), now()))
        .unwrap();
}

fn unread(team: &Team) -> usize {
    let entries = team.inbox(&name("ann")).read().unwrap();
    entries.iter().filter(|entry| entry.unread().is_some()).count()
}

fn agent() -> TurnProgram {
    TurnProgram::PerTurn(PerTurnProgram {
        first_argv: vec!["p".into()],
        later_argv: vec![],
        session: SessionSource::NoSession,
        ..PerTurnProgram::default()
    })
}

fn worker(run: &str) -> TurnProgram {
    TurnProgram::Worker(Worker { run: Some(run.to_owned()), ..Worker::default() })
}

fn nothing() -> InitialState {
    InitialState::default()
}

fn prompt(text: &str) -> InitialState {
    InitialState { prompt: text.to_owned(), ..InitialState::default() }
}

/// The initial state of a respawn.
fn again() -> InitialState {
    InitialState { is_respawn: true, ..InitialState::default() }
}

fn ends(code: i32) -> ScriptedEvent {
    after(move |_| {}, code)
}

/// A turn that does `act` and then ends with an exit code.
fn after(mut act: impl FnMut(&Team) + 'static, code: i32) -> ScriptedEvent {
    Box::new(move |team| {
        act(team);
        let how = TurnEndKind::Exited(ExitStatus::from_raw(code << 8));
        ExecutorEvent::TurnEnded(TurnResult {
            end: how,
            last_lines: "its last words".to_owned(),
            usage: None,
        })
    })
}

fn wake(mut act: impl FnMut(&Team) + 'static) -> ScriptedEvent {
    Box::new(move |team| {
        act(team);
        ExecutorEvent::Wake
    })
}
