//! Composes the text that people read: of one notice, or of several notices together.

use crate::core::notifications_to_people::notice::{Notice, NoticeKind};
use protocol::member_request::MemberRequestKind;

/// The text for one or more notices. In the names of members, characters that have a meaning for
/// terminals, tmux or shells are replaced.
pub(crate) fn compose_text(notices: &[Notice]) -> String {
    match notices {
        [notice] => describe(notice),
        several if several.iter().all(|notice| notice.kind == NoticeKind::Suspended) => {
            describe_suspended(several)
        }
        several => {
            let verb = match several.iter().all(|notice| matches!(notice.kind, NoticeKind::RequestWaiting(_)))
            {
                true => "requests",
                false => "status",
            };
            let parts = SUMMARY_RULES.iter().filter_map(|(singular, plural, is_counted)| {
                match several.iter().filter(|notice| is_counted(&notice.kind)).count() {
                    0 => None,
                    1 => Some(format!("1 {singular}")),
                    count => Some(format!("{count} {plural}")),
                }
            });
            let parts = parts.collect::<Vec<_>>().join(", ");
            format!("{parts}: teamctl {verb} -t {}", list_teams(several))
        }
    }
}

/// The names of suspended members, and the command that resumes them.
fn describe_suspended(notices: &[Notice]) -> String {
    let names: Vec<String> =
        notices.iter().filter_map(|notice| Some(sanitize_name(notice.member.as_ref()?.as_str()))).collect();
    let (shown, others) = names.split_at(names.len().min(MAX_NAMED));
    let others = if others.is_empty() { String::new() } else { format!(" and {} others", others.len()) };
    let teams = list_teams(notices);
    let option = if teams.contains(' ') { String::new() } else { format!(" -t {teams}") };
    format!("{}{others} of {teams} are suspended: teamctl up --resume{option}", shown.join(", "))
}

fn list_teams(notices: &[Notice]) -> String {
    let mut teams: Vec<&str> = notices.iter().map(|notice| notice.team.as_str()).collect();
    teams.sort_unstable();
    teams.dedup();
    let others = if teams.len() > MAX_TEAMS { " and others" } else { "" };
    teams.truncate(MAX_TEAMS);
    format!("{}{others}", teams.join(" or "))
}

fn describe(notice: &Notice) -> String {
    let team = &notice.team;
    let name = notice.member.as_ref().map(|member| sanitize_name(member.as_str())).unwrap_or_default();
    // A changed name could be mistaken for that of another member.
    let is_name_unchanged = notice.member.as_ref().is_some_and(|member| member.as_str() == name);
    let command = |verb: &str| match is_name_unchanged {
        true => format!("teamctl {verb} {name} -t {team}"),
        false => format!("teamctl status -t {team}"),
    };
    match &notice.kind {
        NoticeKind::RequestWaiting(MemberRequestKind::Plan) => {
            format!("{name}@{team} submits a plan: teamctl requests -t {team}")
        }
        NoticeKind::RequestWaiting(MemberRequestKind::Permission) => {
            format!("{name}@{team} asks for permission: teamctl requests -t {team}")
        }
        NoticeKind::AtDialog => format!("{name}@{team} waits at a dialog: {}", command("attach")),
        NoticeKind::Exited => format!("{name}@{team} has ended: {}", command("why")),
        NoticeKind::Suspended => format!("{name}@{team} is suspended: teamctl up --resume -t {team}"),
        NoticeKind::NoOutput(ms) => {
            let time = match *ms {
                ms @ 0..1_000 => format!("{ms} ms"),
                ms @ 1_000..60_000 => format!("{} s", ms / 1_000),
                ms => format!("{} min", ms / 60_000),
            };
            format!("{name}@{team} has written nothing for {time}: {}", command("why"))
        }
        NoticeKind::TurnsFailed { count, reason } => {
            let reason = sanitize_reason(reason);
            format!("{name}@{team} fails: {count} turns in a row ({reason}): {}", command("why"))
        }
        NoticeKind::Limited { local_time } => {
            format!("{name}@{team} is limited until {}: {}", sanitize_reason(local_time), command("why"))
        }
        NoticeKind::ExchangePaused { with, turns } => {
            let with = sanitize_name(with.as_str());
            format!(
                "{name}@{team} has answered {with} in {turns} turns, messages of {with} wait: {}",
                command("why")
            )
        }
        NoticeKind::BudgetExhausted if notice.member.is_some() => {
            format!("{name}@{team} has used its share of the budget: {}", command("why"))
        }
        NoticeKind::BudgetExhausted => format!("the budget of {team} is used up: teamctl status -t {team}"),
        NoticeKind::LeadSessionEnded => {
            format!("the session that led {team} has ended, lead it from here: teamctl lead {team}")
        }
        NoticeKind::HomeReplaced => {
            format!("{team} has another home now, which lacks what was done here: teamctl status -t {team}")
        }
        NoticeKind::TwoHomes => format!("{team} has two homes, end one: teamctl events -t {team}"),
        // This notice suggests no command for the team, because the team may be deleted soon:
        // `teamctl run` deletes its team when all tasks are done.
        NoticeKind::AllTasksDone(1) => format!("the one task of {team} is done"),
        NoticeKind::AllTasksDone(tasks) => format!("all {tasks} tasks of {team} are done"),
    }
}

