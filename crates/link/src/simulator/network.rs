//! The simulated network: connections between a home and the annex, each with two pipes of bytes.

use crate::simulator::host::{ANNEX, HostIndex};
use protocol::annex_link::FrameDecoder;
use std::collections::{BTreeMap, VecDeque};

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    pub(super) bytes: VecDeque<u8>,
    pub(super) end: PipeEnd,
    pub(super) decoder: FrameDecoder,
}

/// What happens after the bytes of a pipe.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum PipeEnd {
    /// More bytes may be written.
    #[default]
    Open,
    /// The reader finds the end of the stream.
    Closed,
    /// Nothing more arrives, and the reader does not find out.
    Silent,
}

impl Pipe {
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.end == PipeEnd::Open {
            self.bytes.extend(bytes);
        }
    }

    /// Loses the bytes after the first `kept`.
    pub(super) fn cut(&mut self, kept: usize, end: PipeEnd) {
        if self.end == PipeEnd::Open {
            self.bytes.truncate(kept);
            self.end = end;
        }
    }
}

/// A connection. The annex knows it by its number here.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) home: HostIndex,
    /// The home's number for the connection.
    pub(super) number_at_home: u64,
    pub(super) to_annex: Pipe,
    pub(super) to_home: Pipe,
}

impl Connection {
    /// The pipe that `host` reads.
    pub(super) fn pipe_to(&mut self, host: HostIndex) -> &mut Pipe {
        if host == ANNEX { &mut self.to_annex } else { &mut self.to_home }
    }

    /// The pipe that `host` writes.
    pub(super) fn pipe_from(&mut self, host: HostIndex) -> &mut Pipe {
        if host == ANNEX { &mut self.to_home } else { &mut self.to_annex }
    }
}

/// All connections by the annex's numbers.
#[derive(Debug, Default)]
pub(super) struct Network {
    pub(super) connections: BTreeMap<u64, Connection>,
    last_connection: u64,
    /// The home of every connection, also of those that have ended.
    pub(super) homes: BTreeMap<u64, HostIndex>,
    pub(super) is_partitioned: bool,
}

impl Network {
    pub(super) fn connect(&mut self, home: HostIndex, number_at_home: u64) -> u64 {
        self.last_connection += 1;
        let (to_annex, to_home) = (Pipe::default(), Pipe::default());
        let connection = Connection { home, number_at_home, to_annex, to_home };
        self.connections.insert(self.last_connection, connection);
        self.homes.insert(self.last_connection, home);
        self.last_connection
    }

    /// The connection that `host` knows by `number`.
    pub(super) fn find(&mut self, host: HostIndex, number: u64) -> Option<&mut Connection> {
        let is_wanted = |(index, connection): &(&u64, &mut Connection)| match host {
            ANNEX => **index == number,
            home => connection.home == home && connection.number_at_home == number,
        };
        self.connections.iter_mut().find(is_wanted).map(|(_, connection)| connection)
    }

    /// The connections that have an end at `host`.
    pub(super) fn of_host(&mut self, host: HostIndex) -> impl Iterator<Item = &mut Connection> {
        self.connections.values_mut().filter(move |connection| host == ANNEX || connection.home == host)
    }
}
