//! `create`: a team with its lead, and nobody else yet.

use crate::here::Here;
use crate::output;
use protocol::control::{self, Reply, Request};
use protocol::fault::{Fault, Kind};
use protocol::name::TeamName;
use std::process::ExitCode;

/// Make a team
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl create survey --description 'counts and builds'\n  teamctl create survey --unique"
)]
pub(crate) struct Create {
    /// Its name; characters outside a-z, 0-9 and - become dashes [default: a random one]
    #[arg(value_name = "TEAM")]
    name: Option<String>,
    /// What the team is for
    #[arg(long, value_name = "D")]
    description: Option<String>,
    /// The lead's agent type
    #[arg(long, value_name = "T")]
    agent_type: Option<String>,
    /// The model of members that name none
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// Take NAME-2, NAME-3 where the name is taken
    #[arg(long)]
    unique: bool,
    /// Who may put a command, which a worker runs, into a task
    #[arg(long, value_enum, value_name = "WHO", default_value_t = Who::Lead)]
    commands: Who,
}

/// See `--commands`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Who {
    /// A person or the lead
    Lead,
    /// Every member
    Any,
}

impl From<Who> for control::Commands {
    fn from(who: Who) -> control::Commands {
        match who {
            Who::Lead => control::Commands::Lead,
            Who::Any => control::Commands::Any,
        }
    }
}

pub(crate) fn run(here: &Here, args: &Create) -> Result<ExitCode, Fault> {
    here.lead_only("create a team")?;
    let wanted = args.name.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let team = TeamName::sanitize(&wanted).map_err(|error| Fault::new(Kind::Usage, error.to_string()))?;
    if team.as_str() != wanted {
        output::complain(&format!("the team is called {team}, since {wanted} is no name for one"));
    }
    let cwd = std::env::current_dir();
    let cwd = cwd
        .map_err(|error| Fault::new(Kind::Missing, format!("cannot find the current directory: {error}")))?;
    let request = control::Create {
        team,
        description: args.description.clone(),
        agent_type: args.agent_type.clone(),
        model: args.model.clone(),
        cwd,
        unique: args.unique,
        commands: args.commands.into(),
    };
    if let Reply::Create(reply) = here.ask(Request::Create(request))? {
        let sentence = format!("Team {} is there; its lead is {}.", reply.team_name, reply.lead_agent_id);
        output::done(here, &reply, &sentence);
    }
    Ok(ExitCode::SUCCESS)
}
