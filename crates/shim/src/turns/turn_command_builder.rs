//! Builds the command line of each turn. Also keeps the id of the program's session. With this id,
//! each turn continues the conversation of the earlier turns.

#[cfg(test)]
mod tests;

use super::prompt_text::TurnSubject;
use super::scan_output_for_session_and_usage::OutputFields;
use super::turn_executor_trait::{TurnCommand, TurnInput};
use protocol::deferred_template_variables::{self, guard_leading_dash};
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::IdleReason;
use protocol::permission_mode::PermissionMode;
use protocol::task::Task;
use protocol::token_and_cost_usage::{UsageReading, UsageReport, UsageScope};
use protocol::worker_or_program_that_runs_turns::{
    MAX_ARGUMENT_BYTES, PerTurnProgram, SessionSource, TurnProgram, Worker,
};
use std::path::PathBuf;
use store::StateDir;
use uuid::Uuid;

/// The program of an agent's turns, and the state of its session.
#[derive(Debug)]
pub(crate) struct TurnBuilder {
    program: TurnProgram,
    session: SessionState,
    /// The directory for the file `prompt_file`. A prompt that is too long for a command-line
    /// argument is written to this file.
    state_dir: PathBuf,
    prompt_file: String,
    has_prompt_file: bool,
    mode: Option<PermissionMode>,
}

/// Whether the program has stored its session. The shim must know this: each turn may be a new
/// process, which can resume only a session that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SessionState {
    /// No turn of the session has started.
    New,
    /// A turn of the session has started, but none has succeeded. So the program may not have
    /// stored the session. The value is the session's id, `None` if the program has no session ids.
    Opened(Option<String>),
    /// An earlier spawn of the member has opened the session with this id. The current spawn has
    /// not completed a turn in it, so the program may not have stored the session.
    Inherited(String),
    /// A turn of the session has succeeded, so the program has stored the session.
    Confirmed(Option<String>),
}

impl TurnBuilder {
    /// Creates the builder. `session_id` is the session of an earlier spawn, `None` if there is no
    /// such session. If a prompt is too long for an argument, it is written to a file in
    /// `state_dir` whose name contains `owner`.
    pub(crate) fn new(
        program: TurnProgram,
        session_id: Option<String>,
        state_dir: PathBuf,
        owner: &str,
    ) -> TurnBuilder {
        TurnBuilder {
            program,
            session: session_id.map_or(SessionState::New, SessionState::Inherited),
            state_dir,
            prompt_file: format!("prompt-{owner}.txt"),
            has_prompt_file: false,
            mode: None,
        }
    }

    pub(super) fn program(&self) -> &TurnProgram {
        &self.program
    }

    pub(super) fn rejects_shutdown_while_busy(&self) -> bool {
        matches!(&self.program, TurnProgram::Worker(worker) if worker.busy_reject)
    }

    /// The id of the session. `None` if it is not known yet.
    pub(crate) fn session_id(&self) -> Option<String> {
        match &self.session {
            SessionState::Opened(id) | SessionState::Confirmed(id) => id.clone(),
            SessionState::Inherited(id) => Some(id.clone()),
            SessionState::New => None,
        }
    }

    /// Sets the session id that the output contained.
    pub(crate) fn set_session_id(&mut self, session: String) {
        self.session = SessionState::Opened(Some(session));
    }

    /// Whether a turn may have failed because the session of an earlier spawn no longer exists.
    pub(super) fn may_have_lost_session(&self) -> bool {
        !self.is_driven() && matches!(self.session, SessionState::Inherited(_))
    }

    /// Records the end of a turn. If no turn of the session has succeeded yet and this turn has
    /// failed, the next turn opens a new session. The program may not have stored the failed
    /// session, and then no turn could resume it.
    ///
    /// For a program behind a driver this does nothing, because the driver manages the session.
    pub(super) fn note_turn_end(&mut self, reason: IdleReason) {
        if self.is_driven() {
            return;
        }
        let session = std::mem::replace(&mut self.session, SessionState::New);
        self.session = match (session, reason) {
            (SessionState::Opened(id), IdleReason::Available) => SessionState::Confirmed(id),
            (SessionState::Inherited(id), IdleReason::Available) => SessionState::Confirmed(Some(id)),
            (SessionState::Opened(_) | SessionState::Inherited(_), IdleReason::Failed) => SessionState::New,
            (session, _) => session,
        };
    }

