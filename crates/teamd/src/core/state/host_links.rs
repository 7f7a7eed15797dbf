//! The links to other hosts, and the clients that wait for them.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::jobs::host_jobs::LinkId;
use crate::core::state::branch_fetches::BranchFetches;
use crate::core::state::home_move::{HomeMove, HomeMoveStep};
use protocol::annex_link::HomeBudget;
use protocol::control_socket::{ConfirmTaskRequest, HostContact, HostStatus, MemberHost};
use protocol::event_log_line::Event;
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_home::{HomeState, MovedHome, MovingHome, TeamHome};
use std::collections::{BTreeMap, BTreeSet};

/// All links and their waiting clients.
#[derive(Debug, Default)]
pub(crate) struct HostLinks {
    pub(crate) links: BTreeMap<LinkId, HostLink>,
    pub(crate) barrier_waiters: Vec<BarrierWaiter>,
    pub(crate) task_waiters: Vec<TaskWaiter>,
    pub(crate) reserved_slots: Vec<ReservedSlot>,
    /// The teams whose home has moved away from here.
    pub(crate) moved_homes: BTreeMap<TeamName, MovedHome>,
    /// The teams whose home is being moved away from here.
    pub(crate) home_moves: BTreeMap<TeamName, HomeMove>,
    /// The hosts that are being forgotten, each with the client that waits for it.
    pub(crate) hosts_being_forgotten: BTreeMap<HostName, ConnId>,
    /// The hosts that were forgotten and not used since. The threads of the ended link to such a
    /// host may still send events to the core, which ignores them.
    pub(crate) forgotten_hosts: BTreeSet<HostName>,
    /// The second homes of teams that people were told of, each with the epoch of both homes.
    pub(crate) reported_homes: BTreeSet<(TeamName, HostName, u64)>,
    pub(crate) event_numbers: EventNumbers,
    pub(crate) branch_fetches: BranchFetches,
}

/// The numbers of the events that annexes send to homes.
#[derive(Debug, Default)]
pub(crate) struct EventNumbers {
    /// On an annex: the last number that it has given to an event. After a restart, the daemon
    /// reads this number from the event log. A new number is at least the present time in
    /// milliseconds since the epoch, so that the numbers increase even if the event log was
    /// removed.
    pub(crate) last: u64,
    /// At the home: the number of the last event that is logged, by the team and the annex.
    pub(crate) logged: BTreeMap<(TeamName, String), u64>,
}

impl EventNumbers {
    /// The number of the next event.
    pub(crate) fn next(&mut self, now: u64) -> u64 {
        self.last = now.max(self.last + 1);
        self.last
    }

    /// Notes an event of the event log.
    pub(crate) fn note_logged(&mut self, event: &Event) {
        match (&event.team, &event.on_host, event.number) {
            (Some(team), Some(host), Some(number)) => {
                let last = self.logged.entry((team.clone(), host.clone())).or_default();
                *last = number.max(*last);
            }
            (_, None, Some(number)) => self.last = self.last.max(number),
            _ => {}
        }
    }
}

/// One link.
#[derive(Debug)]
pub(crate) struct HostLink {
    /// The teams that are mirrored.
    pub(crate) teams: BTreeSet<TeamName>,
    /// The members that config.json lists for the annex, by team. Empty if the other end is a home.
    pub(crate) members: BTreeMap<TeamName, BTreeSet<MemberName>>,
    /// At the annex: the budgets that the home has sent, by team.
    pub(crate) budgets: BTreeMap<TeamName, HomeBudget>,
    pub(crate) connection: LinkConnection,
    /// Why the other host cannot write its files. `None` if it can, and without contact.
    pub(crate) storage_error: Option<String>,
    pub(crate) lease: Lease,
}

/// At the annex: whether the members of the home's teams begin new turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lease {
    /// They do: there is contact, or the daemon has no lease, or the link goes to an annex.
    Unlimited,
    /// They do until the lease ends.
    Running {
        /// Since when there is no contact, in milliseconds since the epoch.
        since: u64,
        /// In milliseconds on the monotonic clock.
        ends_at: u64,
    },
    /// They do not.
    Ended {
        /// Since when there is no contact, in milliseconds since the epoch.
        since: u64,
    },
}

/// Whether a link works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkConnection {
    /// An attempt to connect is under way: the first one, or one that a client has requested.
    Connecting {
        /// Since when, in milliseconds since the epoch.
        since: u64,
    },
    Connected,
    Lost {
        /// Since when, in milliseconds since the epoch.
        since: u64,
        reason: String,
    },
}

/// A client that waits until a host has handled everything up to a barrier.
#[derive(Debug)]
pub(crate) struct BarrierWaiter {
    pub(crate) client: ConnId,
    pub(crate) host: HostName,
    pub(crate) team: TeamName,
    pub(crate) barrier: u64,
    /// When the client gets an error, in milliseconds on the monotonic clock.
    pub(crate) deadline: u64,
    pub(crate) purpose: BarrierPurpose,
}

/// Why a client waits for a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BarrierPurpose {
    /// The mirror of the team must exist. A failed connection ends the wait.
    UseHost,
    /// The changes of the host must be here.
    AwaitHost,
}

/// A client that waits for the home's decision about a task.
#[derive(Debug)]
pub(crate) struct TaskWaiter {
    pub(crate) client: ConnId,
    pub(crate) link: LinkId,
    pub(crate) request: ConfirmTaskRequest,
}

