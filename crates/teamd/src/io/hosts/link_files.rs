//! Opens the files of a link.

use crate::core::jobs::host_jobs::LinkId;
use link::{LinkIdentity, LinkRole, SpoolContents, SpoolFile};
use mirror::{Mirror, MirrorSide};
use protocol::control_socket::{ConnectHomeRequest, FIRST_LINK_GENERATION, HomeId};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::state_file_names::{HOMES_DIR, LINKS_DIR};
use std::path::PathBuf;
use store::{Durability, Root, StateDir};

/// The file of the items that the other host has not acknowledged.
const SPOOL: &str = "spool";

/// The directory of the state of the mirrors.
const MIRROR_DIR: &str = "mirror";

/// The epoch that each end of a link sends in its first message. It is always the same and has no
/// effect, because each team has its own epoch.
const FIRST_EPOCH: u64 = 1;

/// Opens the files of links. All links of the daemon share these fields.
#[derive(Debug, Clone)]
pub(super) struct LinkFiles {
    pub(super) root: Root,
    pub(super) state_dir: PathBuf,
    pub(super) durability: Durability,
    /// Identity of this home.
    pub(super) home: HomeId,
    /// The generation of the link, if it goes to an annex.
    pub(super) generation: u32,
}

impl LinkFiles {
    /// The directory of a link. Creates it if it is missing.
    ///
    /// # Errors
    ///
    /// If it can't be opened.
    pub(super) fn directory(&self, link: &LinkId) -> Result<StateDir, ErrorReport> {
        let path = match link {
            LinkId::ToAnnex(host) => {
                self.state_dir.join(LINKS_DIR).join(of_generation(host.to_string(), self.generation))
            }
            LinkId::ToHome(home) => self.state_dir.join(HOMES_DIR).join(directory_name(home)),
        };
        Ok(StateDir::open(&path)?)
    }

    /// Removes the directories of the earlier generations of the link to a host. If that fails, the
    /// error is only logged, because no link uses them.
    pub(super) fn remove_earlier_generations(&self, host: &HostName) {
        let earlier = FIRST_LINK_GENERATION..self.generation;
        let removed = StateDir::open(&self.state_dir.join(LINKS_DIR)).and_then(|links| {
            let mut names = earlier.map(|generation| of_generation(host.to_string(), generation));
            names.try_for_each(|name| links.remove_subdir(&name))
        });
        removed.unwrap_or_else(|error| tracing::warn!("{error}"));
    }

    /// Removes the temporary files that killed daemons have left. Must be called before this daemon
    /// writes files of the link. If a file can't be removed, the error is only logged, because such
    /// a file does no harm.
    ///
    /// # Errors
    ///
    /// If a directory can't be opened.
    pub(super) fn remove_temp_files(&self, link: &LinkId) -> Result<(), ErrorReport> {
        let directory = self.directory(link)?;
        for dir in [directory.open_subdir(MIRROR_DIR)?, directory] {
            let names = dir.names()?;
            let temp_files = names.iter().filter(|name| name.starts_with('.') && name.contains(".tmp."));
            temp_files.for_each(|file| dir.remove(file).unwrap_or_else(|error| tracing::warn!("{error}")));
        }
        Ok(())
    }

    /// Opens the state of the teams that are mirrored over a link. The spool of the link must be
    /// open already.
    ///
    /// # Errors
    ///
    /// If the state can't be read or written.
    pub(super) fn open_mirror(&self, link: &LinkId, spool: &SpoolContents) -> Result<Mirror, ErrorReport> {
        let side = match link {
            LinkId::ToAnnex(host) => (MirrorSide::Home { annex: host.clone() }, host.to_string()),
            LinkId::ToHome(home) => (MirrorSide::Annex, directory_name(home)),
        };
        let state = self.directory(link)?.open_subdir(MIRROR_DIR)?;
        Mirror::open(side, self.root.clone(), state, (&spool.items, spool.last_number()))
    }

    /// Opens the spool of a link.
    ///
    /// # Errors
    ///
    /// If the spool can't be read or is damaged.
    pub(super) fn open_spool(&self, link: &LinkId) -> Result<(SpoolFile, SpoolContents), ErrorReport> {
        SpoolFile::open(self.directory(link)?, SPOOL, self.durability).map_err(|error| match error {
            link::OpenError::Store(error) => error.into(),
            link::OpenError::Damaged(error) => ErrorReport::new(ErrorKind::InvalidData, error.to_string()),
        })
    }

    /// The identity that this end of a link sends in its hello.
    pub(super) fn identity(&self, link: &LinkId) -> LinkIdentity {
        let (role, home, annex) = match link {
            LinkId::ToAnnex(host) => (LinkRole::Home { epoch: FIRST_EPOCH }, &self.home, host),
            LinkId::ToHome(ConnectHomeRequest { home, annex, .. }) => (LinkRole::Annex, home, annex),
        };
        LinkIdentity {
            role,
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            root: home.as_str().to_owned(),
            annex: annex.as_str().to_owned(),
        }
    }

    /// The homes that have connected to this host before.
    ///
    /// # Errors
    ///
    /// If their directory can't be read.
    pub(super) fn known_homes(&self) -> Result<Vec<LinkId>, ErrorReport> {
        let names = StateDir::open(&self.state_dir.join(HOMES_DIR))?.names()?;
        Ok(names.iter().filter_map(|name| parse_directory_name(name)).map(LinkId::ToHome).collect())
    }
}

/// The name of a link's directory. The first generation has no number.
fn of_generation(name: String, generation: u32) -> String {
    if generation == FIRST_LINK_GENERATION { name } else { format!("{name}.{generation}") }
}

/// The directory of a link to a home. No part of its name contains a full stop.
fn directory_name(home: &ConnectHomeRequest) -> String {
    of_generation(format!("{}.{}", home.home.as_str(), home.annex), home.generation)
}

fn parse_directory_name(name: &str) -> Option<ConnectHomeRequest> {
    let (home, annex) = name.split_once('.')?;
    let (annex, generation) = match annex.split_once('.') {
        Some((annex, generation)) => (annex, generation.parse().ok()?),
        None => (annex, FIRST_LINK_GENERATION),
    };
    Some(ConnectHomeRequest { home: HomeId::parse(home)?, annex: HostName::parse(annex)?, generation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_name_is_parsed_back() {
        for (generation, name) in [(1, "0f-1.dev_box-2"), (2, "0f-1.dev_box-2.2")] {
            let home = ConnectHomeRequest {
                home: HomeId::parse("0f-1").unwrap(),
                annex: HostName::parse("dev_box-2").unwrap(),
                generation,
            };
            assert_eq!(directory_name(&home), name);
            assert_eq!(parse_directory_name(name), Some(home));
        }
        assert_eq!(parse_directory_name("x"), None);
        assert_eq!(parse_directory_name("A.devbox"), None);
    }
}
