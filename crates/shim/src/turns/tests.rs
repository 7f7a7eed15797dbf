//! Tests of the turn loop on real files. The executor runs no programs: a script changes the files
//! as a program would.

mod damaged_inboxes;
mod exchange_pauses;
mod failed_turns;
mod message_delivery;
mod no_contact;
mod plan_mode;
mod sessions_and_respawns;
mod shutdown_requests;
mod task_outcomes;

use super::agent_team_files::AgentTeamFiles;
use super::turn_command_builder::TurnBuilder;
use super::turn_executor_trait::{
    ExecutorEvent, StartError, TurnEndKind, TurnExecutor, TurnInput, TurnResult,
};
use super::turn_loop::{InitialState, TurnLoop, TurnLoopEnd};
use crate::turns::turn_executor_trait::TurnCommand;
use protocol::control_socket::TurnStatus;
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::{IdleNotification, Payload};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::worker_or_program_that_runs_turns::{PerTurnProgram, SessionSource, TurnProgram, Worker};
use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::Instant;
use store::now;
use store::{Durability, NewTask, Root, Team};

/// The script of one wait: changes files, and returns the event for which the loop has waited.
type ScriptedEvent = Box<dyn FnMut(&Team) -> ExecutorEvent>;

/// Returns the scripted events in order, and then `Terminate`.
struct FakeExecutor {
    team: Team,
    events: VecDeque<ScriptedEvent>,
    started_turns: Vec<TurnCommand>,
    reported_statuses: Vec<TurnStatus>,
    printed_lines: Vec<String>,
    confirmed_interrupts: usize,
    /// Whether every turn fails to start because the program is missing.
    is_program_missing: bool,
    /// The texts by which a usage limit is recognized.
    limit_patterns: Vec<String>,
    /// The captured output of every turn.
    output: String,
    /// Since when the home has no contact.
    no_contact: Rc<Cell<Option<u64>>>,
}

impl TurnExecutor for FakeExecutor {
    fn start_turn(&mut self, input: &TurnInput) -> Result<u32, StartError> {
        if self.is_program_missing {
            return Err(StartError::Permanent("cannot start p: no such program".to_owned()));
        }
        self.started_turns.push(match input {
            TurnInput::Command(command) => command.clone(),
            TurnInput::Text(text) => TurnCommand { stdin: Some(text.clone()), ..TurnCommand::default() },
        });
        Ok(77)
    }

    fn next_event(&mut self, _: Option<Instant>) -> ExecutorEvent {
        self.events.pop_front().map_or(ExecutorEvent::Terminate, |mut event| event(&self.team))
    }

    fn no_contact_since(&mut self) -> Option<u64> {
        self.no_contact.get()
    }

    fn captured_output(&mut self) -> Vec<u8> {
        self.output.clone().into_bytes()
    }

    fn report_status(&mut self, status: &TurnStatus) {
        self.reported_statuses.push(status.clone());
    }

    fn confirm_interrupt(&mut self) {
        self.confirmed_interrupts += 1;
    }

    fn print_line(&mut self, text: &str) {
        self.printed_lines.push(text.to_owned());
    }
}

impl FakeExecutor {
    /// The text on standard input of each started turn.
    fn texts(&self) -> Vec<&str> {
        self.started_turns.iter().map(|command| command.stdin.as_deref().unwrap()).collect()
    }

    /// The command line of each started turn.
    fn command_lines(&self) -> Vec<String> {
        self.started_turns.iter().map(|command| command.argv.join(" ")).collect()
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
        let root =
            Root::open(&dir.path().join("root"), &dir.path().join("state"), Durability::Process).unwrap();
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
        write_file(&root.path().join("teams/t/config.json"), &config);
        let team = root.team(&TeamName::parse("t").unwrap()).unwrap();
        TestTeam { dir, team }
    }

    fn send_to_ann(&self, from: &str, text: &str) {
        send(&self.team, from, "ann", text);
    }

    fn create_task(&self, subject: &str) -> Task {
        self.team.tasks().create(NewTask::new(subject, &MemberName::lead())).unwrap()
    }

    /// The number of unread messages in ann's inbox.
    fn unread_count(&self) -> usize {
        unread_count(&self.team)
    }

    /// The messages to the lead, in order.
    fn payloads_to_lead(&self) -> Vec<Payload> {
        let entries = self.team.inbox(&MemberName::lead()).read().unwrap();
        entries.iter().map(|entry| Payload::parse(&entry.message.as_ref().unwrap().text).unwrap()).collect()
    }

