//! The tmux commands with which `attach` shows a member's pane. Each terminal gets a view: a tmux
//! session of its own that is grouped with the session of the pane.
//!
//! Grouped sessions share their windows, but each has its own current window. So two terminals can
//! show two members at the same time.
//!
//! If `attach` has started a new tmux client for the view, it ends the view together with the
//! client. Any other view that no terminal shows stays until the next `attach` ends it. The tmux
//! option `destroy-unattached` would end an unused view at once. But with this option, tmux 3.2a to
//! 3.7c can crash, for example when two clients leave at the same moment. The tmux hook
//! `client-detached` is no alternative: when a terminal is closed, tmux runs the hook for another
//! session.

use client::select_tmux_server::tmux_output;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::path::Path;

/// The smallest pane that is shown beside others, in columns and rows.
const MIN_PANE: (u32, u32) = (60, 10);

/// The session option that marks a view.
const VIEW_OPTION: &str = "@teamd_view";

/// The tmux condition under which `attach` may end a view, the tmux session of one terminal. It is
/// true if no terminal shows the view and another session has the same windows. If a person has
/// killed the members' session, perhaps only this view has the windows, and ending the view would
/// close them.
const MAY_END: &str = "#{&&:#{==:#{session_attached},0},#{e|>:#{session_group_size},1}}";

/// Where a pane is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PaneLocation {
    /// The id of the pane.
    pane: String,
    /// The id of the window.
    window: String,
    /// The id of a session that has the window.
    session: String,
    /// The name of the session's group; without a group, of the session.
    group: String,
}

/// A tmux client that is attached to a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AttachedClient {
    /// The name of the client.
    pub(super) name: String,
    /// The id of its session.
    pub(super) session: String,
}

impl PaneLocation {
    /// Asks the tmux server with the socket `tmux` for the window and the tmux session of a pane.
    /// If several sessions show the pane, the first one in tmux's list is returned. This is the
    /// members' session: its name sorts before the names of its views, the sessions that `attach`
    /// creates.
    ///
    /// # Errors
    ///
    /// `NotFound` if the pane is gone.
    pub(super) fn find(tmux: &Path, pane: &str) -> Result<PaneLocation, ErrorReport> {
        let filter = format!("#{{==:#{{pane_id}},{pane}}}");
        let format = "#{window_id} #{session_id} #{?session_group,#{session_group},#{session_name}}";
        let output = query(tmux, &["list-panes", "-a", "-f", &filter, "-F", format])?;
        output.lines().find_map(|line| PaneLocation::parse(pane, line)).ok_or_else(|| {
            ErrorReport::new(ErrorKind::NotFound, format!("cannot go to {pane}: the pane has closed"))
        })
    }

    fn parse(pane: &str, line: &str) -> Option<PaneLocation> {
        let mut fields = line.splitn(3, ' ').map(str::to_owned);
        let (window, session, group) = (fields.next()?, fields.next()?, fields.next()?);
        Some(PaneLocation { pane: pane.to_owned(), window, session, group })
    }

    /// Whether the tmux session that `client` shows contains the pane's window.
    ///
    /// # Errors
    ///
    /// `Io` if the session has ended.
    pub(super) fn is_in_session_of(&self, tmux: &Path, client: &AttachedClient) -> Result<bool, ErrorReport> {
        let windows = query(tmux, &["list-windows", "-t", &client.session, "-F", "#{window_id}"])?;
        Ok(windows.lines().any(|window| window == self.window))
    }

    /// The name of the view of the process `pid`.
    pub(super) fn view_name(&self, pid: u32) -> String {
        format!("{}-view-{pid}", plain_name(&self.group))
    }

    /// The tmux commands with which a new client shows the pane in the view `name`.
    ///
    /// With the flag `active-pane`, the client has a selected pane of its own, which gets the text
    /// typed in this client. tmux sets this pane only when the selection changes. So the commands
    /// select a neighbouring pane first, and then the pane itself.
    pub(super) fn commands_of_new_client(&self, name: &str) -> Vec<String> {
        let window = format!("={name}:{}", self.window);
        let create = ["new-session", "-f", "active-pane", "-s", name, "-t", &self.session];
        let mut commands = vec![command(&create)];
        commands.extend(view_options(name));
        commands.push(command(&["select-window", "-t", &window]));
        commands.push(command(&["select-pane", "-t", &format!("{window}.+")]));
        commands.push(command(&["select-pane", "-t", &format!("{window}.{}", self.pane)]));
        self.with_zoom(commands)
    }

    /// The tmux commands with which `client` switches to the view `name` of the pane.
    pub(super) fn commands_to_switch(&self, client: &AttachedClient, name: &str) -> Vec<String> {
        let mut commands = vec![command(&["new-session", "-d", "-s", name, "-t", &self.session])];
        commands.extend(view_options(name));
        commands.push(self.switch_command(client, &format!("={name}:")));
        self.with_zoom(commands)
    }

    /// The tmux commands with which `client` goes to the pane in its own session.
    pub(super) fn commands_in_own_session(&self, client: &AttachedClient) -> Vec<String> {
        self.with_zoom(vec![self.switch_command(client, &format!("{}:", client.session))])
    }

