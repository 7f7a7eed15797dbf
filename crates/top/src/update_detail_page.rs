//! Changes the page of an item: opens it, scrolls it, and answers the request that it shows.

use crate::detail_page_layout::{page_height, page_lines};
use crate::screen_areas::has_page_beside_lists;
use crate::team_snapshot_for_screen::{ListItem, Panel};
use crate::ui_events_and_effects::{ActionResult, BackgroundAction, MemberPane, UiEffect};
use crate::ui_state::{ActiveView, DetailPage, PromptPurpose, ReadProgress, UiState};
use protocol::team_and_member_names::MemberName;

/// Makes the detail page show the selected item. While the page has the keyboard focus, it stays
/// unchanged. If the screen has no room for the page beside the lists, there is no page until the
/// person opens it.
pub(crate) fn follow_selection(state: &mut UiState) -> Vec<UiEffect> {
    if state.view != ActiveView::Lists {
        return Vec::new();
    }
    if !has_page_beside_lists(state.size) {
        state.page = None;
        return Vec::new();
    }
    show_selected_item(state)
}

/// Makes the keys act on the page of the selected item.
pub(crate) fn open_details(state: &mut UiState) -> Vec<UiEffect> {
    let mut effects = show_selected_item(state);
    let Some(page) = &state.page else { return Vec::new() };
    if page.panel == Panel::Members {
        effects.push(UiEffect::Background(BackgroundAction::Diagnose { name: page.key.clone() }));
    }
    state.view = ActiveView::Details;
    effects
}

/// Replaces the page, if it is not that of the selected item. Removes it if no item is selected.
fn show_selected_item(state: &mut UiState) -> Vec<UiEffect> {
    let selected = state.selected_item().map(|item| new_page(state.panel, item));
    let is_same = |page: &DetailPage| {
        selected.as_ref().is_some_and(|new| (page.panel, &page.key) == (new.panel, &new.key))
    };
    if state.page.as_ref().is_some_and(is_same) {
        return Vec::new();
    }
    state.page = selected;
    refresh_output(state)
}

fn new_page(panel: Panel, item: &dyn ListItem) -> DetailPage {
    DetailPage {
        panel,
        key: item.key(),
        text: item.details(),
        diagnosis: String::new(),
        output: None,
        member: item.member_name().map(str::to_owned),
        first_line: 0,
        progress: ReadProgress::UpToLine(0),
    }
}

/// Follows the item after a new snapshot. A request that has changed must be read again.
pub(crate) fn update_page_text(state: &mut UiState) -> Vec<UiEffect> {
    let Some(page) = &mut state.page else { return Vec::new() };
    let items = state.snapshot.items(page.panel);
    let item = items.iter().find(|item| item.key() == page.key);
    let details = item.map(|item| item.details()).filter(|details| *details != page.text);
    if let Some(details) = details {
        page.text = details;
        if page.panel == Panel::Requests {
            (page.first_line, page.progress) = (0, ReadProgress::UpToLine(0));
            if state.view == ActiveView::Details {
                state.result = Some(ActionResult::failure("it has changed: read it again"));
            }
        }
    }
    refresh_output(state)
}

/// Reads the output of the member anew, if the page is that of a member.
fn refresh_output(state: &UiState) -> Vec<UiEffect> {
    let Some(page) = state.page.as_ref().filter(|page| page.panel == Panel::Members) else {
        return Vec::new();
    };
    let pane = state.snapshot.member(&page.key).and_then(|member| member.pane.clone());
    // The lead's pane is a person's own.
    let pane = pane.filter(|_| page.key != MemberName::lead().as_str());
    let pane = match (pane, state.snapshot.tmux_socket.clone()) {
        (Some(pane), Some(socket)) if pane.starts_with('%') => MemberPane::Tmux { socket, pane },
        (Some(_), _) => MemberPane::Other,
        (None, _) => MemberPane::Missing,
    };
    vec![UiEffect::Background(BackgroundAction::CapturePane { name: page.key.clone(), pane })]
}

/// Changes the page of a member, if it is open.
pub(crate) fn update_member_page(
    state: &mut UiState,
    name: &str,
    change: impl FnOnce(&mut DetailPage),
) -> Vec<UiEffect> {
    let page = state.page.as_mut().filter(|page| page.panel == Panel::Members && page.key == name);
    page.map(change);
    Vec::new()
}

/// Marks all lines of the page as not seen, unless the user has seen the whole page. Called when
/// the size of the screen changes, because the page is then broken into other lines.
pub(crate) fn reset_progress(state: &mut UiState) {
    if let Some(DetailPage { progress: ReadProgress::UpToLine(read), .. }) = &mut state.page {
        *read = 0;
    }
}

/// Scrolls the page by a number of lines, at most until its last line is on the screen.
pub(crate) fn scroll(state: &mut UiState, by: isize) {
    let Some(page) = &state.page else { return };
    let max_first_line = page_lines(state, page).len().saturating_sub(page_height(state.size));
    let first_line = page.first_line.saturating_add_signed(by).min(max_first_line);
    state.page = state.page.take().map(|page| DetailPage { first_line, ..page });
}

/// Approves the request whose page is open, unless [`answerable_request`] refuses it.
pub(crate) fn approve_request(state: &mut UiState) -> Vec<UiEffect> {
    let Some(id) = answerable_request(state) else { return Vec::new() };
    state.view = ActiveView::Lists;
    vec![UiEffect::teamctl(&["approve", "--", &id], "")]
}

/// Asks the person for the reason to deny the request whose page is open. If the request must not
/// be answered, [`answerable_request`] shows why, and no reason is asked for.
pub(crate) fn deny_request(state: &mut UiState) -> Vec<UiEffect> {
    if let Some(id) = answerable_request(state) {
        state.start_prompt(PromptPurpose::DenyReason(id));
    }
    Vec::new()
}

/// The id of the plan or permission request whose page is open, if the person may answer the
/// request now. The whole page must have been on the screen, the request must not have changed
/// since then, and no other open request may have the same id.
///
/// `None` if no such page is open. Also `None` if the request must not be answered; the screen then
/// shows why.
fn answerable_request(state: &mut UiState) -> Option<String> {
    let page = state.page.as_ref().filter(|page| page.panel == Panel::Requests)?;
    let commands = state.suggested_commands.command(&["requests"]);
    let refusal = match &state.snapshot.requests {
        None => format!("cannot answer: the requests can't be read; see `{commands}`"),
        Some(requests) => match requests.iter().find(|request| request.key() == page.key) {
            None => "cannot answer: the request is no longer open".to_owned(),
            Some(request) if page.progress != ReadProgress::Complete || request.details != page.text => {
                "read it to its end first".to_owned()
            }
            Some(request) if requests.iter().filter(|other| other.id == request.id).count() > 1 => {
                format!("another request has the same id: answer it by hand, see {commands}")
            }
            Some(request) => return Some(request.id.clone()),
        },
    };
    state.refuse(&refusal);
    None
}
