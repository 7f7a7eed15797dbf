//! The links to other hosts in a simulation of one daemon. The other hosts are not simulated. This
//! module sends the reports of their links, as if each annex mirrored each team at once and each
//! home decided at once on each change of a task. Whether a link connects is random.

use crate::core::core_event::CoreEvent;
use crate::core::jobs::host_jobs::{HostEvent, HostJob, LinkId, MirrorJob};
use crate::simulator::simulation::{Conditions, Simulation};
use mirror::{MirrorNotice, TaskCheck};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::{Event, EventKind};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::token_and_cost_usage::Usage;
use std::collections::BTreeSet;

impl<C: Conditions> Simulation<C> {
    pub(super) fn run_host_job(&mut self, job: HostJob) {
        match job {
            HostJob::UseHost { host, team, barrier, .. } => {
                let link = LinkId::ToAnnex(host);
                match self.conditions.is_first_outcome() {
                    true => self.report_host(&link, HostEvent::Connected),
                    false => {
                        let reason = "no route".to_owned();
                        self.report_host(&link, HostEvent::Disconnected { reason });
                    }
                }
                self.report_host(&link, HostEvent::TeamsChanged(BTreeSet::from([team.clone()])));
                self.report_members(&link, team.clone());
                self.report_event(&link, team);
                self.report_barrier(&link, barrier);
            }
            HostJob::AcceptHome { client, home } => {
                // The connection is the link now, and carries no replies.
                self.clients.remove(&client);
                self.report_host(&LinkId::ToHome(home), HostEvent::Connected);
            }
            HostJob::ForgetHost(host) => {
                self.report_host(&LinkId::ToAnnex(host), HostEvent::Forgotten(Ok(())));
            }
            HostJob::Mirror { link, job: MirrorJob::SendBarrier(barrier) } => {
                self.report_barrier(&link, barrier);
            }
            HostJob::Mirror { link, job: MirrorJob::CheckTask { client, .. } } => {
                self.report_host(&link, HostEvent::TaskChecked { client, result: Ok(TaskCheck::Decided) });
            }
            HostJob::Mirror { link, job: MirrorJob::TakeTeam { client, team } } => {
                self.report_host(&link, HostEvent::TeamsChanged(BTreeSet::new()));
                self.report_host(
                    &link,
                    HostEvent::Notice(MirrorNotice::HomeTaken { team, epoch: 2, handover: None }),
                );
                client.into_iter().for_each(|client| {
                    self.report_host(&link, HostEvent::TeamTaken { client, result: Ok(()) });
                });
            }
            HostJob::Mirror { link, job: MirrorJob::BeginMove { team, barrier } } => {
                match self.conditions.is_first_outcome() {
                    true => self.report_barrier(&link, barrier),
                    false => {
                        let error = ErrorReport::new(ErrorKind::Io, "no space left");
                        self.report_host(&link, HostEvent::MoveFailed { team, error });
                    }
                }
            }
            HostJob::Mirror { link, job: MirrorJob::CancelMove(team) } => {
                self.report_host(&link, HostEvent::MoveCancelled(team));
            }
            // The host declines, because a team that has moved ends most of what a simulation does.
            HostJob::Mirror { link, job: MirrorJob::OfferHome { team, .. } } => {
                let error = ErrorReport::new(ErrorKind::Refused, "it has no mirror");
                self.report_host(&link, HostEvent::Notice(MirrorNotice::HomeDeclined { team, error }));
            }
            HostJob::Mirror { link, job: MirrorJob::RemoveTeam(_) } => {
                self.report_host(&link, HostEvent::TeamsChanged(BTreeSet::new()));
            }
            HostJob::Mirror {
                job:
                    MirrorJob::AddTeam { .. }
                    | MirrorJob::Compare { .. }
                    | MirrorJob::CompareAll
                    | MirrorJob::EndTeam(_)
                    | MirrorJob::EndTeams
                    | MirrorJob::SendEvents { .. }
                    | MirrorJob::SendBudget { .. }
                    | MirrorJob::NoteEventsLogged { .. }
                    | MirrorJob::NoteAccepted(_),
                ..
            } => {}
        }
    }

    fn report_members(&mut self, link: &LinkId, team: TeamName) {
        let members = BTreeSet::from([MemberName::new_unchecked("far")]);
        self.report_host(link, HostEvent::Notice(MirrorNotice::MembersListed { team, members }));
    }

    /// The annex has logged events of a member.
    fn report_event(&mut self, link: &LinkId, team: TeamName) {
        let used = Usage { tokens: 7, microdollars: 70 };
        *self.token_usage.entry("remote".to_owned()).or_default() += used.tokens;
        let kinds = [
            EventKind::MemberActive { summary: String::new() },
            EventKind::MemberUsage { used, total: used },
            EventKind::MemberSuspended,
        ];
        let member = MemberName::new_unchecked("remote");
        let events = (self.now.wall..).zip(kinds).map(|(number, kind)| {
            let event = Event::for_member(&team, &member, kind).with_time(self.now.wall);
            Event { number: Some(number), notifies: true, ..event }
        });
        let events = events.collect();
        self.report_host(link, HostEvent::Notice(MirrorNotice::EventsReceived { team, events }));
    }

    fn report_barrier(&mut self, link: &LinkId, number: u64) {
        self.report_host(link, HostEvent::Notice(MirrorNotice::BarrierReached { number }));
    }

    fn report_host(&mut self, link: &LinkId, event: HostEvent) {
        self.send_event(CoreEvent::HostReported { link: link.clone(), event });
    }
}
