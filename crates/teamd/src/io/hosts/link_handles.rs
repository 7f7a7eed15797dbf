//! All links of the daemon. They get their jobs from the effect runner.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::core_event::CoreEvent;
use crate::core::jobs::host_jobs::{ConnectAttempt, HostEvent, HostJob, LinkId, MirrorJob};
use crate::io::control_connections::Connections;
use crate::io::hosts::cancel_unoffered_moves::cancel_unoffered_moves;
use crate::io::hosts::connect_commands_file::{ConnectCommandsFile, SharedConnectCommands};
use crate::io::hosts::forget_host::forget_host;
use crate::io::hosts::link_files::LinkFiles;
use crate::io::hosts::mirror_queue::MirrorQueue;
use crate::io::hosts::open_link::{LinkSetup, OpenLink};
use crate::io::hosts::run_link::{run_to_annex, run_to_home};
use crate::io::hosts::shared_mirror::LinkReporter;
use link::LinkStream;
use mirror::MirroredTeamState;
use protocol::control_socket::{ConnectHomeRequest, FIRST_LINK_GENERATION};
use protocol::error_kind_and_report::ErrorReport;
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::TeamName;
use protocol::team_home::{HomeUsage, TeamHome};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Durability, Root, StateDir};
use tokio::sync::mpsc::{Sender, UnboundedSender, channel, unbounded_channel};
use tokio::task::JoinHandle;

/// Maximum number of connections of one home that wait for its link.
const QUEUED_STREAMS: usize = 4;

