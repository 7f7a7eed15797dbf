//! Changes of the config: the home makes them from two versions of its config.json, and the annex
//! applies them to the config that the home has sent before.

use crate::json_fields::{changed_fields, parse_config, parse_entry, set_fields, to_fields};
use protocol::annex_link::{ConfigChange, ConfigForAnnex, ItemPayload, MemberChange, MemberEntry};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::TeamName;
use protocol::team_config::{Member, TeamConfig};
use std::sync::Arc;
use store::CachedConfig;

/// At the home: the config that was sent last, and the number of the item with the config. The
/// links to all annexes share one copy of the config.
#[derive(Debug)]
pub(crate) struct SentConfig {
    config: Arc<CachedConfig>,
    version: u64,
    /// The epoch of the home. Only the whole config has it.
    epoch: u64,
}

/// At the annex: the config as the home has sent it.
#[derive(Debug)]
pub(crate) struct HomeConfig {
    pub(crate) config: TeamConfig,
    pub(crate) version: u64,
}

/// The config after a change.
#[derive(Debug)]
pub(crate) enum ConfigAfterChange {
    /// The change was made before.
    Stored,
    Next(HomeConfig),
    /// The config before the change is not known here.
    BaseUnknown,
}

/// Why a config is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigPurpose {
    /// The file may have changed. If it has not, nothing is sent.
    Update,
    /// Used when all files are compared. If the config has not changed, an empty change is sent.
    /// The empty change makes the annex repair the entries of its config.json, or ask for the whole
    /// config if the annex has lost it.
    Comparison,
}

/// At the home: the item with the config for an annex. If `sent` is known, the item has only what
/// has changed since `sent`. `None` if there is nothing to send. `version` is the number of the
/// item. `epoch` is the epoch of the team's home.
pub(crate) fn config_item(
    sent: &mut Option<SentConfig>,
    (team, config): (TeamName, Arc<CachedConfig>),
    annex: &HostName,
    (version, epoch): (u64, u64),
    purpose: ConfigPurpose,
) -> Option<ItemPayload> {
    let change = sent.as_ref().and_then(|sent| sent.change_to(&config, annex, (version, epoch)));
    if let (Some(change), Some(sent), ConfigPurpose::Update) = (&change, sent.as_mut(), purpose)
        && change.is_empty()
    {
        sent.config = config;
        return None;
    }
    let item = match change {
        Some(change) => ItemPayload::TeamChange { team, change },
        None => ItemPayload::Team { team, config: whole_config(&config, annex), version, epoch },
    };
    *sent = Some(SentConfig { config, version, epoch });
    Some(item)
}

fn whole_config(config: &CachedConfig, annex: &HostName) -> ConfigForAnnex {
    let TeamConfig { name, description, created_at, lead_agent_id, lead_session_id, .. } =
        without_members(config);
    let members = entries_elsewhere(&config.members, config.member_entries(), annex);
    ConfigForAnnex { name, description, created_at, lead_agent_id, lead_session_id, members }
}

/// The entries of the members that do not run at the annex. They share the texts of `entries`.
fn entries_elsewhere(members: &[Member], entries: &[MemberEntry], annex: &HostName) -> Vec<MemberEntry> {
    let pairs = members.iter().zip(entries).filter(|(member, _)| is_elsewhere(member, annex));
    pairs.map(|(_, entry)| entry.clone()).collect()
}

fn is_elsewhere(member: &Member, annex: &HostName) -> bool {
    member.host.as_deref() != Some(annex.as_str())
}

/// The fields of the team that an annex gets.
fn without_members(config: &TeamConfig) -> TeamConfig {
    TeamConfig {
        name: config.name.clone(),
        description: config.description.clone(),
        created_at: config.created_at,
        lead_agent_id: config.lead_agent_id.clone(),
        lead_session_id: config.lead_session_id.clone(),
        members: Vec::new(),
        hidden_pane_ids: Vec::new(),
    }
}

impl SentConfig {
    /// What has changed for this annex. `None` if the whole config must be sent.
    fn change_to(
        &self,
        config: &Arc<CachedConfig>,
        annex: &HostName,
        (version, epoch): (u64, u64),
    ) -> Option<ConfigChange> {
        if epoch != self.epoch {
            return None;
        }
        let mut change = ConfigChange { base: self.version, version, ..ConfigChange::default() };
        if Arc::ptr_eq(&self.config, config) {
            return Some(change);
        }
        // It may be another team.
        if config.created_at != self.config.created_at {
            return None;
        }
        let [before, after] = [&self.config, config].map(|config| to_fields(&without_members(config)));
        change.fields = changed_fields(&before, &after).into_iter().collect();
        let difference = config.members_since(&self.config)?;
        let removed = difference.removed.iter().filter(|member| is_elsewhere(member, annex));
        change.removed = removed.map(|member| member.name.to_string()).collect();
        change.added = entries_elsewhere(&difference.added, difference.added_entries(), annex);
        for (before, after) in &difference.changed {
            match (is_elsewhere(before, annex), is_elsewhere(after, annex)) {
                (true, true) => change.changed.push(member_change(before, after)),
                (true, false) => change.removed.push(before.name.to_string()),
                // Its place is between other members.
                (false, true) => return None,
                (false, false) => {}
            }
        }
        Some(change)
    }
}

fn member_change(before: &Member, after: &Member) -> MemberChange {
    let fields = changed_fields(&to_fields(before), &to_fields(after)).into_iter().collect();
    MemberChange { name: before.name.to_string(), fields }
}

impl HomeConfig {
    /// Applies a change to the config that the home has sent before.
    pub(crate) fn apply(before: Option<&HomeConfig>, change: &ConfigChange) -> ConfigAfterChange {
        match before {
            Some(before) if before.version == change.version => ConfigAfterChange::Stored,
            Some(before) if before.version == change.base => match changed_config(&before.config, change) {
                Some(config) => ConfigAfterChange::Next(HomeConfig { config, version: change.version }),
                None => ConfigAfterChange::BaseUnknown,
            },
            _ => ConfigAfterChange::BaseUnknown,
        }
    }
}

/// The config after a change. `None` if the change does not fit.
fn changed_config(before: &TeamConfig, change: &ConfigChange) -> Option<TeamConfig> {
    let mut fields = to_fields(&without_members(before));
    set_fields(&mut fields, &change.fields);
    let mut members = before.members.clone();
    let is_kept = |member: &Member| !change.removed.iter().any(|name| is_named(member, name));
    if !change.removed.is_empty() {
        members.retain(is_kept);
    }
    for MemberChange { name, fields } in &change.changed {
        let member = members.iter_mut().find(|member| is_named(member, name))?;
        let mut entry = to_fields(member);
        set_fields(&mut entry, fields);
        *member = parse_entry(&entry)?;
    }
    for entry in &change.added {
        members.push(entry.to_member().ok()?);
    }
    let config = parse_config(&fields).ok()?;
    Some(TeamConfig { members, ..config })
}

fn is_named(member: &Member, name: &str) -> bool {
    member.name.as_str().eq_ignore_ascii_case(name)
}
