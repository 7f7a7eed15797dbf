//! `trace`: the way of one message: who sent it when, where it is stored, when its recipient was given it, when that read
//! it, and what it said to it. What is missing in that chain is told with its probable cause, as `why` tells it.

mod chain;
mod find;

use super::why::chronicle::Log;
use super::why::{Ground, Told, causes_of};
use crate::here::{Here, now};
use crate::output::{self, clean};
use chain::{Answered, Chain, Read};
use find::{Copy, Standing};
use protocol::error::ErrorReport;
use protocol::timestamp::iso8601;
use serde_json::{Value, json};
use std::process::ExitCode;
use view::text::short_duration;

/// Say where a message is: stored, fed, read, answered; and what it waits for
///
/// MSG is an id as `send` and `inbox` print it with --json (message_id), or how it begins; `last` is the one that you
/// sent last. A message to several is told for each. Times other than that of sending are those at which teamd saw it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl trace last\n  teamctl trace 5c1f2a07\n  teamctl trace last --json"
)]
pub(crate) struct Trace {
    /// Which message
    #[arg(value_name = "MSG")]
    message: String,
}

pub(crate) fn run(here: &Here, args: &Trace) -> Result<ExitCode, ErrorReport> {
    here.lead_only("trace a message")?;
    let copies = find::copies(here, &args.message)?;
    let log = Log::read(&here.place()?.state_dir);
    let mut traced: Vec<Traced> = copies.into_iter().map(|copy| Traced::of(copy, &log)).collect();
    if traced.iter().any(Traced::is_waited_for) {
        let ground = Ground::see(here, log)?;
        traced.iter_mut().try_for_each(|traced| traced.explain(here, &ground))?;
    }
    if here.global.json {
        let id = traced.first().map(|traced| traced.copy.id.clone());
        let copies: Vec<Value> = traced.iter().map(Traced::object).collect();
        output::done(here, &json!({"message_id": id, "copies": copies}), "");
    } else if !here.global.quiet {
        traced.iter().for_each(Traced::print);
    }
    Ok(ExitCode::SUCCESS)
}

/// One copy of the message, and its way.
struct Traced {
    copy: Copy,
    chain: Chain,
    /// Why it goes no further.
    waits: Option<Told>,
    now: u64,
}

impl Traced {
    fn of(copy: Copy, log: &Log) -> Traced {
        let events = chain::events(log, copy.team.name(), &copy.to);
        let chain = chain::of(&copy, &events, &find::answers(&copy));
        Traced { copy, chain, waits: None, now: now() }
    }

    fn is_waited_for(&self) -> bool {
        matches!(self.copy.standing, Standing::Stored { .. }) && self.chain.read == Read::NotYet
    }

    fn explain(&mut self, here: &Here, ground: &Ground) -> Result<(), ErrorReport> {
        if self.is_waited_for() {
            let Copy { team, to, .. } = &self.copy;
            self.waits = causes_of(here, ground, team, to.as_str())?.into_iter().next();
        }
        Ok(())
    }

    /// The keys are those of `--json`; times are ms since the epoch, null where nobody has told.
    fn object(&self) -> Value {
        let Traced { copy, chain, waits, .. } = self;
        let index = match copy.standing {
            Standing::Stored { index } => Some(index),
            Standing::Gone => None,
        };
        json!({
            "team": copy.team.name(), "to": copy.to, "from": copy.message.from, "summary": copy.message.summary,
            "index": index, "sent": copy.sent(), "stored": chain.stored,
            "fed": chain.fed.as_ref().map(|(_, at)| at), "read": matches!(chain.read, Read::At(_)),
            "read_at": match chain.read { Read::At(at) => at, Read::NotYet | Read::TakenOut => None },
            "answered": chain.answered.as_ref().map(Answered::object), "waits": waits,
        })
    }

    fn print(&self) {
        let Traced { copy, .. } = self;
        let about = copy.message.summary.as_ref().map_or_else(String::new, |summary| format!(": {summary}"));
        let head = format!("{} to {}@{}{about}", &copy.id[..12], copy.to, copy.team.name());
        let lines = [
            ("sent", format!("{} by {}", self.at(copy.sent()), copy.message.from)),
            ("stored", self.stored()),
            ("fed", self.fed()),
            ("read", self.read()),
            ("answered", self.answered()),
        ];
        output::line(&clean(&head.replace('\n', " ")));
        for (what, text) in lines {
            output::line(&clean(&format!("  {what:<9} {}", text.replace(['\n', '\r'], " "))));
        }
        self.waits.iter().for_each(Told::print);
    }

    fn stored(&self) -> String {
        match (&self.copy.standing, self.chain.stored) {
            (Standing::Stored { index }, Some(at)) => {
                format!("{} as number {index} of its inbox", self.at(at))
            }
            (Standing::Stored { index }, None) => {
                format!("as number {index} of its inbox; the event log does not tell when")
            }
            (Standing::Gone, _) => {
                "it was acknowledged, and is in the inbox no more: another program took it out".to_owned()
            }
        }
    }

    fn fed(&self) -> String {
        match &self.chain.fed {
            Some((about, at)) if about.is_empty() => {
                format!("{} with the turn that began then", self.at(*at))
            }
            Some((about, at)) => format!("{} with the turn on {about}", self.at(*at)),
            None if self.chain.read == Read::NotYet => "not yet, as far as the event log tells".to_owned(),
            None if self.chain.read == Read::TakenOut => "the event log does not tell".to_owned(),
            None => "by itself, or the event log does not tell".to_owned(),
        }
    }

    fn read(&self) -> String {
        match self.chain.read {
            Read::At(Some(at)) => self.at(at).trim_end_matches(',').to_owned(),
            Read::At(None) => "yes; the event log does not tell when".to_owned(),
            Read::NotYet => "not yet".to_owned(),
            Read::TakenOut => "not as far as the event log tells: it was taken out".to_owned(),
        }
    }

    fn answered(&self) -> String {
        match &self.chain.answered {
            Some(answer) => format!("{} {}", self.at(answer.at), answer.sentence(&self.copy)),
            None => "not yet".to_owned(),
        }
    }

    fn at(&self, at: u64) -> String {
        let whole = iso8601(at);
        let ago = short_duration(self.now.saturating_sub(at));
        format!("{} UTC, {ago} ago,", whole.get(..19).unwrap_or_default().replace('T', " "))
    }
}
