//! `teamctl profiles`: lists the profiles, shows one profile, or checks that profiles fit the
//! installed agent programs.

mod answers_of_program;
mod check_profiles_against_programs;
mod find_installed_program;
pub(super) mod installed_programs;

use crate::command_context::CommandContext;
use crate::output;
use find_installed_program::installed_path;
use profile::{Profile, ProfileRegistry, ProfileSource};
use protocol::error_kind_and_report::ErrorReport;
use serde_json::{Value, json};
use std::process::ExitCode;

/// List, show or check the profiles of agent programs
///
/// Example: teamctl profiles show codex
///
/// A profile says how an agent program is started, and how messages reach it (its delivery).
/// Profiles are built in, or files in ~/.config/teamd/profiles.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl profiles\n  teamctl profiles check")]
pub(crate) struct ProfilesArgs {
    #[command(subcommand)]
    command: Option<ProfilesCommand>,
}

/// The default is `list`.
#[derive(Debug, clap::Subcommand)]
enum ProfilesCommand {
    /// List the profiles with their delivery and programs
    ///
    /// Example: teamctl profiles list
    List,
    /// Show a profile: its text, command lines and delivery
    ///
    /// Example: teamctl profiles show codex
    Show {
        /// The profile
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Check that installed programs fit their profiles
    ///
    /// Example: teamctl profiles check claude
    ///
    /// Exit code 72: the program is missing. 78: its help does not mention an option that the
    /// profile uses, its settings are incomplete, or the profile is invalid.
    Check {
        /// The profile [default: those of all installed programs]
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
}

pub(crate) fn run(context: &CommandContext, args: ProfilesArgs) -> Result<ExitCode, ErrorReport> {
    match args.command.unwrap_or(ProfilesCommand::List) {
        ProfilesCommand::List => list(context),
        ProfilesCommand::Show { name } => show(context, &name),
        ProfilesCommand::Check { name } => check_profiles_against_programs::run(context, name.as_deref()),
    }
}

fn list(context: &CommandContext) -> Result<ExitCode, ErrorReport> {
    let registry = ProfileRegistry::for_user();
    let mut entries = Vec::new();
    let mut rows = vec![["NAME", "DELIVERY", "PROGRAM", "DESCRIPTION"].map(str::to_owned).to_vec()];
    for name in registry.all_names() {
        // An invalid profile does not hide the others.
        match registry.profile(&name) {
            Ok(profile) => {
                rows.push(row(&profile));
                entries.push(profile_json(&profile));
            }
            Err(error) => {
                rows.push(
                    [name.as_str(), "-", "-", &output::sanitize(&error.message)].map(str::to_owned).to_vec(),
                );
                entries.push(json!({"name": name, "error": error}));
            }
        }
    }
    if context.args.json {
        output::print_result(context, &json!({"profiles": entries}), "");
    } else if !context.args.quiet {
        output::print_table(&rows);
    }
    Ok(ExitCode::SUCCESS)
}

fn row(profile: &Profile) -> Vec<String> {
    let program = match (profile.program(), installed_path(profile)) {
        (None, _) => "built in".to_owned(),
        (Some(_), Some(path)) => path.display().to_string(),
        (Some(_), None) => "-".to_owned(),
    };
    let note = if profile.is_verified { "" } else { " (from its documentation, not tried)" };
    let description = format!("{}{note}", profile.description);
    [profile.name.as_str(), profile.delivery().as_str(), &program, &description]
        .map(output::sanitize)
        .to_vec()
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

fn show(context: &CommandContext, name: &str) -> Result<ExitCode, ErrorReport> {
    let registry = ProfileRegistry::for_user();
    let (source, text) = registry.source_text(name)?;
    let profile = registry.profile(name)?;
    let source = match &source {
        ProfileSource::BuiltIn => "built in".to_owned(),
        ProfileSource::File(path) => path.display().to_string(),
    };
    let mut object = profile_json(&profile);
    object["source"] = json!(source);
    object["text"] = json!(text);
    object["argv"] = json!(profile.argv());
    object["resume_argv"] = json!(profile.resume_argv());
    output::print_result(context, &object, &profile_text(&profile, &source, &text));
    Ok(ExitCode::SUCCESS)
}

fn profile_text(profile: &Profile, source: &str, text: &str) -> String {
    let delivery = profile.delivery();
    let mut lines = vec![format!("{}: {} ({source})", profile.name, profile.description)];
    if !profile.is_verified {
        lines.push("written from its documentation, not tried".to_owned());
    }
    lines.push(format!("delivery {}: {}", delivery.as_str(), delivery.delivery_point().description()));
    for (verb, argv) in [("starts", profile.argv()), ("goes on with", profile.resume_argv())] {
        if !argv.is_empty() {
            lines.push(format!("{verb}: {}", argv.join(" ")));
        }
    }
    if !text.is_empty() {
        lines.push(format!("\n{}", text.trim_end()));
    }
    lines.iter().map(|line| output::sanitize(line)).collect::<Vec<_>>().join("\n")
}