/// The running links, by the host or home at the other end.
#[derive(Debug)]
pub(crate) struct LinkHandles {
    files: LinkFiles,
    connect_commands: Arc<SharedConnectCommands>,
    events: UnboundedSender<CoreEvent>,
    to_annexes: BTreeMap<HostName, LinkToAnnex>,
    to_homes: BTreeMap<ConnectHomeRequest, LinkToHome>,
    mirrored_at_start: Vec<(LinkId, BTreeMap<TeamName, MirroredTeamState>)>,
    usage_of_old_homes: BTreeMap<TeamName, (u64, HomeUsage)>,
    /// The tasks that forget hosts.
    forgetting: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct LinkToAnnex {
    queue: Arc<MirrorQueue>,
    commands: UnboundedSender<Vec<String>>,
    /// The last connect command. Empty if there was none.
    command: Vec<String>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct LinkToHome {
    queue: Arc<MirrorQueue>,
    streams: Sender<LinkStream>,
    /// Never sends a command. The link runs as long as this sender exists.
    _commands: UnboundedSender<Vec<String>>,
    task: JoinHandle<()>,
}

impl LinkHandles {
    /// Opens and starts the links that an earlier daemon had. Blocks until their mirrors are open,
    /// so the core knows from the start which teams are mirrored. The caller must be in a tokio
    /// runtime.
    ///
    /// # Errors
    ///
    /// If `hosts.json` or the directory with the links to homes can't be read.
    pub(crate) fn start(
        root: &Root,
        state_dir: &StateDir,
        durability: Durability,
        events: &UnboundedSender<CoreEvent>,
    ) -> Result<LinkHandles, ErrorReport> {
        let connect_commands = ConnectCommandsFile::read(state_dir)?;
        let (root, state_path) = (root.clone(), state_dir.path().to_owned());
        let files = LinkFiles {
            root,
            state_dir: state_path,
            durability,
            home: connect_commands.home.clone(),
            generation: FIRST_LINK_GENERATION,
        };
        let commands = connect_commands.commands.clone();
        let mut links = LinkHandles {
            files,
            connect_commands: Arc::new(SharedConnectCommands::new(connect_commands)),
            events: events.clone(),
            to_annexes: BTreeMap::new(),
            to_homes: BTreeMap::new(),
            mirrored_at_start: Vec::new(),
            usage_of_old_homes: BTreeMap::new(),
            forgetting: Vec::new(),
        };
        for (host, command) in commands {
            let closed = links.new_link(LinkId::ToAnnex(host.clone()));
            if let Some(open) = links.open_at_start(&closed) {
                links.add_annex(&host, closed, Some(open)).connect(command);
            }
        }
        for link in links.files.known_homes()? {
            let closed = links.new_link(link.clone());
            if let (Some(open), LinkId::ToHome(home)) = (links.open_at_start(&closed), link) {
                links.add_home(&home, closed, Some(open));
            }
        }
        Ok(links)
    }

    /// Takes the links that were started, with the teams that each link mirrors.
    pub(crate) fn take_mirrored_teams(&mut self) -> Vec<(LinkId, BTreeMap<TeamName, MirroredTeamState>)> {
        std::mem::take(&mut self.mirrored_at_start)
    }

    /// Takes the usage that old homes have handed over, with the epoch of the home since then.
    pub(crate) fn take_usage_of_old_homes(&mut self) -> BTreeMap<TeamName, (u64, HomeUsage)> {
        std::mem::take(&mut self.usage_of_old_homes)
    }

    /// Cancels each unfinished move of a team's home, unless the other host was already asked to
    /// become the home. Returns the teams whose home has moved to another host, and the teams for
    /// which another host was asked to become the home and has not answered.
    ///
    /// # Errors
    ///
    /// If a team, or the file that says where its home is, can't be read or written. Without this
    /// file, two hosts could change the same team.
    pub(crate) fn cancel_unoffered_moves(&self) -> Result<BTreeMap<TeamName, TeamHome>, ErrorReport> {
        cancel_unoffered_moves(&self.files.root)
    }

    /// Runs a job, or passes it to the thread of its mirrors.
    pub(crate) fn run(&mut self, job: HostJob, connections: &mut Connections) {
        match job {
            HostJob::UseHost { host, command, attempt, team, barrier } => {
                if !self.to_annexes.contains_key(&host) {
                    let closed = self.new_link(LinkId::ToAnnex(host.clone()));
                    self.add_annex(&host, closed, None);
                }
                let Some(link) = self.to_annexes.get_mut(&host) else { return };
                if attempt == ConnectAttempt::Now || link.command != command {
                    link.connect(command);
                }
                link.queue.push(MirrorJob::AddTeam { team, barrier });
            }
            HostJob::AcceptHome { client, home } => self.accept_home(client, &home, connections),
            HostJob::ForgetHost(host) => self.forget_host(&host),
            HostJob::Mirror { link, job } => match self.queue(&link) {
                Some(queue) => queue.push(job),
                None => tracing::warn!(?link, ?job, "dropped a job: there is no such link"),
            },
        }
    }

    /// Ends all links. Returns after their last writes.
    pub(crate) async fn finish(self) {
        let to_annexes = self.to_annexes.into_values().map(LinkToAnnex::end);
        let to_homes = self.to_homes.into_values().map(LinkToHome::end);
        for task in to_annexes.chain(to_homes).chain(self.forgetting).collect::<Vec<_>>() {
            task.await.ok();
        }
    }

    /// Ends the link to a host, and forgets the host afterwards.
    fn forget_host(&mut self, host: &HostName) {
        let ended = self.to_annexes.remove(host).map(LinkToAnnex::end);
        let link = self.new_link(LinkId::ToAnnex(host.clone()));
        let host_and_commands = (host.clone(), self.connect_commands.clone());
        self.forgetting.retain(|task| !task.is_finished());
        self.forgetting.push(tokio::spawn(forget_host(link, host_and_commands, ended)));
    }

    fn accept_home(&mut self, client: ConnId, home: &ConnectHomeRequest, connections: &mut Connections) {
        let stream = match connections.take_home_stream(client) {
            Ok(stream) => stream,
            Err(error) => return tracing::warn!(client, "cannot take the connection of a home: {error}"),
        };
        // A closed channel means that the files of a link could not be opened, and the link has
        // ended. Such links are removed, so that a new link for this home opens the files again.
        self.to_homes.retain(|_, link| !link.streams.is_closed());
        if !self.to_homes.contains_key(home) {
            let closed = self.new_link(LinkId::ToHome(home.clone()));
            self.add_home(home, closed, None);
        }
        let sent = self.to_homes.get(home).map(|link| link.streams.try_send(stream));
        if !matches!(sent, Some(Ok(()))) {
            tracing::warn!(client, "closed the connection of a home: its link takes no more");
        }
    }

    /// Opens a link. If this fails, reports the error and returns `None`.
    fn open_at_start(&mut self, closed: &LinkSetup) -> Option<OpenLink> {
        let open =
            closed.open(None).map_err(|error| closed.reporter.report(HostEvent::Failed(error))).ok()?;
        self.mirrored_at_start.push((closed.reporter.link.clone(), open.mirror.team_states()));
        self.usage_of_old_homes.extend(open.mirror.usage_of_old_homes());
        Some(open)
    }

    fn queue(&self, link: &LinkId) -> Option<&MirrorQueue> {
        match link {
            LinkId::ToAnnex(host) => self.to_annexes.get(host).map(|link| &*link.queue),
            LinkId::ToHome(home) => self.to_homes.get(home).map(|link| &*link.queue),
        }
    }

    fn new_link(&self, link: LinkId) -> LinkSetup {
        let reporter = LinkReporter { link, events: self.events.clone() };
        let mut files = self.files.clone();
        if let LinkId::ToAnnex(host) = &reporter.link {
            files.generation = self.connect_commands.generation(host);
        }
        LinkSetup { files, reporter, queue: Arc::default() }
    }

    fn add_annex(&mut self, host: &HostName, closed: LinkSetup, open: Option<OpenLink>) -> &mut LinkToAnnex {
        let (commands, received) = unbounded_channel();
        let queue = closed.queue.clone();
        let host_and_commands = (host.clone(), self.connect_commands.clone());
        let task = tokio::spawn(run_to_annex(Arc::new(closed), host_and_commands, open, received));
        let link = LinkToAnnex { queue, commands, command: Vec::new(), task };
        self.to_annexes.insert(host.clone(), link);
        self.to_annexes.get_mut(host).expect("it was just inserted")
    }

    fn add_home(&mut self, home: &ConnectHomeRequest, closed: LinkSetup, open: Option<OpenLink>) {
        let (streams, received) = channel(QUEUED_STREAMS);
        let (commands, no_commands) = unbounded_channel();
        let queue = closed.queue.clone();
        let task = tokio::spawn(run_to_home(Arc::new(closed), open, received, no_commands));
        self.to_homes.insert(home.clone(), LinkToHome { queue, streams, _commands: commands, task });
    }
}

impl LinkToAnnex {
    /// Ends the link. The returned task ends after its last write.
    fn end(self) -> JoinHandle<()> {
        self.queue.close();
        self.task
    }

    /// Connects with this command at once, even if the link waits for its next attempt.
    fn connect(&mut self, command: Vec<String>) {
        self.command.clone_from(&command);
        // This can't fail: the tokio task of the link runs as long as this sender exists.
        self.commands.send(command).ok();
    }
}

impl LinkToHome {
    /// Ends the link. The returned task ends after its last write.
    fn end(self) -> JoinHandle<()> {
        self.queue.close();
        self.task
    }
}
