//! The simulated network: connections between the home and annexes. Each connection has one pipe
//! per direction. A pipe delays what is sent, and can be cut at any byte.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use protocol::annex_link::{FrameDecoder, LinkFrame, encode_frame};
use std::collections::VecDeque;

/// Index of a host in the simulation.
pub(super) type HostIndex = usize;
/// The home is the first host.
pub(super) const HOME: HostIndex = 0;

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    /// The frames on their way, each with the time of its arrival in milliseconds.
    frames: VecDeque<(u64, Vec<u8>)>,
    end: PipeEnd,
    decoder: FrameDecoder,
}

/// What happens after the frames of a pipe.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum PipeEnd {
    /// More frames may be written.
    #[default]
    Open,
    /// The reader finds the end of the stream.
    Closed,
    /// Nothing more arrives, and the reader does not find out.
    Silent,
}

/// What a reader gets from a pipe.
#[derive(Debug)]
pub(super) enum Arrival {
    Frame(LinkFrame, usize),
    Closed,
}

impl Pipe {
    pub(super) fn write(&mut self, frame: &LinkFrame, arrives_at: u64) {
        if self.end == PipeEnd::Open {
            let arrives_at = self.frames.back().map_or(arrives_at, |(last, _)| arrives_at.max(*last));
            self.frames.push_back((arrives_at, encode_frame(frame).expect("the frame is short")));
        }
    }

    /// Loses all bytes after the first `kept`.
    pub(super) fn cut(&mut self, mut kept: usize, end: PipeEnd) {
        if self.end != PipeEnd::Open {
            return;
        }
        for (_, bytes) in &mut self.frames {
            bytes.truncate(kept);
            kept -= bytes.len();
        }
        self.end = end;
    }

    pub(super) fn length(&self) -> usize {
        self.frames.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// When the next frame or the end arrives. `None` if nothing does.
    pub(super) fn next_arrival(&self) -> Option<u64> {
        let at_end = (self.end == PipeEnd::Closed).then_some(0);
        self.frames.front().map(|(at, _)| *at).or(at_end)
    }

    /// Reads the next frame, or the end.
    pub(super) fn read(&mut self) -> Option<Arrival> {
        let Some((_, bytes)) = self.frames.pop_front() else {
            let is_closed = std::mem::replace(&mut self.end, PipeEnd::Silent) == PipeEnd::Closed;
            return is_closed.then_some(Arrival::Closed);
        };
        self.decoder.push(&bytes);
        let frame = self.decoder.next_frame().expect("only frames are written");
        frame.map(|(frame, bytes)| Arrival::Frame(frame, bytes))
    }

    fn is_over(&self) -> bool {
        self.frames.is_empty() && self.end == PipeEnd::Silent
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) annex: HostIndex,
    /// The number of the connection in the link of the home.
    pub(super) number_at_home: u64,
    /// The client that the connection is on the control socket of the annex.
    pub(super) client: ConnId,
    /// The number that the annex's end of the link gives to the connection. `None` until the annex
    /// has accepted the connection.
    pub(super) number_at_annex: Option<u64>,
    pub(super) to_annex: Pipe,
    pub(super) to_home: Pipe,
}

impl Connection {
    pub(super) fn new(annex: HostIndex, number_at_home: u64, client: ConnId) -> Connection {
        let (to_annex, to_home) = (Pipe::default(), Pipe::default());
        Connection { annex, number_at_home, client, number_at_annex: None, to_annex, to_home }
    }

    /// The pipe that `host` reads.
    pub(super) fn pipe_to(&mut self, host: HostIndex) -> &mut Pipe {
        if host == HOME { &mut self.to_home } else { &mut self.to_annex }
    }

    /// The pipe that `host` writes.
    pub(super) fn pipe_from(&mut self, host: HostIndex) -> &mut Pipe {
        if host == HOME { &mut self.to_annex } else { &mut self.to_home }
    }

    /// Closes the connection at the end `host`. Of the bytes that are on their way from `host`, the
    /// first `kept` still arrive, and the rest is lost.
    pub(super) fn close_at(&mut self, host: HostIndex, kept: usize) {
        self.pipe_from(host).cut(kept, PipeEnd::Closed);
        *self.pipe_to(host) = Pipe { end: PipeEnd::Silent, ..Pipe::default() };
        match host {
            HOME => self.number_at_home = u64::MAX,
            _ => (self.client, self.number_at_annex) = (u64::MAX, None),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.to_annex.is_over() && self.to_home.is_over()
    }
}
