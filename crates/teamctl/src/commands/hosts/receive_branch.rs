//! The side of a team's home when the branch of a member on another host is fetched.

use super::host_connection::{AnswerDeadline, HostConnection};
use super::transport_command::OWN_VERSION;
use protocol::branch_exchange::{BundleReply, KnownCommits, OfferReply, OfferedBranch, Receipt};
use protocol::command_for_other_host::{HostCommand, HostInput};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::{Host, HostName};
use protocol::team_and_member_names::{MemberName, TeamName};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;
use worktree::{Error, GitEnvironment, known_commits, receive_branch};

/// How long the host may take for each answer and for each part of the bundle.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long git may take there to write the bundle.
const BUNDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// How long the whole fetch may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(1800);
/// How many lines other programs may print before an answer, such as a start file of the shell.
const MAX_LINES_BEFORE: usize = 200;

/// The branch that is fetched.
#[derive(Debug, Clone, Copy)]
pub(super) struct BranchToReceive<'a> {
    pub(super) team: &'a TeamName,
    pub(super) member: &'a MemberName,
    pub(super) host: (&'a HostName, &'a Host),
    /// The git directory here that all worktrees of the repository share.
    pub(super) repository: &'a Path,
    /// Gets the bundle.
    pub(super) bundle: &'a Path,
    pub(super) environment: &'a GitEnvironment,
}