/// A slot for a member that is being spawned. A new daemon does not know it.
#[derive(Debug)]
pub(crate) struct ReservedSlot {
    /// The client that spawns the member. The slot is reserved until its connection closes.
    pub(crate) client: ConnId,
    pub(crate) host: MemberHost,
    pub(crate) team: TeamName,
    /// The requested name. With `--unique`, the member may get another.
    pub(crate) member: MemberName,
    /// The members of the team that already ran on the host when the slot was reserved. The slot is
    /// for none of them.
    pub(crate) members_before: BTreeSet<MemberName>,
}

impl ReservedSlot {
    /// Whether a member of the host may be the new one.
    pub(crate) fn may_be_for(&self, team: &TeamName, member: &MemberName) -> bool {
        let suffix = member.as_str().strip_prefix(self.member.as_str());
        let is_numbered =
            |suffix: &str| suffix.strip_prefix('-').is_some_and(|number| number.parse::<u32>().is_ok());
        self.team == *team
            && !self.members_before.contains(member)
            && suffix.is_some_and(|suffix| suffix.is_empty() || is_numbered(suffix))
    }
}

impl HostLinks {
    /// At the start of the daemon: loads the teams whose home has moved to another host, and the
    /// teams for which another host was asked to become the home and has not answered.
    pub(crate) fn load_moved_homes(&mut self, homes: BTreeMap<TeamName, TeamHome>) {
        for (team, home) in homes {
            match home.state {
                HomeState::Settled => {}
                HomeState::Moving(MovingHome { host, since, .. }) => {
                    let moving = HomeMove { host, since, step: HomeMoveStep::Offered, waiter: None };
                    self.home_moves.insert(team, moving);
                }
                HomeState::Moved(moved) => drop(self.moved_homes.insert(team, moved)),
            }
        }
    }

    /// The link to the home of this team. `None` if the team's home is here.
    pub(crate) fn home_of(&self, team: &TeamName) -> Option<&LinkId> {
        let mut mirrors = self.links_of(team).filter(|link| matches!(link, LinkId::ToHome(_)));
        mirrors.next()
    }

    /// The budget that the home of this team has sent. `None` at the home.
    pub(crate) fn home_budget(&self, team: &TeamName) -> Option<&HomeBudget> {
        self.home_of(team).and_then(|home| self.links.get(home)?.budgets.get(team))
    }

    /// The links that mirror this team.
    pub(crate) fn links_of(&self, team: &TeamName) -> impl Iterator<Item = &LinkId> {
        self.links.iter().filter(|(_, link)| link.teams.contains(team)).map(|(id, _)| id)
    }

    /// At the home: whether config.json lists the member for another host.
    pub(crate) fn is_on_annex(&self, team: &TeamName, member: &MemberName) -> bool {
        let is_listed = |link: &HostLink| link.members.get(team).is_some_and(|names| names.contains(member));
        self.links.values().any(is_listed)
    }

    /// The hosts that mirror this team, and the contact with each.
    pub(crate) fn host_status(&self, team: &TeamName) -> Vec<HostStatus> {
        let links = self.links.iter().filter(|(_, link)| link.teams.contains(team));
        let status = |(id, link): (&LinkId, &HostLink)| match id {
            LinkId::ToAnnex(host) => Some(HostStatus {
                host: host.clone(),
                contact: link.connection.contact(),
                storage_error: link.storage_error.clone(),
            }),
            LinkId::ToHome(_) => None,
        };
        let moved = self.moved_homes.get(team).map(|moved| HostStatus {
            host: moved.host.clone(),
            contact: HostContact::IsHome { since: moved.since, epoch: moved.epoch },
            storage_error: None,
        });
        let moving = self.home_moves.get(team).map(|moving| HostStatus {
            host: moving.host.clone(),
            contact: HostContact::BecomesHome { since: moving.since },
            storage_error: None,
        });
        moved.into_iter().chain(links.filter_map(status)).chain(moving).collect()
    }

    /// Whether no turn of this team begins here, because the lease has ended.
    pub(crate) fn holds_turns(&self, team: &TeamName) -> bool {
        let link = self.home_of(team).and_then(|home| self.links.get(home));
        link.is_some_and(|link| matches!(link.lease, Lease::Ended { .. }))
    }

    /// The next deadline, in milliseconds on the monotonic clock: the earliest time at which a
    /// waiting client gets an error, or at which a lease ends. A lease is the time in which members
    /// may begin turns without contact with the home.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let lease_ends = self.links.values().filter_map(|link| match link.lease {
            Lease::Running { ends_at, .. } => Some(ends_at),
            Lease::Unlimited | Lease::Ended { .. } => None,
        });
        let moves = self.home_moves.values().filter_map(HomeMove::deadline);
        self.barrier_waiters.iter().map(|waiter| waiter.deadline).chain(lease_ends).chain(moves).min()
    }

    /// Removes and returns the waiters for which `is_taken` is true.
    pub(crate) fn take_waiters(&mut self, is_taken: impl Fn(&BarrierWaiter) -> bool) -> Vec<BarrierWaiter> {
        let (taken, kept) = std::mem::take(&mut self.barrier_waiters).into_iter().partition(is_taken);
        self.barrier_waiters = kept;
        taken
    }
}

impl HostLink {
    pub(crate) fn new(now: u64) -> HostLink {
        HostLink {
            teams: BTreeSet::new(),
            members: BTreeMap::new(),
            budgets: BTreeMap::new(),
            connection: LinkConnection::Connecting { since: now },
            storage_error: None,
            lease: Lease::Unlimited,
        }
    }
}

impl LinkConnection {
    fn contact(&self) -> HostContact {
        match self {
            LinkConnection::Connecting { since } => {
                HostContact::NoContact { since: *since, reason: "not connected yet".to_owned() }
            }
            LinkConnection::Connected => HostContact::Connected,
            LinkConnection::Lost { since, reason } => {
                HostContact::NoContact { since: *since, reason: reason.clone() }
            }
        }
    }
}
