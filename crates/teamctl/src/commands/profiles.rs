//! `agents`: the profiles that there are, what one says, and whether its program is there and takes what it says.

mod check;
use crate::context::CommandContext;
use crate::output;
use profile::program_lookup;
use profile::{Profile, ProfileRegistry, ProfileSource};
use protocol::error::ErrorReport;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::env_var;

/// List the agent programs that can be spawned, show a profile, or check a program
///
/// A profile says how a program is started and fed: built in, or a file of yours in ~/.config/teamd/profiles.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl profiles\n  teamctl profiles show codex\n  teamctl profiles check"
)]
pub(crate) struct ProfilesArgs {
    #[command(subcommand)]
    what: Option<ProfilesCommand>,
}

/// Without one: the list.
#[derive(Debug, clap::Subcommand)]
enum ProfilesCommand {
    /// All profiles, whether their programs are installed, and how messages reach them
    #[command(after_help = "Examples:\n  teamctl profiles list\n  teamctl profiles list --json")]
    List,
    /// A profile: its text, what it starts, and what can be promised of it
    #[command(after_help = "Examples:\n  teamctl profiles show codex")]
    Show {
        /// Which
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Is the program installed, in which version, does its help tell of the options that we pass, do its settings
    /// hold what it needs? Ends with 72 where it is missing, with 78 where something does not fit
    #[command(after_help = "Examples:\n  teamctl profiles check\n  teamctl profiles check claude")]
    Check {
        /// Which [default: all that are installed]
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
}

pub(crate) fn run(here: &CommandContext, args: ProfilesArgs) -> Result<ExitCode, ErrorReport> {
    match args.what.unwrap_or(ProfilesCommand::List) {
        ProfilesCommand::List => list(here),
        ProfilesCommand::Show { name } => show(here, &name),
        ProfilesCommand::Check { name } => check::run(here, name.as_deref()),
    }
}

fn list(here: &CommandContext) -> Result<ExitCode, ErrorReport> {
    let shelf = ProfileRegistry::for_user();
    let mut entries = Vec::new();
    let mut rows = vec![["NAME", "FEED", "PROGRAM", "ABOUT"].map(str::to_owned).to_vec()];
    for name in shelf.all_names() {
        // One that is at fault is told, and the others are listed all the same.
        match shelf.profile(&name) {
            Ok(profile) => {
                rows.push(row(&profile));
                entries.push(profile_json(&profile));
            }
            Err(fault) => {
                rows.push(vec![
                    name.clone(),
                    "-".to_owned(),
                    "-".to_owned(),
                    output::sanitize(&fault.message),
                ]);
                entries.push(json!({"name": name, "error": fault}));
            }
        }
    }
    if here.args.json {
        output::print_result(here, &json!({"profiles": entries}), "");
    } else if !here.args.quiet {
        output::print_clipped_table(&rows);
    }
    Ok(ExitCode::SUCCESS)
}

fn row(profile: &Profile) -> Vec<String> {
    let program = match (profile.program(), installed_path(profile)) {
        (None, _) => "built in".to_owned(),
        (Some(_), Some(path)) => path.display().to_string(),
        (Some(_), None) => "-".to_owned(),
    };
    let untried = if profile.is_verified { "" } else { " (from its documentation, not tried)" };
    let about = format!("{}{untried}", profile.description);
    [profile.name.as_str(), profile.delivery().as_str(), &program, &about].map(output::sanitize).to_vec()
}

fn profile_json(profile: &Profile) -> Value {
    json!({
        "name": profile.name,
        "description": profile.description,
        "delivery": profile.delivery(),
        "delivery_point": profile.delivery().delivery_point(),
        "program": profile.program(),
        "path": installed_path(profile),
        "is_verified": profile.is_verified,
    })
}

/// Where its program is; none where it is not, or is our own.
fn installed_path(profile: &Profile) -> Option<PathBuf> {
    let program = profile.program()?;
    // Before a spawn only `{teamctl}` is known of its blanks.
    let own = std::env::current_exe().ok()?;
    let program = program.replace("{teamctl}", &own.to_string_lossy());
    program_lookup::find_program(&program, Path::new("."), &env_var("PATH").unwrap_or_default())
}

fn show(here: &CommandContext, name: &str) -> Result<ExitCode, ErrorReport> {
    let shelf = ProfileRegistry::for_user();
    let (origin, text) = shelf.source_text(name)?;
    let profile = shelf.profile(name)?;
    let from = match &origin {
        ProfileSource::BuiltIn => "built in".to_owned(),
        ProfileSource::File(path) => path.display().to_string(),
    };
    let mut all = profile_json(&profile);
    all["source"] = json!(from);
    all["text"] = json!(text);
    all["argv"] = json!(profile.argv());
    all["resume_argv"] = json!(profile.resume_argv());
    output::print_result(here, &all, &profile_text(&profile, &from, &text));
    Ok(ExitCode::SUCCESS)
}

fn profile_text(profile: &Profile, from: &str, text: &str) -> String {
    let feed = profile.delivery();
    let mut lines = vec![format!("{}: {} ({from})", profile.name, profile.description)];
    if !profile.is_verified {
        lines.push("written from its documentation: nobody has tried it".to_owned());
    }
    lines.push(format!("feed {}: {}", feed.as_str(), feed.delivery_point().description()));
    for (word, argv) in [("starts", profile.argv()), ("goes on with", profile.resume_argv())] {
        if !argv.is_empty() {
            lines.push(format!("{word}: {}", argv.join(" ")));
        }
    }
    if !text.is_empty() {
        lines.push(format!("\n{}", text.trim_end()));
    }
    lines.iter().map(|line| output::sanitize(line)).collect::<Vec<_>>().join("\n")
}
