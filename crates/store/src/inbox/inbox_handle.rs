//! The handle of one agent's inbox: its team and its file.

use crate::team_file_names::INBOXES_DIR;
use crate::team_handle::Team;
use protocol::team_and_member_names::MemberName;
use std::path::PathBuf;

/// One agent's inbox.
#[derive(Debug, Clone)]
pub struct Inbox {
    pub(super) team: Team,
    pub(super) file: String,
}

impl Team {
    /// The inbox of an agent. The agent need not be a member, and the file need not exist.
    pub fn inbox(&self, name: &MemberName) -> Inbox {
        Inbox { team: self.clone(), file: format!("{}.json", name.file_stem()) }
    }
}

impl Inbox {
    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    /// The name of the inbox's file.
    pub(crate) fn file_name(&self) -> &str {
        &self.file
    }

    /// The path of the inbox's file.
    pub fn path(&self) -> PathBuf {
        self.team.dir().join(INBOXES_DIR).join(&self.file)
    }
}
