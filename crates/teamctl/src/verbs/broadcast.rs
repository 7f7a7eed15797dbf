//! `broadcast`: one message into every inbox but the sender's own. Each inbox is an append of its own, so
//! some may have it and others not: the result says which, and the exit code that it was not all.

use super::send::{Routing, message};
use super::text;
use crate::here::{Here, fault};
use crate::output;
use protocol::fault::{Fault, Kind};
use protocol::message::Message;
use protocol::name::AgentName;
use serde_json::{Value, json};
use std::process::ExitCode;
use store::Team;

/// Send a message to every other member
///
/// Exit code 0: every inbox has it. 1: some have it, and the output says which have not.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl broadcast 'main is frozen until noon' --summary 'code freeze'\n  teamctl broadcast - < news.txt"
)]
pub(crate) struct Broadcast {
    /// What; - takes it from standard input
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// What it is about, in a few words
    #[arg(long, value_name = "S")]
    summary: Option<String>,
}

/// A member whose inbox did not take it.
struct Missed {
    name: AgentName,
    fault: Fault,
}

pub(crate) fn run(here: &Here, args: &Broadcast) -> Result<ExitCode, Fault> {
    let (team, me) = (here.team()?, here.me());
    let mut message = message(&team, &me, text::of(here, &args.text)?);
    message.summary.clone_from(&args.summary);
    let members = team.config().map_err(fault)?.members.into_iter().map(|member| member.name);
    let (reached, missed) = deliver(&team, members.filter(|name| *name != me), &message);
    match missed.first() {
        None => told(here, &reached, &message),
        Some(first) if reached.is_empty() => return Err(first.fault.clone()),
        Some(_) => return Ok(partly(here, &reached, &missed, &message)),
    }
    Ok(ExitCode::SUCCESS)
}

fn deliver(
    team: &Team,
    names: impl Iterator<Item = AgentName>,
    message: &Message,
) -> (Vec<AgentName>, Vec<Missed>) {
    let (mut reached, mut missed) = (Vec::new(), Vec::new());
    for name in names {
        match team.inbox(&name).append(message).map_err(fault) {
            Ok(()) => reached.push(name),
            Err(fault) => missed.push(Missed { name, fault }),
        }
    }
    (reached, missed)
}

fn told(here: &Here, reached: &[AgentName], message: &Message) {
    let mut result = result(reached, message);
    if reached.is_empty() {
        result = json!({"message": "No teammates to broadcast to", "recipients": []});
    }
    result["success"] = json!(true);
    let sentence = format!("{}.", result["message"].as_str().unwrap_or_default());
    output::done(here, &result, &output::clean(&sentence));
}

fn partly(here: &Here, reached: &[AgentName], missed: &[Missed], message: &Message) -> ExitCode {
    let names: Vec<&str> = missed.iter().map(|missed| missed.name.as_str()).collect();
    let fault = Fault::new(Kind::Partly, format!("cannot reach {}; the others have it", names.join(", ")));
    if here.global.json {
        let mut result = result(reached, message);
        let failed =
            missed.iter().map(|missed| json!({"name": missed.name, "message": missed.fault.message}));
        result["ok"] = json!(false);
        result["success"] = json!(false);
        result["failed"] = failed.collect();
        result["error"] = json!(fault);
        output::line(&result.to_string());
    }
    for Missed { name, fault } in missed {
        output::complain(&format!("{name}: {fault}"));
    }
    output::complain(&fault.message);
    ExitCode::from(fault.kind.exit_code())
}

fn result(reached: &[AgentName], message: &Message) -> Value {
    let names: Vec<&str> = reached.iter().map(AgentName::as_str).collect();
    let sentence = format!("Message broadcast to {} teammate(s): {}", names.len(), names.join(", "));
    json!({"message": sentence, "recipients": names, "routing": Routing::of(message, "team", None)})
}