    /// The usage after a turn. `previous` is the usage before the turn. `reading` is the usage that
    /// the program has reported during the turn.
    pub(super) fn add_usage(&self, previous: Option<UsageReport>, reading: UsageReading) -> UsageReport {
        let UsageReading { usage, scope } = reading;
        match scope {
            UsageScope::Session => UsageReport { session_id: self.session_id(), usage },
            UsageScope::Turn => UsageReport {
                session_id: None,
                usage: previous.map_or(usage, |previous| previous.usage.saturating_add(usage)),
            },
        }
    }

    /// Builds the input with which a turn is started.
    ///
    /// # Errors
    ///
    /// Why the input cannot be built, as a sentence for people.
    pub(crate) fn turn_input(
        &mut self,
        subject: &TurnSubject,
        instructions: Option<&str>,
    ) -> Result<TurnInput, String> {
        let text = || match instructions {
            Some(instructions) => format!("{instructions}\n\n{}", subject.text()),
            None => subject.text(),
        };
        match &self.program {
            TurnProgram::Worker(worker) => worker_command(worker, subject).map(TurnInput::Command),
            TurnProgram::PerTurn(agent) => {
                let agent = agent.clone();
                self.agent_command(&agent, &text()).map(TurnInput::Command)
            }
            TurnProgram::Driven(_) => Ok(TurnInput::Text(text())),
        }
    }

    /// Sets the permission mode, which applies from the next turn on.
    ///
    /// # Errors
    ///
    /// Why the program cannot run in this mode, as a sentence for people.
    pub(crate) fn set_mode(&mut self, mode: PermissionMode) -> Result<(), String> {
        let TurnProgram::PerTurn(agent) = &self.program else { return Err("it has no modes".to_owned()) };
        // Every program has the default mode, even without arguments for it.
        if mode != PermissionMode::Default && !agent.mode_args.contains_key(mode.as_str()) {
            return Err("its profile has no such mode".to_owned());
        }
        self.mode = Some(mode);
        Ok(())
    }

    /// The key of the agent's reply in the JSON lines of the output. `None` if the whole output is
    /// the reply.
    pub(crate) fn reply_key(&self) -> Option<&str> {
        match &self.program {
            TurnProgram::PerTurn(agent) => agent.reply_key.as_deref(),
            _ => None,
        }
    }

    pub(super) fn is_driven(&self) -> bool {
        matches!(self.program, TurnProgram::Driven(_))
    }

    /// Removes the file of a long prompt, if there is such a file.
    pub(crate) fn remove_prompt_file(&mut self) {
        if std::mem::take(&mut self.has_prompt_file) {
            // An error is ignored: the file then stays, and the next long prompt overwrites it.
            StateDir::open(&self.state_dir).and_then(|state| state.remove(&self.prompt_file)).ok();
        }
    }

    fn agent_command(&mut self, agent: &PerTurnProgram, text: &str) -> Result<TurnCommand, String> {
        let later = self.session != SessionState::New && !agent.later_argv.is_empty();
        let template =
            &with_mode_arguments(if later { &agent.later_argv } else { &agent.first_argv }, agent, self.mode);
        let text = &match self.session {
            SessionState::New => with_prompt_prefix(agent, text),
            // The program does not remember earlier turns, so each turn gets the instructions about
            // the team.
            _ if forgets_turns(agent) => with_prompt_prefix(agent, text),
            _ => text.to_owned(),
        };
        self.open_session(&agent.session);
        let session_id = self.session_id().unwrap_or_default();
        let mut argv = fill_template(template, text, &session_id);
        if argv.iter().any(|argument| argument.len() > MAX_ARGUMENT_BYTES) {
            argv = fill_template(template, &self.write_prompt_file(text)?, &session_id);
        }
        let has_prompt =
            template.iter().any(|argument| deferred_template_variables::has_variable(argument, "prompt"));
        let session_key = match &agent.session {
            SessionSource::OutputKey { key } if self.session == SessionState::New => Some(key.clone()),
            _ => None,
        };
        Ok(TurnCommand {
            argv,
            env: Vec::new(),
            stdin: (!has_prompt).then(|| text.to_owned()),
            output_fields: OutputFields { session_key, usage_paths: agent.usage_paths.clone() },
        })
    }

