//! What the user may type. The doc comments are the help texts and the man pages.

#[cfg(test)]
mod examples;

use crate::verbs;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Drive teams of coding agents in tmux
///
/// A whole team from a file: teamctl run FILE. By hand: up, create, spawn, task create, status; and at the end
/// shutdown, delete, down. Inside an agent team and sender are known; elsewhere you are the lead.
#[derive(Debug, Parser)]
#[command(
    name = "teamctl",
    version,
    max_term_width = 100,
    after_help = "Examples:\n  teamctl run survey.toml\n  teamctl up\n  teamctl create survey\n  teamctl spawn ann --agent worker\n  teamctl help spawn"
)]
pub(crate) struct Line<V: Subcommand> {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: V,
}

/// Any line.
pub(crate) type Cli = Line<Verb>;

/// What was typed. To make the parser of all verbs takes longer than to send a message: it is made where a line is none
/// of those that are said all day, and to tell what is wrong, or to help.
pub(crate) fn parsed() -> Result<Cli, clap::Error> {
    alone::<Often>().or_else(alone::<OfTasks>).map_or_else(Cli::try_parse, Ok)
}

fn alone<V: Subcommand + Into<Verb>>() -> Option<Cli> {
    let is_one = |word: std::ffi::OsString| word.to_str().is_some_and(V::has_subcommand);
    let might_be = std::env::args_os().skip(1).any(is_one);
    let line = might_be.then(Line::<V>::try_parse)?.ok()?;
    Some(Line { global: line.global, verb: line.verb.into() })
}

/// What agents, hooks and scripts say all day.
#[derive(Debug, Subcommand)]
enum Often {
    Send(verbs::send::Send),
    Inbox(verbs::inbox::Inbox),
    Status(verbs::status::Status),
    Hook(crate::hook::Hook),
}

/// The same, with many verbs of its own.
#[derive(Debug, Subcommand)]
enum OfTasks {
    Task(verbs::task::Task),
}

impl From<OfTasks> for Verb {
    fn from(OfTasks::Task(task): OfTasks) -> Verb {
        Verb::Task(task)
    }
}

impl From<Often> for Verb {
    fn from(often: Often) -> Verb {
        match often {
            Often::Send(it) => Verb::Send(it),
            Often::Inbox(it) => Verb::Inbox(it),
            Often::Status(it) => Verb::Status(it),
            Often::Hook(it) => Verb::Hook(it),
        }
    }
}

/// Accepted before and after every verb.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Global {
    /// The directory that holds teams/ and tasks/ [default: $CLAUDE_CONFIG_DIR, else ~/.claude]
    #[arg(long, global = true, env = "TEAMD_ROOT", value_name = "DIR", hide_env_values = true)]
    pub(crate) root: Option<PathBuf>,
    /// The daemon's control socket [default: in the runtime directory, one per root]
    #[arg(long, global = true, env = "TEAMD_SOCKET", value_name = "PATH", hide_env_values = true)]
    pub(crate) socket: Option<PathBuf>,
    /// The team; may be left out where there is just one
    // A team of another program's may be called -x.
    #[arg(
        short,
        long,
        global = true,
        env = "TEAMD_TEAM",
        value_name = "TEAM",
        hide_env_values = true,
        allow_hyphen_values = true
    )]
    pub(crate) team: Option<String>,
    /// Print one JSON object (streams: one per line)
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// One verb each; its arguments stand in its own file.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Up(verbs::up::Up),
    Down(verbs::down::Down),
    Create(verbs::create::Create),
    Spawn(verbs::spawn::Spawn),
    #[command(visible_alias = "ps")]
    Status(verbs::status::Status),
    Top(verbs::top::Top),
    Attach(verbs::attach::Attach),
    Capture(verbs::capture::Capture),
    Hide(verbs::hide::Hide),
    Show(verbs::show::Show),
    Layout(verbs::layout::Layout),
    Logs(verbs::logs::Logs),
    Send(verbs::send::Send),
    Broadcast(verbs::broadcast::Broadcast),
    Inbox(verbs::inbox::Inbox),
    Wait(verbs::wait::Wait),
    Requests(verbs::requests::Requests),
    Approve(verbs::approve::Approve),
    Deny(verbs::deny::Deny),
    Mode(verbs::mode::Mode),
    Interrupt(verbs::interrupt::Interrupt),
    Shutdown(verbs::shutdown::Shutdown),
    Respond(verbs::respond::Respond),
    Plan(verbs::plan::Plan),
    Policy(verbs::policy::Policy),
    Kill(verbs::kill::Kill),
    Delete(verbs::delete::Delete),
    Export(verbs::export::Export),
    Import(verbs::import::Import),
    Task(verbs::task::Task),
    Run(verbs::run::Args),
    Events(verbs::events::Events),
    Why(verbs::why::Why),
    Trace(verbs::trace::Trace),
    Agents(verbs::agents::Agents),
    Setup(verbs::setup::Setup),
    Doctor(verbs::doctor::Doctor),
    Mcp(verbs::mcp::Mcp),
    Prompt(verbs::prompt::Prompt),
    Hook(crate::hook::Hook),
    Lead(verbs::lead::Lead),
    Work(crate::work::Work),
    Notify(verbs::notify::Notify),
    #[command(hide = true)]
    Keys(crate::keys::Keys),
    #[command(hide = true)]
    Join(crate::join::Join),
    #[command(hide = true)]
    Record(crate::record::Record),
    Completions(verbs::completions::Completions),
    Man(verbs::man::Man),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_all_day_is_understood_as_the_parser_of_all_verbs_does() {
        fn quick<V: Subcommand + Into<Verb>>(words: &[&str]) -> Option<String> {
            let line = Line::<V>::try_parse_from(words).ok()?;
            Some(format!("{:?}", Line::<Verb> { global: line.global, verb: line.verb.into() }))
        }
        for (line, is_quick) in [
            ("teamctl send bob hello --team survey", true),
            ("teamctl --json -t survey inbox --unread", true),
            ("teamctl -q status", true),
            ("teamctl task claim 3", true),
            ("teamctl task list --available --root /r", true),
            ("teamctl status -t -x", true),
            ("teamctl create send", false),
            ("teamctl send", false),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let found = quick::<Often>(&words).or_else(|| quick::<OfTasks>(&words));
            assert_eq!(found.is_some(), is_quick, "{line}");
            let whole = Cli::try_parse_from(&words).ok().map(|line| format!("{line:?}"));
            assert!(found.is_none() || found == whole, "{line}: {found:?}, {whole:?}");
        }
    }

    #[test]
    fn a_team_may_be_called_as_an_option_is() {
        let line = Cli::try_parse_from(["teamctl", "up", "--resume", "-t", "-x"]).unwrap();
        assert!(format!("{line:?}").contains(r#"team: Some("-x")"#), "{line:?}");
    }
}
