//! The tmux commands with which `attach` shows a member's pane. Each terminal gets a view: a tmux
//! session of its own that is grouped with the session of the pane.
//!
//! Grouped sessions share their windows, but each has its own current window. So two terminals can
//! show two members at the same time.
//!
//! An `attach` that starts a new tmux client ends the view when this client ends. Inside tmux, the
//! terminal's client may leave the view later. The next `attach` then ends the unused view.
//!
//! Two features of tmux could end an unused view at once, but both have errors. With the option
//! `destroy-unattached`, tmux 3.2a to 3.7c can crash, for example when two clients leave at the
//! same moment. The hook `client-detached` runs for a wrong session when a terminal is closed.

use client::select_tmux_server::tmux_output;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::path::Path;

/// The smallest pane that is shown beside others, in columns and rows.
const MIN_PANE: (u32, u32) = (60, 10);

/// The session option that marks a view.
const VIEW_OPTION: &str = "@teamd_view";

/// The tmux condition for ending a view, which is the tmux session of one terminal: no terminal
/// shows the view, and another session has the same windows. If a person has killed the members'
/// session, the view may be the last session with these windows. Ending the view would then close
/// the windows.
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
    /// If several sessions show the pane, returns the first one in tmux's list. This is the
    /// members' session, because the name of each view begins with the name of this session.
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
    /// The flag `active-pane` lets the client have its own selected pane, which gets the text that
    /// is typed in this client. tmux sets this pane only when the selection changes, and the pane
    /// may be selected already. So the commands select a neighbouring pane first.
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
    /// tmux does that only while the command list waits for a shell command. So the check is inside
    /// an `if-shell`, which waits for the shell command `true`.
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