    /// Changes the state of the session at the start of a turn. If the program chooses the session
    /// id itself, the state stays `New` until the id is found in the output.
    fn open_session(&mut self, session: &SessionSource) {
        if self.session == SessionState::New {
            match session {
                SessionSource::NoSession => self.session = SessionState::Opened(None),
                SessionSource::Generated => {
                    self.session = SessionState::Opened(Some(Uuid::new_v4().to_string()));
                }
                SessionSource::OutputKey { .. } => {}
            }
        }
    }

    fn write_prompt_file(&mut self, text: &str) -> Result<String, String> {
        let state = StateDir::open(&self.state_dir).map_err(|error| error.to_string())?;
        state.replace(&self.prompt_file, text.as_bytes()).map_err(|error| error.to_string())?;
        self.has_prompt_file = true;
        let path = state.path().join(&self.prompt_file);
        Ok(format!("Read the file {} and do what it says: it is your message.", path.display()))
    }
}

/// Whether every turn of the program starts a new session.
fn forgets_turns(agent: &PerTurnProgram) -> bool {
    agent.session == SessionSource::NoSession && agent.later_argv.is_empty()
}

/// Puts the instructions about the team before `text`, if there are any.
fn with_prompt_prefix(agent: &PerTurnProgram, text: &str) -> String {
    match agent.prompt_prefix.as_str() {
        "" => text.to_owned(),
        prefix => format!("{prefix}\n\n{text}"),
    }
}

/// Replaces `{mode}` by the arguments of the mode.
fn with_mode_arguments(
    template: &[String],
    agent: &PerTurnProgram,
    mode: Option<PermissionMode>,
) -> Vec<String> {
    let mode_args =
        agent.mode_args.get(mode.map_or("", PermissionMode::as_str)).map_or(&[][..], Vec::as_slice);
    let argument = |argument: &String| match argument.as_str() {
        "{mode}" => mode_args.to_vec(),
        _ => vec![argument.clone()],
    };
    template.iter().flat_map(argument).collect()
}

/// Fills in all variables at once, so that a variable in the text of the prompt is not replaced.
fn fill_template(template: &[String], text: &str, session: &str) -> Vec<String> {
    let text = &guard_leading_dash(template, text);
    let value = |variable: &str| match variable {
        "prompt" => Some(text.as_str()),
        "session" => Some(session),
        _ => None,
    };
    template.iter().map(|argument| deferred_template_variables::fill(argument, value)).collect()
}

/// Variables that prevent pagers. A worker's shell command has a terminal, but no person presses
/// keys there. So a pager would wait forever for a key.
const NO_PAGER: [(&str, &str); 2] = [("PAGER", "cat"), ("GIT_PAGER", "cat")];

/// The command of a worker's turn.
fn worker_command(worker: &Worker, subject: &TurnSubject) -> Result<TurnCommand, String> {
    let (command, env) = match subject {
        TurnSubject::Task(task) => (worker.run.as_deref().or(task.command()), task_env(task)),
        TurnSubject::UserMessage(message) | TurnSubject::Message(message) => {
            (worker.on_message.as_deref(), message_env(message))
        }
        TurnSubject::Prompt(_) => (None, Vec::new()),
    };
    let no_command = "it has no command in its metadata, and the worker no --run";
    let argv = ["sh", "-c", command.ok_or(no_command)?].map(str::to_owned).to_vec();
    let env = env.into_iter().chain(NO_PAGER.map(|(name, value)| (name, value.to_owned())));
    let env = env.map(|(name, value)| (name.to_owned(), strip_nul(&value))).collect();
    Ok(TurnCommand { argv, env, ..TurnCommand::default() })
}

fn task_env(task: &Task) -> Vec<(&'static str, String)> {
    let id = task.id.to_string();
    vec![
        ("TASK_ID", id),
        ("TASK_SUBJECT", task.subject.clone()),
        ("TASK_DESCRIPTION", task.description.clone()),
    ]
}

fn message_env(message: &Message) -> Vec<(&'static str, String)> {
    let summary = message.summary.clone().unwrap_or_default();
    vec![
        ("MESSAGE_FROM", message.from.clone()),
        ("MESSAGE_SUMMARY", summary),
        ("MESSAGE_TEXT", message.text.clone()),
    ]
}

/// Removes NUL characters, because arguments and environment variables cannot contain them.
fn strip_nul(text: &str) -> String {
    text.replace('\0', "")
}
