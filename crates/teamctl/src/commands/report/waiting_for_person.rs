//! What waits for a person: open requests, members that make no progress, and unfinished tasks and
//! runs on which no process works any more.

use crate::command_context::CommandContext;
use crate::commands::daemon_suspension_and_budget_lines::interrupted_run_line;
use crate::commands::diagnose::why_no_progress::{Diagnosis, SystemSnapshot, stuck_members};
use crate::commands::requests::{TeamRequest, open_requests, request_json};
use crate::commands::status::abandoned_task_line;
use client::member_request_view::request_text;
use client::short_duration::short_duration;
use client::suggested_commands::SuggestedCommands;
use client::task_counts_and_failures::AbandonedTask;
use client::team_view::TeamView;
use protocol::error_kind_and_report::ErrorReport;
use protocol::single_line::single_line;
use protocol::team_and_member_names::MemberName;
use runner::{InterruptedRun, interrupted_run};
use serde::{Serialize, Serializer};
use store::Team;

/// What waits for a person. The keys are those of `--json`.
#[derive(Default, Serialize)]
pub(super) struct WaitingForPerson {
    #[serde(serialize_with = "serialize_requests")]
    requests: Vec<TeamRequest>,
    /// Members that make no progress for another reason than a request, and why.
    #[serde(serialize_with = "serialize_stuck")]
    stuck: Vec<(MemberName, Diagnosis)>,
    abandoned_tasks: Vec<AbandonedTask>,
    interrupted_run: Option<InterruptedRun>,
    /// Errors that kept a part of this from being read.
    errors: Vec<String>,
}

/// With the keys of `requests --json`.
fn serialize_requests<S: Serializer>(requests: &[TeamRequest], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(requests.iter().map(request_json))
}

/// With the keys of `why --json`.
fn serialize_stuck<S: Serializer>(
    stuck: &[(MemberName, Diagnosis)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let members = stuck.iter().map(|(name, cause)| serde_json::json!({"name": name, "causes": [cause]}));
    serializer.collect_seq(members)
}

impl WaitingForPerson {
    /// Reads what waits for a person in a team that exists. If a part cannot be read, the result
    /// contains the error instead.
    pub(super) fn read(
        context: &CommandContext,
        snapshot: &SystemSnapshot,
        team: &Team,
        view: TeamView,
    ) -> Result<WaitingForPerson, ErrorReport> {
        let mut errors = Vec::from_iter(view.config_error);
        let requests = read_requests(context, team).unwrap_or_else(|error| {
            errors.push(error.message);
            Vec::new()
        });
        let stuck = stuck_members(context, snapshot, team).unwrap_or_else(|error| {
            errors.push(error.message);
            Vec::new()
        });
        errors.dedup();
        Ok(WaitingForPerson {
            stuck: stuck.into_iter().filter(|(_, diagnosis)| !diagnosis.awaits_answer()).collect(),
            requests,
            abandoned_tasks: view.abandoned_tasks,
            interrupted_run: interrupted_run(&context.state_dir_path()?, team),
            errors,
        })
    }

    /// One line for each item, for people. `now` is in milliseconds since the epoch.
    pub(super) fn lines(&self, commands: &SuggestedCommands, now: u64) -> Vec<String> {
        let requests = self.requests.iter().map(|request| request_line(request, now));
        let stuck = stuck_lines(&self.stuck);
        let abandoned = self.abandoned_tasks.iter().map(|task| abandoned_task_line(task, commands));
        let run = self.interrupted_run.iter().map(|run| interrupted_run_line(run, commands));
        requests.chain(stuck).chain(abandoned).chain(run).chain(self.errors.iter().cloned()).collect()
    }

    pub(super) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }
}

fn read_requests(context: &CommandContext, team: &Team) -> Result<Vec<TeamRequest>, ErrorReport> {
    open_requests(context, &context.root()?, team.name())
}

/// `bob asks to use Bash: cargo test (perm-1, for 3h)`.
fn request_line(TeamRequest { view, .. }: &TeamRequest, now: u64) -> String {
    let request = &view.request;
    let text = request_text(&request.request);
    let first_line = text.lines().next().unwrap_or_default().trim_end_matches(':');
    let age = match request.asked_at {
        0 => String::new(),
        asked_at => format!(", for {}", short_duration(now.saturating_sub(asked_at))),
    };
    single_line(&format!("{} {first_line} ({}{age})", request.from, request.request.id()))
}

/// Lines about members that make no progress. Members that have the same cause and the same next
/// command share one line.
fn stuck_lines(stuck: &[(MemberName, Diagnosis)]) -> Vec<String> {
    let is_first = |index: usize| !stuck[..index].iter().any(|(_, other)| other.is_alike(&stuck[index].1));
    let firsts = (0..stuck.len()).filter(|index| is_first(*index));
    firsts.map(|index| stuck_line(&stuck[index].1, &stuck[index + 1..])).collect()
}

/// The line of a diagnosis. It also names those members in `later` whose diagnosis is alike.
fn stuck_line(diagnosis: &Diagnosis, later: &[(MemberName, Diagnosis)]) -> String {
    let alike = later.iter().filter(|(_, other)| other.is_alike(diagnosis));
    let names: Vec<&str> = alike.map(|(name, _)| name.as_str()).collect();
    let likewise = (!names.is_empty()).then(|| format!(" Likewise: {}.", names.join(", ")));
    let next = diagnosis.next.first().map(|command| format!(" `{command}`"));
    format!("{}{}{}", diagnosis.sentence, likewise.unwrap_or_default(), next.unwrap_or_default())
}