    /// The idle notifications to the lead, in order.
    fn idle_notifications(&self) -> Vec<IdleNotification> {
        let idle = |payload| match payload {
            Payload::IdleNotification(idle) => Some(idle),
            _ => None,
        };
        self.payloads_to_lead().into_iter().filter_map(idle).collect()
    }

    fn run(
        &self,
        program: TurnProgram,
        initial: InitialState,
        events: Vec<ScriptedEvent>,
    ) -> (FakeExecutor, TurnLoopEnd) {
        self.run_executor(self.executor(events), program, initial)
    }

    fn executor(&self, events: Vec<ScriptedEvent>) -> FakeExecutor {
        FakeExecutor {
            team: self.team.clone(),
            events: events.into(),
            started_turns: Vec::new(),
            reported_statuses: Vec::new(),
            printed_lines: Vec::new(),
            confirmed_interrupts: 0,
            is_program_missing: false,
            limit_patterns: vec!["limit ends {time}".to_owned()],
            output: "the plan".to_owned(),
            no_contact: Rc::default(),
        }
    }

    fn run_executor(
        &self,
        executor: FakeExecutor,
        program: TurnProgram,
        initial: InitialState,
    ) -> (FakeExecutor, TurnLoopEnd) {
        self.run_with_session(executor, program, initial, None)
    }

    /// Runs the turn loop. `session` is the session of an earlier spawn.
    fn run_with_session(
        &self,
        executor: FakeExecutor,
        program: TurnProgram,
        initial: InitialState,
        session: Option<&str>,
    ) -> (FakeExecutor, TurnLoopEnd) {
        let session = session.map(str::to_owned);
        let program = TurnBuilder::new(program, session, self.dir.path().join("state"), "ann@t");
        let files = AgentTeamFiles::new(self.team.clone(), name("ann"), Some("blue".to_owned()));
        let limit_patterns = executor.limit_patterns.clone();
        TurnLoop::new(executor, files, program).with_limit_patterns(limit_patterns).run(initial)
    }
}

fn write_file(path: &std::path::Path, text: &str) {
    File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn name(text: &str) -> MemberName {
    MemberName::parse(text).unwrap()
}

fn send(team: &Team, from: &str, to: &str, text: &str) {
    team.inbox(&name(to))
        .append(&Message::new(&MemberName::new_unchecked(from), text.to_owned(), now()))
        .unwrap();
}

fn unread_count(team: &Team) -> usize {
    let entries = team.inbox(&name("ann")).read().unwrap();
    entries.iter().filter(|entry| entry.unread().is_some()).count()
}

fn agent_program() -> TurnProgram {
    TurnProgram::PerTurn(PerTurnProgram {
        first_argv: vec!["p".into()],
        later_argv: vec![],
        session: SessionSource::NoSession,
        ..PerTurnProgram::default()
    })
}

fn worker_program(run: &str) -> TurnProgram {
    TurnProgram::Worker(Worker { run: Some(run.to_owned()), ..Worker::default() })
}

fn default_state() -> InitialState {
    InitialState::default()
}

fn prompt_state(text: &str) -> InitialState {
    InitialState { prompt: text.to_owned(), ..InitialState::default() }
}

/// The initial state of a respawn.
fn respawn_state() -> InitialState {
    InitialState { is_respawn: true, ..InitialState::default() }
}

/// The end of a turn's process with an exit code.
fn turn_end(code: i32) -> ScriptedEvent {
    turn_end_after(move |_| {}, code)
}

/// Calls `action` during a turn, and then ends the turn's process with an exit code.
fn turn_end_after(mut action: impl FnMut(&Team) + 'static, code: i32) -> ScriptedEvent {
    Box::new(move |team| {
        action(team);
        ExecutorEvent::TurnEnded(TurnResult {
            end: TurnEndKind::Exited(ExitStatus::from_raw(code << 8)),
            last_lines: "its last words".to_owned(),
            usage: None,
        })
    })
}

/// A turn that fails at a usage limit, which ends in an hour.
fn turn_at_limit() -> ScriptedEvent {
    Box::new(|_| {
        ExecutorEvent::TurnEnded(TurnResult {
            end: TurnEndKind::Exited(ExitStatus::from_raw(1 << 8)),
            last_lines: "the limit ends in 1 hour".to_owned(),
            usage: None,
        })
    })
}

/// Calls `action` during the wait, and then returns a wake.
fn wake_after(mut action: impl FnMut(&Team) + 'static) -> ScriptedEvent {
    Box::new(move |team| {
        action(team);
        ExecutorEvent::Wake
    })
}

/// The end of the pause after a failed turn.
fn pause_end() -> ScriptedEvent {
    Box::new(|_| ExecutorEvent::Deadline)
}
