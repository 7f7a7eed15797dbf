//! One agent's inbox: which file it is, in which team.

use crate::layout::INBOXES_DIR;
use crate::team::Team;
use protocol::name::AgentName;
use std::path::PathBuf;

/// An agent's inbox.
#[derive(Debug, Clone)]
pub struct Inbox {
    pub(super) team: Team,
    pub(super) file: String,
}

impl Team {
    /// The inbox of an agent, whether it is a member or not; the file may not be there yet.
    pub fn inbox(&self, name: &AgentName) -> Inbox {
        Inbox { team: self.clone(), file: format!("{}.json", name.file_stem()) }
    }
}

impl Inbox {
    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    /// The name of its file.
    pub(crate) fn file_name(&self) -> &str {
        &self.file
    }

    /// Its file.
    pub fn path(&self) -> PathBuf {
        self.team.dir().join(INBOXES_DIR).join(&self.file)
    }
}
