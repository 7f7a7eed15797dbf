//! The arguments of `teamctl ask`, and the setup of an ask that is built from them.

use super::ask_records::AskRecords;
use crate::command_context::CommandContext;
use client::find_lead_session_of_caller::find_lead_session;
use client::worktrees_of_asks::ReadyAskWorktree;
use platform::ProcessEntry;
use profile::build_ask_launch::build_ask;
use profile::directory_environment_and_prompt::{read_prompt, resolve_directory};
use protocol::control_socket::Process;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::parse_duration;
use protocol::permission_mode::PermissionMode;
use protocol::team_and_member_names::TeamName;
use protocol::teamctl_ask_setup_and_record::{
    AskAttachment, AskId, AskLeadInbox, AskRecord, AskSetup, AskShownOutput, AskState, AskedOptions,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use store::now;
use uuid::Uuid;

/// The arguments of a question.
const QUESTION_OPTIONS: [&str; 16] = [
    "prompt",
    "profile",
    "agent_type",
    "model",
    "mode",
    "cwd",
    "worktree",
    "pane",
    "allow",
    "deny",
    "env",
    "timeout",
    "resume",
    "background",
    "each",
    "command",
];

/// Ask an agent one question, outside any team
///
/// Example: teamctl ask --profile codex 'Which files parse dates?'
///
/// The answer is printed on standard output. What the program reports before it answers is printed
/// on standard error. When the command returns, the program and every process that it started have
/// ended. Neither teamd nor tmux is needed. The program needs a profile with delivery turn;
/// `claude` stands for `claude-turn`.
///
/// Exit code 0: answered. 1: the program failed, or the ask was interrupted. 72: the program was not
/// started. 75: the timeout has expired.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl ask --mode plan -q --timeout 10m 'Is src/ tested?'\n  teamctl ask --resume ask-7f3a90c2 'And in tests/?'\n  teamctl ask --background --timeout 1h 'Review src/'\n  teamctl ask --each questions.txt -j 4\n  teamctl ask --end ask-7f3a90c2"
)]
pub(crate) struct AskArgs {
    /// Question; - reads standard input
    #[arg(required_unless_present_any = ["each", "command", "list", "end"])]
    pub(super) prompt: Option<String>,
    /// Profile of the agent program [default: default_profile in config.toml, else claude]
    #[arg(long, value_name = "PROFILE", conflicts_with = "command")]
    profile: Option<String>,
    /// Agent type. Explore and Plan are read-only. ROOT/agents/TYPE.md defines any other type
    #[arg(long, value_name = "T")]
    agent_type: Option<String>,
    /// Model of the agent
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// Permission mode of the agent
    #[arg(long, value_name = "MODE")]
    mode: Option<PermissionMode>,
    /// Directory in which the agent works [default: the current directory]
    #[arg(long, value_name = "D")]
    cwd: Option<PathBuf>,
    /// Work in a new git worktree and on a new branch, which are kept if they have changes
    #[arg(long)]
    worktree: bool,
    /// Show the program's output in a new tmux pane beside this one until it ends
    #[arg(long, conflicts_with = "each")]
    pub(super) pane: bool,
    /// Tool that the agent may use without asking; may be repeated
    #[arg(long, value_name = "TOOL")]
    allow: Vec<String>,
    /// Tool that the agent may not use; may be repeated
    #[arg(long, value_name = "TOOL")]
    deny: Vec<String>,
    /// Additional variable; the agent also gets the caller's environment; may be repeated
    #[arg(long, value_name = "K=V")]
    env: Vec<String>,
    /// Longest time for the answer, such as 30s or 10m [default: no limit]
    #[arg(long, value_name = "D", value_parser = parse_duration::parse)]
    timeout: Option<Duration>,
    /// Continue the session of an earlier ask, with its program and options
    #[arg(long, value_name = "ID", conflicts_with_all = ["profile", "agent_type", "model", "mode", "cwd", "worktree", "allow", "deny", "command", "each"])]
    resume: Option<String>,
    /// Print the id of the ask and do not wait: teamctl wait ID prints the answer. A lead session
    /// gets a message when the ask ends
    #[arg(long, conflicts_with = "each")]
    pub(super) background: bool,
    /// Ask each line of FILE, and print a JSON object for each answer
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt", "resume"])]
    pub(super) each: Option<PathBuf>,
    /// With --each: how many programs run at the same time
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64), requires = "each")]
    pub(super) jobs: u16,
    /// List the asks whose answers are kept, oldest first
    #[arg(long, conflicts_with_all = QUESTION_OPTIONS)]
    pub(super) list: bool,
    /// End an ask that runs, with all processes of its program
    #[arg(long, value_name = "ID", conflicts_with_all = QUESTION_OPTIONS, conflicts_with = "list")]
    pub(super) end: Option<String>,
    /// Pid of the MCP server with which the ask ends
    #[arg(long, value_name = "PID", hide = true)]
    starter: Option<u32>,
    /// Program to ask, and its arguments. It gets the question on standard input
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

impl AskArgs {
    /// Adds variables, as if they were values of `--env`.
    pub(super) fn with_env(mut self, variables: BTreeMap<String, String>) -> AskArgs {
        self.env.extend(variables.into_iter().map(|(name, value)| format!("{name}={value}")));
        self
    }
}

