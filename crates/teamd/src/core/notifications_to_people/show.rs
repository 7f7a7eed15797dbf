//! Shows notices to people. First, the attached tmux clients show the notice as a line
//! (`io/panes/run_pane_jobs`). If these clients already display all panes that the notice is about,
//! nothing else happens. Otherwise the daemon's terminal also rings the bell
//! (`io/print_events_on_daemon_terminal`), and `teamctl notify` runs the user's command.

use crate::core::effect::Effect;
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::notifications_to_people::queue::NoticeText;
use crate::core::state::core_state::State;
use crate::core::state_time_and_effects_of_one_event::Context;

/// Shows the next notice, but not sooner than a second after the last one.
pub(crate) fn show_next_notice(context: &mut Context) {
    if let Some(notice) = context.state.notices.take_due(context.now.mono) {
        let effect = show_notice(context.state, notice);
        context.effects.push(effect);
    }
}

/// The effect that shows a notice to attached tmux clients, or outside tmux if there is no tmux.
fn show_notice(state: &mut State, NoticeText { text, panes }: NoticeText) -> Effect {
    if state.settings.tmux_socket.is_some() {
        return Effect::Pane(PaneJob::NotifyAttached { text, panes });
    }
    state.notices.confirm_shown();
    show_notice_outside_tmux(state, text)
}

/// Handles the result of showing a notice to the attached tmux clients. `text_outside_tmux` is its
/// text if it must also be shown outside tmux. It is `None` if a person already sees all panes of
/// the notice in tmux.
pub(crate) fn handle_notice_shown(context: &mut Context, text_outside_tmux: Option<String>) {
    context.state.notices.confirm_shown();
    context.effects.extend(text_outside_tmux.map(|text| show_notice_outside_tmux(context.state, text)));
}

/// The effect that shows a notice in the daemon's terminal and by the user's notify command.
pub(crate) fn show_notice_outside_tmux(state: &State, text: String) -> Effect {
    let args = ["notify", "--quiet", "--", &text].map(str::to_owned);
    Effect::ShowNotice { argv: [state.settings.teamctl_path()].into_iter().chain(args).collect(), text }
}