impl BranchToReceive<'_> {
    /// Fetches the member's branch, and moves the branch of the same name here forward. `None` if
    /// the member has no worktree on the host.
    ///
    /// # Errors
    ///
    /// The error names the host and the member. After an error, no branch here has changed.
    pub(super) fn receive(&self) -> Result<Option<OfferedBranch>, ErrorReport> {
        let mut connection = self.connect()?;
        connection.set_deadline(AnswerDeadline::after(FETCH_TIMEOUT));
        let branch = match self.read_answer(&mut connection, ANSWER_TIMEOUT)? {
            OfferReply::Branch(branch) => branch,
            OfferReply::NoWorktree => return Ok(None),
            OfferReply::NoBranch(name) => {
                return Err(self.error(ErrorKind::Refused, &format!("there is no branch {name} there")));
            }
            OfferReply::Failed(error) => return Err(self.error_of_host(error)),
        };
        let Some(tip) = branch.commits.first().cloned() else {
            return Err(self.error(ErrorKind::Io, "the host has offered no commit"));
        };
        let known = self.known(&branch)?;
        send(&mut connection, &KnownCommits { known })?;
        let bundle = match self.read_answer(&mut connection, BUNDLE_TIMEOUT)? {
            BundleReply::Bytes(0) => None,
            BundleReply::Bytes(length) => {
                self.read_bundle(&mut connection, length)?;
                Some(self.bundle)
            }
            BundleReply::Failed(error) => return Err(self.error_of_host(error)),
        };
        receive_branch(self.repository, (&branch.branch, &tip), bundle, self.environment)
            .map_err(|error| self.git_error(error))?;
        send(&mut connection, &Receipt { received: tip })?;
        // The branch is here, also if the host does not note it.
        self.read_answer::<Receipt>(&mut connection, ANSWER_TIMEOUT).ok();
        Ok(Some(branch))
    }

    /// Starts `teamctl hosts send-branch` there.
    fn connect(&self) -> Result<HostConnection, ErrorReport> {
        let (name, host) = self.host;
        let words = ["-t", self.team.as_str(), "hosts", "send-branch", self.member.as_str()];
        let arguments = words.map(str::to_owned).to_vec();
        let (host_name, root) = (name.clone(), host.root.clone());
        let env = BTreeMap::new();
        let command = HostCommand { host: host_name, root, team: None, arguments, env };
        let mut connection =
            HostConnection::open(name, host, &[&host.teamctl, "hosts", "exec", OWN_VERSION])?;
        connection.send_bytes(&HostInput::Command(command).to_frame().expect("the command is short"));
        Ok(connection)
    }

    /// Returns those of the offered commits that the repository here has.
    ///
    /// # Errors
    ///
    /// `Refused` if the repository has none of them: the two repositories are not related.
    fn known(&self, branch: &OfferedBranch) -> Result<Vec<String>, ErrorReport> {
        let offered: Vec<String> = branch.commits.iter().chain([&branch.base_commit]).cloned().collect();
        let known = known_commits(self.repository, &offered, self.environment);
        let known = known.map_err(|error| self.git_error(error))?;
        if !known.is_empty() {
            return Ok(known);
        }
        let (here, there) = (self.repository.display(), branch.repository.display());
        let reason = format!("its repository there, {there}, has no recent commit of {here}");
        Err(self.error(ErrorKind::Refused, &reason).with_help(format!(
            "if they are clones of one repository, let both have its newest commits; else give the member a \
             clone there, or type the command in a clone of {there}"
        )))
    }

    /// Reads the bundle into its file.
    fn read_bundle(&self, connection: &mut HostConnection, length: u64) -> Result<(), ErrorReport> {
        let io_error = |error: std::io::Error| ErrorReport::from_io("write", self.bundle, &error);
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(self.bundle);
        let (mut file, mut missing) = (file.map_err(io_error)?, length);
        while missing > 0 {
            let bytes = connection.receive_bytes(&self.action(), AnswerDeadline::after(ANSWER_TIMEOUT))?;
            // The newline after the bundle is no part of it.
            let length = bytes.len().min(usize::try_from(missing).unwrap_or(usize::MAX));
            file.write_all(&bytes[..length]).map_err(io_error)?;
            missing -= length as u64;
        }
        Ok(())
    }

    fn read_answer<T: DeserializeOwned>(
        &self,
        connection: &mut HostConnection,
        timeout: Duration,
    ) -> Result<T, ErrorReport> {
        let deadline = AnswerDeadline::after(timeout);
        for _ in 0..MAX_LINES_BEFORE {
            let line = connection.receive_line(&self.action(), deadline)?;
            if let Ok(answer) = serde_json::from_str(&line) {
                return Ok(answer);
            }
        }
        Err(self.error(ErrorKind::Io, "the host has given no answer that teamctl understands"))
    }

    /// What a connection is needed for: with the name of the host, it is a whole.
    fn action(&self) -> String {
        format!("fetch the branch of {} from", self.member)
    }

    fn error(&self, kind: ErrorKind, reason: &str) -> ErrorReport {
        ErrorReport::new(kind, format!("cannot {} {}: {reason}", self.action(), self.host.0))
    }

    /// `NotFound` would say that the team is deleted here.
    fn error_of_host(&self, error: ErrorReport) -> ErrorReport {
        let kind = match error.kind {
            ErrorKind::NotFound => ErrorKind::Refused,
            kind => kind,
        };
        ErrorReport { help: error.help, ..self.error(kind, &error.message) }
    }

    fn git_error(&self, error: Error) -> ErrorReport {
        let reason = match &error {
            Error::OwnCommits { branch, .. } => {
                format!("the branch {branch} here has commits that {} does not have", self.host.0)
            }
            Error::BranchTaken { branch, worktree } => {
                format!("the branch {branch} is checked out here, in {}", worktree.display())
            }
            error => error.to_string(),
        };
        let help = match &error {
            Error::BranchTaken { .. } => Some("switch to another branch there".to_owned()),
            _ => None,
        };
        let report = ErrorReport::from(error);
        ErrorReport { help: help.or(report.help), ..self.error(report.kind, &reason) }
    }
}

fn send(connection: &mut HostConnection, value: &impl Serialize) -> Result<(), ErrorReport> {
    let mut line = serde_json::to_vec(value).expect("texts can be written as JSON");
    line.push(b'\n');
    let frame = HostInput::Data(line).to_frame();
    let too_long = || ErrorReport::new(ErrorKind::Internal, "cannot send an answer that is too long");
    connection.send_bytes(&frame.ok_or_else(too_long)?);
    Ok(())
}
