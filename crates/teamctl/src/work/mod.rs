//! `teamctl work`: the built-in worker as a program of its own, for `spawn NAME -- teamctl work …`.
//!
//! It lives a teammate's life as `--agent worker` does, where join runs the turns; here its output is the pane's, and
//! all it hears is its wake line.

mod line;

use crate::context::CommandContext;
use crate::output;
use crate::turns::{
    ExecutorEvent, InitialState, StartError, TeamFiles, TurnBuilder, TurnEndKind, TurnExecutor, TurnInput,
    TurnLoop, TurnLoopEnd, TurnResult,
};
use line::{Heard, Line};
use protocol::control::{Activity, Request, TurnStatus};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::turn_program::{TurnProgram, Worker};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

/// Work on the team's tasks: the built-in worker
///
/// Runs the command in a task's metadata (`{"command": "…"}`) with sh -c, in the agent's directory, with the
/// task in TASK_ID, TASK_SUBJECT and TASK_DESCRIPTION. A task whose command fails stays in progress, with the
/// failure in its metadata. Runs inside an agent alone: with these options as `spawn NAME -- teamctl work …`, without
/// any as `spawn NAME --agent worker`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl spawn ann -- teamctl work --run 'make \"$TASK_SUBJECT\"'")]
pub(crate) struct WorkArgs {
    /// The command for every task
    #[arg(long, value_name = "CMD")]
    run: Option<String>,
    /// The command for every message: it finds MESSAGE_FROM, MESSAGE_SUMMARY and MESSAGE_TEXT
    #[arg(long, value_name = "CMD")]
    on_message: Option<String>,
    /// What a shutdown request gets while a command runs
    #[arg(long, value_enum, default_value_t = Busy::Wait)]
    busy: Busy,
}

/// See `--busy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Busy {
    /// A yes when the command has ended.
    Wait,
    /// A no at once.
    Reject,
}

pub(crate) fn run(here: &CommandContext, args: &WorkArgs) -> Result<ExitCode, ErrorReport> {
    let line = Line::inherited().ok_or_else(|| {
        ErrorReport::new(ErrorKind::Usage, "cannot work here: there is no wake line")
            .with_help("start a worker with: teamctl spawn NAME --agent worker")
    })?;
    let (me, team) = (here.caller_name(), here.team()?);
    output::print_line(&format!("{me} works for {}.", team.name()));
    let color = team.member(me.as_str()).ok().and_then(|member| member.color);
    let worker = Worker {
        run: args.run.clone(),
        on_message: args.on_message.clone(),
        busy_reject: args.busy == Busy::Reject,
    };
    let program =
        TurnBuilder::new(TurnProgram::Worker(worker), None, here.directories()?.state_dir, me.as_str());
    let bench = Bench { here, line, command: None, told: None };
    let beginning = InitialState { prompt: String::new(), is_respawn: true, ..InitialState::default() };
    let (_, over) = TurnLoop::new(
        bench,
        TeamFiles::new(team, me, color).with_next_task_client(here.next_task_client()?),
        program,
    )
    .run(beginning);
    match over {
        TurnLoopEnd::NotStarted(why) => Err(ErrorReport::new(ErrorKind::MissingPath, why)),
        // Without join nobody could wake us: that is an end as any other.
        TurnLoopEnd::ShutdownApproved | TurnLoopEnd::Terminated => Ok(ExitCode::SUCCESS),
    }
}

/// What a worker stands on that is an agent itself.
struct Bench<'a> {
    here: &'a CommandContext,
    line: Line,
    command: Option<Child>,
    told: Option<Activity>,
}

impl TurnExecutor for Bench<'_> {
    fn start_turn(&mut self, turn: &TurnInput) -> Result<u32, StartError> {
        let missing = || StartError::Permanent("cannot start a turn without a program".to_owned());
        let TurnInput::Command(process) = turn else { return Err(missing()) };
        let (program, arguments) = process.argv.split_first().ok_or_else(missing)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        command.envs(process.env.iter().map(|(name, value)| (name, value)));
        // The line is ours, and its number would mean nothing to the command.
        command.env_remove("TEAMD_WAKE_FD");
        let child = command.spawn();
        let child = child.map_err(|error| {
            let text = format!("cannot start {program}: {error}");
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            if missing { StartError::Permanent(text) } else { StartError::Transient(text) }
        })?;
        Ok(self.command.insert(child).id())
    }

    fn next_event(&mut self, until: Option<Instant>) -> ExecutorEvent {
        match self.line.hear(self.command.as_ref(), until) {
            Heard::Wake => ExecutorEvent::Wake,
            Heard::Deadline => ExecutorEvent::Deadline,
            Heard::Closed => ExecutorEvent::Terminate,
            Heard::Ended => {
                let status = self.command.take().map(|mut command| command.wait());
                let how = match status {
                    Some(Ok(status)) => TurnEndKind::Exited(status),
                    _ => TurnEndKind::NotStarted("cannot wait for the command".to_owned()),
                };
                ExecutorEvent::TurnEnded(TurnResult { end: how, last: String::new(), used: None })
            }
        }
    }

    /// For the daemon's status and the border; without a daemon nobody looks at either.
    fn report_status(&mut self, now: &TurnStatus) {
        if self.told.replace(now.activity) != Some(now.activity) {
            self.here.call_daemon(Request::ReportActivity(now.activity)).ok();
        }
    }

    fn confirm_interrupt(&mut self) {}

    fn print_line(&mut self, text: &str) {
        output::print_line(&output::sanitize(text));
    }
}
