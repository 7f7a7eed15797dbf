//! Calls on the control socket without teamctl.

use crate::TestEnv;
use crate::dir_watcher::TIMEOUT;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

impl TestEnv {
    /// The daemon's control socket in the runtime directory.
    ///
    /// # Panics
    /// If no daemon has ever run.
    pub fn control_socket(&self) -> PathBuf {
        let mut directories = std::fs::read_dir(self.path("run/teamd")).expect("a daemon has run");
        directories.next().expect("a daemon has run").expect("readable").path().join("control.sock")
    }

    /// Connects to the control socket.
    pub fn connect_to_daemon(&self) -> UnixStream {
        let stream = UnixStream::connect(self.control_socket()).expect("the daemon listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("the timeout is valid");
        stream.set_write_timeout(Some(TIMEOUT)).expect("the timeout is valid");
        stream
    }

    /// Sends a request, with the token of a member or as a person, and returns the daemon's reply.
    /// Null if the daemon closes the connection without a reply.
    ///
    /// # Panics
    /// If there is no reply within 20 s.
    pub fn call_daemon(&self, token: Option<&str>, request: &Value) -> Value {
        let call = json!({"version": protocol::control_socket::PROTOCOL_VERSION, "token": token, "request": request});
        self.send_to_daemon(
            &protocol::control_socket::framing::encode(&call).expect("the call is short enough"),
        )
    }

    /// Sends bytes, and returns the daemon's reply as [`TestEnv::call_daemon`] does.
    ///
    /// # Panics
    /// If there is no reply within 20 s.
    pub fn send_to_daemon(&self, bytes: &[u8]) -> Value {
        let mut stream = self.connect_to_daemon();
        // The daemon may close the connection before it has read everything.
        stream.write_all(bytes).ok();
        let mut line = String::new();
        match BufReader::new(stream).read_line(&mut line) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("no reply within {TIMEOUT:?}")
            }
            _ => serde_json::from_str(&line).unwrap_or_default(),
        }
    }
}
