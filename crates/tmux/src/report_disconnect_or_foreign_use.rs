//! Notices that this crate sends to its caller: another program or a person may have used a session
//! of this crate, or the connection to tmux has ended.

use std::sync::{Arc, Mutex, PoisonError};

/// A change that tmux reports without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerNotice {
    /// A foreign window, pane or client may be in a session that this crate created. The caller
    /// then calls [`TmuxServer::move_out_foreigners`](crate::TmuxServer::move_out_foreigners).
    OwnSessionsUsed,
    /// The connection has ended, but the caller did not end it. The server may be gone. The next
    /// call tries to connect again.
    Disconnected,
}

/// Sends notices to the caller's handler. The reader threads of successive connections share it.
#[derive(Clone)]
pub(crate) struct NoticeSender(Arc<Mutex<NoticeHandler>>);

type NoticeHandler = Box<dyn Fn(ServerNotice) + Send>;

impl NoticeSender {
    pub(crate) fn new(handler: NoticeHandler) -> NoticeSender {
        NoticeSender(Arc::new(Mutex::new(handler)))
    }

    /// Calls the handler and waits until it returns.
    pub(crate) fn notify(&self, notice: ServerNotice) {
        let handler = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        handler(notice);
    }
}
