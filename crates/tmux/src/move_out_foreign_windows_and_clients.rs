//! Moves foreign windows, panes and clients, which teamd did not create, out of teamd's sessions.
//! These sessions are the control sessions (`_teamd-control-*`) and the session of hidden panes
//! (`_teamd-hidden`).
//!
//! A tmux command without a target uses the session that was used last, and that can be one of
//! teamd's sessions. For example, `tmux new-window`, typed outside of tmux, then opens a window
//! that no person sees.

use tmux_interface::{
    BreakPane, ListClients, ListPanes, ListSessions, MoveWindow, SwitchClient, TmuxCommand,
};

use crate::command_list::CommandList;
use crate::control_client_process::CONTROL_SESSION_PREFIX;
use crate::if_shell::{all_of, any_of};
use crate::{Error, PaneId, PaneTag, SessionId, TmuxServer, WindowId};

/// A pane in one of teamd's sessions.
struct PlacedPane {
    session: SessionId,
    window: WindowId,
    pane: PaneId,
    owner: PaneOwner,
}

#[derive(PartialEq, Eq)]
enum PaneOwner {
    /// The idle pane of a control session, or a tagged pane.
    Teamd,
    Foreign,
}

impl TmuxServer {
    /// Moves all foreign windows, panes and clients out of teamd's sessions, to the foreign session
    /// that was used last. tmux itself would have put them there if teamd had no sessions. Does
    /// nothing if there is no foreign session.
    ///
    /// # Errors
    ///
    /// `UnexpectedReply` if one row of tmux's lists does not parse.
    pub fn move_out_foreigners(&mut self) -> Result<(), Error> {
        let mut call = self.call("move other people's windows out of teamd's sessions");
        let [sessions, panes, clients] = call.run_array(&list_commands())?;
        let sessions = sessions.parse_lines(parse_session)?;
        let panes = panes.parse_lines(parse_pane)?;
        let clients = clients.text()?;
        let Some((_, target)) = sessions.into_iter().max() else { return Ok(()) };
        let windows = window_commands(&panes, target);
        let clients = clients.lines().filter(|name| !name.is_empty());
        let clients = clients.map(|name| {
            let switch = SwitchClient::new().not_update_env().target_client(name.to_owned());
            switch.target_session(target.to_string()).build()
        });
        let commands: Vec<CommandList> =
            windows.into_iter().chain(clients).map(|command| CommandList::new(&command)).collect();
        if !commands.is_empty() {
            // A window or client may be gone by now. tmux then rejects the command that moves it.
            // That is no error here: the other commands still run, and `run_all` does not report
            // the rejection.
            call.run_all(&commands, crate::run_commands_of_one_call::OnDisconnect::Retry)?;
        }
        Ok(())
    }
}

/// Returns the commands that list the foreign sessions, the panes in teamd's sessions, and the
/// foreign clients in teamd's sessions.
fn list_commands() -> [CommandList; 3] {
    let own = "#{m:_teamd-*,#{session_name}}";
    let sessions = ListSessions::new().filter(format!("#{{?{own},0,1}}"));
    let sessions = sessions.format("#{session_activity} #{session_id}").build();
    let in_control_session = format!("#{{m:{CONTROL_SESSION_PREFIX}*,#{{session_name}}}}");
    // This control session was created by an earlier version of teamd, so it lacks the option
    // `@teamd_idle_pane`, which names teamd's pane. All panes of such a session count as teamd's.
    let is_unnamed = all_of(&in_control_session, "#{==:#{@teamd_idle_pane},}");
    let is_idle = any_of("#{==:#{pane_id},#{@teamd_idle_pane}}", &is_unnamed);
    let is_own = any_of(&is_idle, &format!("#{{!=:{},}}", PaneTag::TAG_FORMAT));
    let panes = ListPanes::new().all().filter(own);
    let panes = panes.format(format!("#{{session_id}} #{{window_id}} #{{pane_id}} {is_own}")).build();
    // Every control client of this crate has the flag `no-output`.
    let is_foreign = "#{?#{m:*no-output*,#{client_flags}},0,1}";
    let name = format!("#{{?#{{&&:{own},{is_foreign}}},#{{client_name}},}}");
    let clients = ListClients::new().format(name).build();
    [CommandList::new(&sessions), CommandList::new(&panes), CommandList::new(&clients)]
}

/// Parses when a session was used last, in seconds since the epoch, and its id.
fn parse_session(line: &str) -> Option<(u64, SessionId)> {
    let (activity, session) = line.split_once(' ')?;
    Some((activity.parse().ok()?, session.parse().ok()?))
}

fn parse_pane(line: &str) -> Option<PlacedPane> {
    let mut fields = line.split(' ');
    let session = fields.next()?.parse().ok()?;
    let (window, pane) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let owner = if fields.next()? == "1" { PaneOwner::Teamd } else { PaneOwner::Foreign };
    Some(PlacedPane { session, window, pane, owner })
}

/// Returns the commands that move foreign windows to the session `target`. If a window also has a
/// pane of teamd, the window stays, and each of its foreign panes is moved into a new window.
fn window_commands(panes: &[PlacedPane], target: SessionId) -> Vec<TmuxCommand<'static>> {
    let is_shared = |window| panes.iter().any(|pane| pane.window == window && pane.owner == PaneOwner::Teamd);
    let mut moved: Vec<WindowId> = Vec::new();
    let mut commands = Vec::new();
    for pane in panes.iter().filter(|pane| pane.owner == PaneOwner::Foreign) {
        let place = format!("{target}:");
        if is_shared(pane.window) {
            let source = pane.pane.to_string();
            commands.push(BreakPane::new().detached().src_pane(source).dst_window(place).build());
        } else if !moved.contains(&pane.window) {
            moved.push(pane.window);
            // The window may be in a foreign session too. With the source `SESSION:WINDOW`, tmux
            // removes the window only from teamd's session, so the foreign session keeps it.
            let source = format!("{}:{}", pane.session, pane.window);
            commands.push(MoveWindow::new().detached().src_window(source).dst_window(place).build());
        }
    }
    commands
}