    /// `session` is a session in the form of a tmux target, with a colon at its end.
    fn switch_command(&self, client: &AttachedClient, session: &str) -> Vec<String> {
        let pane = format!("{session}{}.{}", self.window, self.pane);
        command(&["switch-client", "-c", &client.name, "-t", &pane])
    }

    /// Joins tmux commands to one command list, and adds a command that zooms the pane. The pane is
    /// zoomed only if it is smaller than [`MIN_PANE`] and no other terminal shows its window.
    ///
    /// The size of the pane must be checked after tmux has resized the window to the new terminal.
    /// tmux resizes only while the command list waits for something. So the check is inside an
    /// `if-shell` that runs the shell command `true` and waits for its end. The result of this
    /// command does not matter, because both branches contain the check.
    fn with_zoom(&self, mut commands: Vec<Vec<String>>) -> Vec<String> {
        let (pane, (columns, rows)) = (&self.pane, MIN_PANE);
        let is_small = format!("#{{||:#{{e|<:#{{pane_width}},{columns}}},#{{e|<:#{{pane_height}},{rows}}}}}");
        let is_alone = "#{&&:#{==:#{window_active_clients},1},#{!=:#{window_zoomed_flag},1}}";
        let zoom =
            format!("if-shell -F -t {pane} '#{{&&:{is_alone},{is_small}}}' 'resize-pane -Z -t {pane}'");
        commands.push(command(&["if-shell", "true", &zoom, &zoom]));
        commands.join(&";".to_owned())
    }
}

fn command(args: &[&str]) -> Vec<String> {
    args.iter().map(|&arg| arg.to_owned()).collect()
}

/// The tmux commands that make a new session a view.
fn view_options(name: &str) -> [Vec<String>; 2] {
    let view = format!("={name}:");
    [
        command(&["set-option", "-t", &view, "destroy-unattached", "off"]),
        command(&["set-option", "-t", &view, VIEW_OPTION, "1"]),
    ]
}

/// Ends the view `name`, if no terminal shows it.
pub(super) fn end_view(tmux: &Path, name: &str) {
    let commands =
        ["if-shell", "-F", "-t", &format!("={name}:"), MAY_END, &format!("kill-session -t '={name}'")];
    // The view is gone already if its last window has closed.
    query(tmux, &commands).ok();
}

/// Ends the views that no terminal shows any more. A view is a tmux session that `attach` has
/// created for one terminal. A failure does no harm: the next `attach` tries again.
pub(super) fn end_unwatched_views(tmux: &Path) {
    let filter = format!("#{{&&:#{{==:#{{{VIEW_OPTION}}},1}},{MAY_END}}}");
    let views = query(tmux, &["list-sessions", "-f", &filter, "-F", "#{session_id}"]).unwrap_or_default();
    for view in views.lines() {
        query(tmux, &["if-shell", "-F", "-t", view, MAY_END, &format!("kill-session -t '{view}'")]).ok();
    }
}

/// `name` with only characters that have no meaning in a tmux target or format.
fn plain_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' }).collect()
}

/// Returns a client that shows the session of `pane`. Returns `None` if no terminal shows the
/// session. Skips clients in control mode, such as the daemon's.
///
/// # Errors
///
/// `Io` if tmux cannot be run, or if the pane is gone.
pub(super) fn client_of_pane(tmux: &Path, pane: &str) -> Result<Option<AttachedClient>, ErrorReport> {
    let format = "#{client_control_mode} #{session_id} #{client_name}";
    let clients = query(tmux, &["list-clients", "-t", pane, "-F", format])?;
    let client = clients.lines().find_map(|line| line.strip_prefix("0 ")?.split_once(' '));
    Ok(client.map(|(session, name)| AttachedClient { name: name.to_owned(), session: session.to_owned() }))
}

fn query(tmux: &Path, args: &[&str]) -> Result<String, ErrorReport> {
    let server = ["-S".to_owned(), tmux.display().to_string()];
    let to_report = |error| ErrorReport::new(ErrorKind::Io, format!("cannot find the pane: {error}"));
    tmux_output(&server, args).map_err(to_report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_pane_by_its_ids() {
        let location = PaneLocation::parse("%5", "@3 $1 my team").unwrap();
        let name = location.view_name(42);
        assert_eq!(name, "my_team-view-42");
        let new_client = location.commands_of_new_client(&name).join(" ");
        assert!(
            new_client.starts_with("new-session -f active-pane -s my_team-view-42 -t $1 ; "),
            "{new_client}"
        );
        let select =
            "; select-pane -t =my_team-view-42:@3.+ ; select-pane -t =my_team-view-42:@3.%5 ; if-shell ";
        assert!(new_client.contains(select), "{new_client}");
        let client = AttachedClient { name: "/dev/pts/7".to_owned(), session: "$9".to_owned() };
        let switch = location.commands_to_switch(&client, &name).join(" ");
        assert!(switch.starts_with("new-session -d -s my_team-view-42 -t $1 ; "), "{switch}");
        let go = "; switch-client -c /dev/pts/7 -t =my_team-view-42:@3.%5 ; if-shell true ";
        assert!(switch.contains(go), "{switch}");
        let own = location.commands_in_own_session(&client).join(" ");
        assert!(own.starts_with("switch-client -c /dev/pts/7 -t $9:@3.%5 ; if-shell true "), "{own}");
    }
}
