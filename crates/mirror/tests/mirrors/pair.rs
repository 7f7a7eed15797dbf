//! A home and an annex.

use crate::end::{End, name, team_name};
use mirror::{FileChange, MirrorSide, are_messages_to_one_inbox};
use protocol::annex_link::{ItemPayload, LinkItem};
use protocol::hosts_file_entry::HostName;
use protocol::member_color::Color;
use protocol::team_config::{Member, TeamConfig, TeammateEntry};
use std::sync::Arc;
use tempfile::TempDir;

pub(crate) struct Pair {
    pub(crate) home: End,
    pub(crate) annex: End,
    _dir: TempDir,
}

impl Pair {
    /// A team at the home with the lead and bob, and its mirror.
    pub(crate) fn new() -> Pair {
        let dir = tempfile::tempdir().unwrap();
        let home = End::home(dir.path().join("home"));
        let annex = End::new(dir.path().join("annex"), MirrorSide::Annex);
        let mut pair = Pair { home, annex, _dir: dir };
        pair.home.root.create_team(&config()).unwrap();
        pair.home.add_team();
        pair.deliver_all();
        pair
    }

    /// The pair after the home has moved to the annex: the new home is connected to the old one.
    pub(crate) fn with_link_back(self) -> Pair {
        let side = MirrorSide::Home { annex: HostName::parse("laptop").unwrap() };
        let home = self.annex.with_other_link(side, "devbox.laptop");
        let annex = self.home.with_other_link(MirrorSide::Annex, "devbox.laptop");
        Pair { home, annex, _dir: self._dir }
    }

    /// The pair after the home has forgotten the annex and uses it again.
    pub(crate) fn with_next_generation(self) -> Pair {
        let side = MirrorSide::Home { annex: HostName::parse("devbox").unwrap() };
        let home = self.home.with_other_link(side, "home.devbox.2");
        let annex = self.annex.with_other_link(MirrorSide::Annex, "home.devbox.2");
        Pair { home, annex, _dir: self._dir }
    }

    /// Adds a member that the annex runs.
    pub(crate) fn join(&mut self, member: &str) {
        self.annex.team().add_member(&teammate(member)).unwrap();
        self.annex.changed(&FileChange::Config);
        self.deliver_all();
    }

    /// Delivers the next item of the home. Returns whether there was one.
    pub(crate) fn deliver_to_annex(&mut self) -> bool {
        deliver(&mut self.home, &mut self.annex)
    }

    /// Delivers the next item of the annex. Returns whether there was one.
    pub(crate) fn deliver_to_home(&mut self) -> bool {
        deliver(&mut self.annex, &mut self.home)
    }

    /// Delivers everything, also what is sent meanwhile.
    pub(crate) fn deliver_all(&mut self) {
        loop {
            self.home.accept_all();
            self.annex.accept_all();
            if !self.deliver_to_annex() && !self.deliver_to_home() {
                return;
            }
        }
    }

    /// Both ends compare all files until nothing is sent any more.
    pub(crate) fn settle(&mut self) {
        for _ in 0..3 {
            self.home.compare_all();
            self.annex.compare_all();
            self.deliver_all();
        }
    }
}

fn deliver(from: &mut End, to: &mut End) -> bool {
    if from.spool.is_empty() {
        return false;
    }
    let pairs = from.spool.iter().zip(from.spool.iter().skip(1));
    let is_group = |(first, next): &(&Arc<LinkItem>, &Arc<LinkItem>)| {
        are_messages_to_one_inbox(&first.payload, &next.payload)
    };
    let count = 1 + pairs.take_while(is_group).count();
    let items: Vec<&ItemPayload> = from.spool.iter().take(count).map(|item| &item.payload).collect();
    // After a kill, the link delivers the items again.
    if to.apply_group(&items).is_some() {
        from.stored.extend(from.spool.drain(..count));
    }
    true
}

fn config() -> TeamConfig {
    let team = team_name();
    TeamConfig {
        name: team.to_string(),
        description: Some("a survey".to_owned()),
        created_at: 1,
        lead_agent_id: format!("team-lead@{team}"),
        lead_session_id: "s".to_owned(),
        members: vec![Member::lead(&team, None, String::new(), "/".to_owned(), 1), teammate("bob")],
        hidden_pane_ids: Vec::new(),
    }
}

pub(crate) fn teammate(member: &str) -> Member {
    let entry = TeammateEntry {
        name: name(member),
        agent_type: None,
        model: String::new(),
        prompt: "do it".to_owned(),
        color: Color::for_joined_count(1),
        plan_mode_required: false,
        joined_at: 2,
        tmux_pane_id: "%1".to_owned(),
        cwd: "/".to_owned(),
        backend_type: "tmux".to_owned(),
        worktree_path: None,
    };
    Member::teammate(&team_name(), entry)
}
