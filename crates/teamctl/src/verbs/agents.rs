//! `agents`: the profiles that there are, what one says, and whether its program is there and takes what it says.

pub(super) mod ask;
mod check;

use crate::here::{Here, variable};
use crate::output;
use crate::profile::{Origin, Profile, Shelf};
use crate::verbs::spawn::world;
use protocol::error::ErrorReport;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// List the agent programs that can be spawned, show a profile, or check a program
///
/// A profile says how a program is started and fed: built in, or a file of yours in ~/.config/teamd/agents.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl agents\n  teamctl agents show codex\n  teamctl agents check")]
pub(crate) struct Agents {
    #[command(subcommand)]
    what: Option<What>,
}

/// Without one: the list.
#[derive(Debug, clap::Subcommand)]
enum What {
    /// All profiles, whether their programs are installed, and how messages reach them
    #[command(after_help = "Examples:\n  teamctl agents list\n  teamctl agents list --json")]
    List,
    /// A profile: its text, what it starts, and what can be promised of it
    #[command(after_help = "Examples:\n  teamctl agents show codex")]
    Show {
        /// Which
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Is the program installed, in which version, does its help tell of the options that we pass, do its settings
    /// hold what it needs? Ends with 72 where it is missing, with 78 where something does not fit
    #[command(after_help = "Examples:\n  teamctl agents check\n  teamctl agents check claude")]
    Check {
        /// Which [default: all that are installed]
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
}

pub(crate) fn run(here: &Here, args: Agents) -> Result<ExitCode, ErrorReport> {
    match args.what.unwrap_or(What::List) {
        What::List => list(here),
        What::Show { name } => show(here, &name),
        What::Check { name } => check::run(here, name.as_deref()),
    }
}

fn list(here: &Here) -> Result<ExitCode, ErrorReport> {
    let shelf = Shelf::of_user();
    let mut entries = Vec::new();
    let mut rows = vec![["NAME", "FEED", "PROGRAM", "ABOUT"].map(str::to_owned).to_vec()];
    for name in shelf.names() {
        // One that is at fault is told, and the others are listed all the same.
        match shelf.profile(&name) {
            Ok(profile) => {
                rows.push(row(&profile));
                entries.push(entry(&profile));
            }
            Err(fault) => {
                rows.push(vec![name.clone(), "-".to_owned(), "-".to_owned(), output::clean(&fault.message)]);
                entries.push(json!({"name": name, "error": fault}));
            }
        }
    }
    if here.global.json {
        output::done(here, &json!({"agents": entries}), "");
    } else if !here.global.quiet {
        output::table_clipped(&rows);
    }
    Ok(ExitCode::SUCCESS)
}

fn row(profile: &Profile) -> Vec<String> {
    let program = match (profile.program(), installed(profile)) {
        (None, _) => "built in".to_owned(),
        (Some(_), Some(path)) => path.display().to_string(),
        (Some(_), None) => "-".to_owned(),
    };
    let untried = if profile.tried { "" } else { " (from its documentation, not tried)" };
    let about = format!("{}{untried}", profile.about);
    [profile.name.as_str(), profile.feed().as_str(), &program, &about].map(output::clean).to_vec()
}

fn entry(profile: &Profile) -> Value {
    json!({
        "name": profile.name,
        "about": profile.about,
        "feed": profile.feed(),
        "reaches": profile.feed().delivery_point(),
        "program": profile.program(),
        "path": installed(profile),
        "tried": profile.tried,
    })
}

/// Where its program is; none where it is not, or is our own.
fn installed(profile: &Profile) -> Option<PathBuf> {
    let program = profile.program()?;
    // Before a spawn only `{self}` is known of its blanks.
    let own = std::env::current_exe().ok()?;
    let program = program.replace("{self}", &own.to_string_lossy());
    world::found(&program, Path::new("."), &variable("PATH").unwrap_or_default())
}

fn show(here: &Here, name: &str) -> Result<ExitCode, ErrorReport> {
    let shelf = Shelf::of_user();
    let (origin, text) = shelf.text(name)?;
    let profile = shelf.profile(name)?;
    let from = match &origin {
        Origin::BuiltIn => "built in".to_owned(),
        Origin::File(path) => path.display().to_string(),
    };
    let mut all = entry(&profile);
    all["from"] = json!(from);
    all["text"] = json!(text);
    all["argv"] = json!(profile.argv());
    all["resume"] = json!(profile.resume());
    output::done(here, &all, &shown(&profile, &from, &text));
    Ok(ExitCode::SUCCESS)
}

fn shown(profile: &Profile, from: &str, text: &str) -> String {
    let feed = profile.feed();
    let mut lines = vec![format!("{}: {} ({from})", profile.name, profile.about)];
    if !profile.tried {
        lines.push("written from its documentation: nobody has tried it".to_owned());
    }
    lines.push(format!("feed {}: {}", feed.as_str(), feed.delivery_point().description()));
    for (word, argv) in [("starts", profile.argv()), ("goes on with", profile.resume())] {
        if !argv.is_empty() {
            lines.push(format!("{word}: {}", argv.join(" ")));
        }
    }
    if !text.is_empty() {
        lines.push(format!("\n{}", text.trim_end()));
    }
    lines.iter().map(|line| output::clean(line)).collect::<Vec<_>>().join("\n")
}
