//! `teamctl work`: the built-in worker as a program of its own, for `spawn NAME -- teamctl work …`.
//!
//! It lives a teammate's life as `--agent worker` does, where join runs the turns; here its output is the pane's, and
//! all it hears is its wake line.

mod line;

use crate::here::Here;
use crate::output;
use crate::teammate::{
    Beginning, CannotStart, Happened, Host, How, Over, Post, Program, Teammate, TurnEnd, TurnOf,
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
pub(crate) struct Work {
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

pub(crate) fn run(here: &Here, args: &Work) -> Result<ExitCode, ErrorReport> {
    let line = Line::inherited().ok_or_else(|| {
        ErrorReport::new(ErrorKind::Usage, "cannot work here: there is no wake line")
            .with_help("start a worker with: teamctl spawn NAME --agent worker")
    })?;
    let (me, team) = (here.me(), here.team()?);
    output::line(&format!("{me} works for {}.", team.name()));
    let color = team.member(me.as_str()).ok().and_then(|member| member.color);
    let worker = Worker {
        run: args.run.clone(),
        on_message: args.on_message.clone(),
        busy_reject: args.busy == Busy::Reject,
    };
    let program = Program::new(TurnProgram::Worker(worker), None, here.place()?.state_dir, me.as_str());
    let bench = Bench { here, line, command: None, told: None };
    let beginning = Beginning { prompt: String::new(), again: true, ..Beginning::default() };
    let (_, over) =
        Teammate::new(bench, Post::new(team, me, color).told_by(here.hints()?), program).live(beginning);
    match over {
        Over::NotStarted(why) => Err(ErrorReport::new(ErrorKind::MissingPath, why)),
        // Without join nobody could wake us: that is an end as any other.
        Over::Approved | Over::Ended => Ok(ExitCode::SUCCESS),
    }
}

/// What a worker stands on that is an agent itself.
struct Bench<'a> {
    here: &'a Here,
    line: Line,
    command: Option<Child>,
    told: Option<Activity>,
}

impl Host for Bench<'_> {
    fn begin(&mut self, turn: &TurnOf) -> Result<u32, CannotStart> {
        let missing = || CannotStart::Ever("cannot start a turn without a program".to_owned());
        let TurnOf::Process(process) = turn else { return Err(missing()) };
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
            if missing { CannotStart::Ever(text) } else { CannotStart::Now(text) }
        })?;
        Ok(self.command.insert(child).id())
    }

    fn next(&mut self, until: Option<Instant>) -> Happened {
        match self.line.hear(self.command.as_ref(), until) {
            Heard::Wake => Happened::Wake,
            Heard::Deadline => Happened::Deadline,
            Heard::Closed => Happened::End,
            Heard::Ended => {
                let status = self.command.take().map(|mut command| command.wait());
                let how = match status {
                    Some(Ok(status)) => How::Status(status),
                    _ => How::NotRun("cannot wait for the command".to_owned()),
                };
                Happened::Turn(TurnEnd { how, last: String::new(), used: None })
            }
        }
    }

    /// For the daemon's status and the border; without a daemon nobody looks at either.
    fn tell(&mut self, now: &TurnStatus) {
        if self.told.replace(now.activity) != Some(now.activity) {
            self.here.ask(Request::ReportActivity(now.activity)).ok();
        }
    }

    fn interrupted(&mut self) {}

    fn say(&mut self, text: &str) {
        output::line(&output::clean(text));
    }
}