/// Builds the setup of a new ask. Everything that can be checked before the start is checked here.
pub(super) fn build_setup(
    context: &CommandContext,
    args: &AskArgs,
    prompt: String,
    attachment: AskAttachment,
) -> Result<AskSetup, ErrorReport> {
    let prompt = read_prompt(Some(prompt), None)?;
    let earlier = args.resume.as_deref().map(|id| earlier_ask(context, id)).transpose()?;
    let session_id = earlier.as_ref().and_then(|record| record.session_id.clone());
    let id = new_id();
    let options = earlier.map_or_else(|| asked_options(args, &id), |record| Ok(record.options))?;
    let timeout_ms = args.timeout.map(|timeout| timeout.as_millis().try_into().unwrap_or(u64::MAX));
    let starter = args.starter.map(starter_process).transpose()?;
    let lead_inbox = if args.background { lead_inbox(context, args)? } else { None };
    // Errors of the options are found before a worktree is created.
    let launch = build_ask(&context.root_path()?, &id, &options, &args.env)?;
    let mut setup = AskSetup {
        cwd: options.cwd.clone(),
        record: AskRecord {
            id,
            options: AskedOptions { profile: launch.profile, ..options },
            prompt,
            started_at: now(),
            shim: None,
            session_id: session_id.clone(),
            worktree: None,
            state: AskState::Running,
        },
        program: launch.program,
        env: launch.env,
        session_id,
        timeout_ms,
        shown_output: if args.pane { AskShownOutput::StdoutAndStderr } else { AskShownOutput::Stderr },
        attachment,
        starter,
        lead_inbox,
    };
    if let Some(ask) = setup.record.options.worktree.clone() {
        let ready = AskRecords::open(context)?.worktrees()?.create(&ask, &setup.cwd)?;
        move_into_worktree(context, args, &mut setup, ready)?;
    }
    Ok(setup)
}

/// Removes the worktree of an ask that cannot be started.
pub(super) fn remove_new_worktree(context: &CommandContext, setup: &AskSetup) {
    let worktrees = AskRecords::open(context).and_then(|records| records.worktrees()).ok();
    let new = worktrees.zip(setup.record.options.worktree.as_ref());
    new.map(|(worktrees, ask)| worktrees.remove_unless_unsaved(ask));
}

/// Changes `setup` so that the program runs in the new worktree `ready`. The program's command line
/// is built again, because it may contain the working directory.
fn move_into_worktree(
    context: &CommandContext,
    args: &AskArgs,
    setup: &mut AskSetup,
    ready: ReadyAskWorktree,
) -> Result<(), ErrorReport> {
    let options = AskedOptions { cwd: ready.cwd.clone(), ..setup.record.options.clone() };
    let launch = build_ask(&context.root_path()?, &setup.record.id, &options, &args.env)?;
    (setup.program, setup.env, setup.cwd) = (launch.program, launch.env, ready.cwd);
    setup.env.insert("TEAMD_BRANCH".to_owned(), ready.worktree.branch.clone());
    setup.record.worktree = Some(ready.worktree);
    setup.record.started_at = now();
    Ok(())
}

/// Returns the inbox of the lead that runs `teamctl ask`, so that the lead can be notified when the
/// ask ends. `None` if the caller is a person without a lead session, or an MCP server without a
/// team.
fn lead_inbox(context: &CommandContext, args: &AskArgs) -> Result<Option<AskLeadInbox>, ErrorReport> {
    let team = match args.starter {
        Some(_) => context.args.team.as_deref().and_then(|team| TeamName::parse(team).ok()),
        None => find_lead_session(&context.directories()?).map(|lead| lead.team),
    };
    let root = context.root_path()?;
    Ok(team.map(|team| AskLeadInbox { root, team }))
}

/// The MCP server with this pid.
fn starter_process(pid: u32) -> Result<Process, ErrorReport> {
    let start_time = ProcessEntry::start_time(pid).ok().flatten();
    start_time.map(|start_time| Process { pid, start_time }).ok_or_else(|| {
        ErrorReport::new(ErrorKind::Refused, format!("cannot ask: the starter {pid} has exited"))
            .with_help("ask again without --starter")
    })
}

/// A random id.
fn new_id() -> AskId {
    let (number, ..) = Uuid::new_v4().as_fields();
    AskId::new(number)
}

/// `id` names the worktree, if one is wanted.
fn asked_options(args: &AskArgs, id: &AskId) -> Result<AskedOptions, ErrorReport> {
    Ok(AskedOptions {
        profile: args.profile.clone(),
        command: args.command.clone(),
        cwd: resolve_directory(args.cwd.as_deref())?,
        worktree: args.worktree.then(|| id.clone()),
        agent_type: args.agent_type.clone(),
        model: args.model.clone(),
        mode: args.mode,
        allow: args.allow.clone(),
        deny: args.deny.clone(),
    })
}

/// The record of the ask whose session is continued.
fn earlier_ask(context: &CommandContext, id: &str) -> Result<AskRecord, ErrorReport> {
    let record = AskRecords::open(context)?.find(id)?;
    if record.state == AskState::Running {
        let message = format!("cannot continue {id}: it has no answer yet");
        return Err(ErrorReport::new(ErrorKind::Refused, message)
            .with_help(format!("wait for it with: teamctl wait {id}")));
    }
    if record.session_id.is_none() {
        let message = format!("cannot continue {id}: its program has no session that can be continued");
        return Err(ErrorReport::new(ErrorKind::Refused, message)
            .with_help("ask again without --resume, with the earlier answer in the question"));
    }
    Ok(record)
}
