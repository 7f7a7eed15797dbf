//! The members in config.json. The annex reports the members that it runs, and the home sends all
//! others.

use crate::config_changes::{ConfigPurpose, config_item};
use crate::json_fields::{Fields, changed_fields, parse_entry, to_fields};
use crate::team_mirror::TeamMirror;
use protocol::annex_link::ItemPayload;
use protocol::hosts_file_entry::{HOME_HOST, HostName};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::{Member, TeamConfig};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use store::{Error, Root, Team};

impl TeamMirror {
    /// At the home: the item that brings the config to this annex. The item has the whole config,
    /// or only the changes since the config that was sent last. It leaves out the members that the
    /// annex runs. `None` if there is nothing to send. `version` is the number of the item. `epoch`
    /// is the epoch of the team's home.
    pub(crate) fn config_for_annex(
        &mut self,
        annex: &HostName,
        (version, epoch): (u64, u64),
        purpose: ConfigPurpose,
    ) -> Result<Option<ItemPayload>, Error> {
        let (team, config) = (self.name(), self.team.cached_config()?);
        Ok(config_item(&mut self.sent_config, (team, config), annex, (version, epoch), purpose))
    }

    /// At the annex: the members that run here, without the lead. `None` if they were sent last.
    pub(crate) fn members_for_home(&mut self) -> Result<Option<ItemPayload>, Error> {
        let config = self.team.cached_config()?;
        let own = config.members.iter().filter(|member| member.host.is_none() && !member.name.is_lead());
        let own: BTreeMap<MemberName, Fields> =
            own.map(|member| (member.name.clone(), to_fields(member))).collect();
        if self.members_are_sent && own == self.members {
            return Ok(None);
        }
        self.members.clone_from(&own);
        self.members_are_sent = true;
        let members = own.into_values().collect();
        Ok(Some(ItemPayload::Members { team: self.name(), created_at: self.created_at, members }))
    }

    /// At the home: lists the members of the annex in config.json, with the annex's name as their
    /// host.
    pub(crate) fn store_members(&mut self, annex: &HostName, members: &[Fields]) -> Result<(), Error> {
        let mut listed: Vec<Member> = members.iter().filter_map(parse_entry).collect();
        listed.retain(|member| MemberName::parse(member.name.as_str()).is_ok() && !member.name.is_lead());
        listed.iter_mut().for_each(|member| *member = on_host(member, annex.as_str()));
        let is_of_annex = |member: &Member| member.host.as_deref() == Some(annex.as_str());
        update_members(&self.team, is_of_annex, &listed)?;
        let before = std::mem::take(&mut self.members);
        self.load_members(annex)?;
        self.note_new_members(&before);
        Ok(())
    }

    /// Notes that the inboxes of new members are to be compared.
    pub(crate) fn note_new_members(&mut self, before: &BTreeMap<MemberName, Fields>) {
        let new = self.members.keys().filter(|name| !before.contains_key(*name));
        self.uncompared.extend(new.cloned());
    }

    /// At the home: reads from config.json which members the annex runs. The annex's own report is
    /// not used, because it may also list a member whose name is taken by a member on another host.
    pub(crate) fn load_members(&mut self, annex: &HostName) -> Result<(), Error> {
        let config = self.team.cached_config()?;
        let members = config.members.iter().filter(|member| member.host.as_deref() == Some(annex.as_str()));
        self.members = members.map(|member| (member.name.clone(), to_fields(member))).collect();
        Ok(())
    }

    /// At the annex: writes the home's config into the mirror's `config.json`: the members of the
    /// home and of other annexes, the description and the lead session.
    pub(crate) fn store_config(&mut self, config: &TeamConfig) -> Result<(), Error> {
        update_members(&self.team, |member| member.host.is_some(), &members_elsewhere(config))?;
        let fields = [
            ("description", config.description.clone().map_or(Value::Null, Value::from)),
            ("leadSessionId", Value::from(config.lead_session_id.clone())),
        ];
        let now = self.team.cached_config()?;
        if now.description != config.description || now.lead_session_id != config.lead_session_id {
            self.team.set_fields(&fields)?;
        }
        Ok(())
    }
}

/// At the annex: makes the mirror of a team.
pub(crate) fn create_mirror(root: &Root, config: &TeamConfig, mark: &str) -> Result<(), Error> {
    let name = TeamName::parse(&config.name)?;
    let config = TeamConfig { members: members_elsewhere(config), ..config.clone() };
    // The marker file is written first, so that a crash leaves no mirror without it.
    root.mark_as_mirror(&name, mark)?;
    root.create_team(&config).map(drop)
}

/// The members of a config from the home, as the annex lists them.
fn members_elsewhere(config: &TeamConfig) -> Vec<Member> {
    let elsewhere = |member: &Member| on_host(member, member.host.as_deref().unwrap_or(HOME_HOST));
    config.members.iter().map(elsewhere).collect()
}

/// The entry of a member that runs on `host`, for the config.json of this host. The entry has no
/// pane id, because on this host the id may belong to another pane, and a program could close that
/// pane by mistake.
fn on_host(member: &Member, host: &str) -> Member {
    let tmux_pane_id = String::new();
    Member { host: Some(host.to_owned()), tmux_pane_id, backend_type: None, ..member.clone() }
}

/// Replaces the entries for which `is_listed` is true by the entries in `listed`. An entry in
/// `listed` is left out if one of the remaining entries has its name.
fn update_members(team: &Team, is_listed: impl Fn(&Member) -> bool, listed: &[Member]) -> Result<(), Error> {
    let config = team.cached_config()?;
    let present: HashSet<&MemberName> = config.members.iter().map(|member| &member.name).collect();
    let wanted: HashSet<&MemberName> = listed.iter().map(|member| &member.name).collect();
    // Of several entries of one name, the first counts.
    let mut old: HashMap<&MemberName, &Member> = HashMap::new();
    for member in config.members.iter().filter(|member| is_listed(member)) {
        old.entry(&member.name).or_insert(member);
    }
    let ended = config.members.iter().filter(|member| is_listed(member) && !wanted.contains(&member.name));
    let ended: Vec<MemberName> = ended.map(|member| member.name.clone()).collect();
    if !ended.is_empty() {
        team.remove_members(&ended)?;
    }
    let new: Vec<Member> = listed.iter().filter(|member| !present.contains(&member.name)).cloned().collect();
    if !new.is_empty() {
        team.add_missing_members(&new)?;
    }
    for member in listed {
        // Most members have not changed.
        let Some(old) = old.get(&member.name).filter(|old| !old.is_identical(member)) else { continue };
        let fields = changed_fields(&to_fields(*old), &to_fields(member));
        let fields: Vec<(&str, Value)> =
            fields.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        team.set_member_fields(&member.name, &fields)?;
    }
    Ok(())
}
