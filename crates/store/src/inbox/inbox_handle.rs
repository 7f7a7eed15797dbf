//! The handle of one agent's inbox: its team and its file.

use crate::error::Error;
use crate::team_file_names::{INBOXES_DIR, is_inbox_file};
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

    /// The names of all members that have an inbox file. An inbox file whose name is not a valid
    /// name of a member is left out.
    ///
    /// # Errors
    /// `Io`.
    pub fn inbox_owners(&self) -> Result<Vec<MemberName>, Error> {
        let Some(dir) = self.inboxes_dir()? else { return Ok(Vec::new()) };
        let names = dir.file_names()?;
        let stems =
            names.iter().filter(|name| is_inbox_file(name)).filter_map(|name| name.strip_suffix(".json"));
        Ok(stems.filter_map(|stem| MemberName::parse(stem).ok()).collect())
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