/// The beginning of `text`. Characters with a meaning for tmux or shells are replaced.
fn sanitize_reason(text: &str) -> String {
    let to_safe_char = |c: char| if c.is_ascii_alphanumeric() || " :,-".contains(c) { c } else { '_' };
    text.chars().map(to_safe_char).take(MAX_REASON).collect()
}

fn sanitize_name(name: &str) -> String {
    let to_safe_char = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    // tmux would take a text that begins with a dash for an option.
    let sanitized: String =
        name.chars().map(to_safe_char).skip_while(|c| !c.is_ascii_alphanumeric()).take(MAX_NAME).collect();
    if sanitized.is_empty() { "unknown".to_owned() } else { sanitized }
}

/// How several notices are summarized: singular, plural, and which notices count.
type SummaryRule = (&'static str, &'static str, fn(&NoticeKind) -> bool);

const SUMMARY_RULES: [SummaryRule; 13] = [
    ("request waits for an answer", "requests wait for an answer", |kind| {
        matches!(kind, NoticeKind::RequestWaiting(_))
    }),
    ("member is at a dialog", "members are at dialogs", |kind| matches!(kind, NoticeKind::AtDialog)),
    ("member has ended", "members have ended", |kind| matches!(kind, NoticeKind::Exited)),
    ("member is suspended", "members are suspended", |kind| matches!(kind, NoticeKind::Suspended)),
    ("member has written nothing", "members have written nothing", |kind| {
        matches!(kind, NoticeKind::NoOutput(_))
    }),
    ("member fails turn after turn", "members fail turn after turn", |kind| {
        matches!(kind, NoticeKind::TurnsFailed { .. })
    }),
    ("member is at its usage limit", "members are at their usage limits", |kind| {
        matches!(kind, NoticeKind::Limited { .. })
    }),
    ("exchange of members is paused", "exchanges of members are paused", |kind| {
        matches!(kind, NoticeKind::ExchangePaused { .. })
    }),
    ("budget is used up", "budgets are used up", |kind| matches!(kind, NoticeKind::BudgetExhausted)),
    ("team has lost its lead", "teams have lost their leads", |kind| {
        matches!(kind, NoticeKind::LeadSessionEnded)
    }),
    ("team has another home", "teams have another home", |kind| matches!(kind, NoticeKind::HomeReplaced)),
    ("team has two homes", "teams have two homes", |kind| matches!(kind, NoticeKind::TwoHomes)),
    ("team is done", "teams are done", |kind| matches!(kind, NoticeKind::AllTasksDone(_))),
];

/// The longest name that is shown in full, in characters.
const MAX_NAME: usize = 28;

/// The longest reason of a failure that is shown in full, in characters.
const MAX_REASON: usize = 60;

/// How many suspended members are named.
const MAX_NAMED: usize = 4;

/// How many teams are named. The text then fits a tmux status line.
const MAX_TEAMS: usize = 2;
