//! Checks one host by one connection: its answer, version, latency and clock, and what is there.

use super::host_connection::{AnswerDeadline, HostConnection};
use super::transport_command::OWN_VERSION;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::host_report::{HostAnswer, HostReport, HostRequest, parse_hello_line};
use protocol::hosts_file_entry::{Host, HostName};
use serde::Serialize;
use std::time::{Duration, Instant};
use store::now;

/// How many round trips are measured. An odd number has a median.
const ROUND_TRIPS: usize = 5;
/// How long the programs on the host may take to answer.
const REPORT_TIMEOUT: Duration = Duration::from_secs(40);
/// How many lines of other programs may come before the first line.
const MAX_LINES_BEFORE: usize = 1000;

/// The result for one host. `None` if it was not found out.
#[derive(Debug, Serialize)]
pub(super) struct HostCheck {
    pub(super) host: HostName,
    /// How long the first line took, in ms.
    pub(super) connected_after_ms: Option<u64>,
    /// The first line, not empty, that another program has printed before the answer.
    pub(super) printed_before: Option<String>,
    /// The release of teamctl there.
    pub(super) version: Option<String>,
    /// The median of the round trips, in ms.
    pub(super) latency_ms: Option<f64>,
    /// How far the clock there is ahead, in ms. The error is at most half a round trip.
    pub(super) clock_ahead_ms: Option<i64>,
    #[serde(flatten)]
    pub(super) report: Option<HostReport>,
    pub(super) errors: Vec<ErrorReport>,
}

pub(super) fn check_host(name: &HostName, host: &Host, timeout: Duration) -> HostCheck {
    let mut check = HostCheck {
        host: name.clone(),
        connected_after_ms: None,
        printed_before: None,
        version: None,
        latency_ms: None,
        clock_ahead_ms: None,
        report: None,
        errors: Vec::new(),
    };
    let result = check.query_host(host, timeout);
    check.errors.extend(result.err());
    check
}

impl HostCheck {
    fn query_host(&mut self, host: &Host, timeout: Duration) -> Result<(), ErrorReport> {
        let mut connection = HostConnection::open(&self.host, host, &[&host.teamctl, "hosts", "report"])?;
        let version = self.receive_version(&mut connection, timeout)?;
        self.version = Some(version.clone());
        if version != OWN_VERSION {
            return Err(version_error(&self.host, &version));
        }
        self.measure_round_trips(&mut connection, timeout)?;
        let request = HostRequest::Report { root: host.root.clone() };
        let report = match self.request(&mut connection, &request, timeout.max(REPORT_TIMEOUT))? {
            HostAnswer::Report(report) => *report,
            answer => return Err(answer_error(&self.host, &answer)),
        };
        if report.tmux.is_none() {
            let message = format!("cannot show panes on {}: there is no tmux there", self.host);
            self.errors.push(
                ErrorReport::new(ErrorKind::MissingPath, message)
                    .with_help("install tmux 3.2 or newer there"),
            );
        }
        self.report = Some(report);
        Ok(())
    }

    /// Receives the first line of teamctl. Skips what other programs have printed before.
    fn receive_version(
        &mut self,
        connection: &mut HostConnection,
        timeout: Duration,
    ) -> Result<String, ErrorReport> {
        let deadline = AnswerDeadline::after(timeout);
        for _ in 0..MAX_LINES_BEFORE {
            let line = connection.receive_line("reach", deadline)?;
            if let Some(version) = parse_hello_line(&line) {
                self.connected_after_ms = u64::try_from(deadline.elapsed().as_millis()).ok();
                return Ok(version.to_owned());
            }
            if self.printed_before.is_none() && !line.trim().is_empty() {
                self.printed_before = Some(line);
            }
        }
        let message = format!("cannot reach {}: it prints text without end before an answer", self.host);
        Err(ErrorReport::new(ErrorKind::Io, message)
            .with_help("let the start files of the shell there print nothing without a terminal"))
    }

    fn measure_round_trips(
        &mut self,
        connection: &mut HostConnection,
        timeout: Duration,
    ) -> Result<(), ErrorReport> {
        let mut samples = Vec::new();
        for _ in 0..ROUND_TRIPS {
            let (start, sent_at) = (Instant::now(), now());
            match self.request(connection, &HostRequest::Ping, timeout)? {
                HostAnswer::Pong { now: there } => {
                    samples.push(RoundTrip { duration: start.elapsed(), sent_at, received_at: now(), there });
                }
                answer => return Err(answer_error(&self.host, &answer)),
            }
        }
        samples.sort_by_key(|sample| sample.duration);
        self.latency_ms = samples.get(ROUND_TRIPS / 2).map(|sample| sample.duration.as_secs_f64() * 1000.0);
        self.clock_ahead_ms = samples.first().map(RoundTrip::clock_ahead_ms);
        Ok(())
    }

    fn request(
        &self,
        connection: &mut HostConnection,
        request: &HostRequest,
        timeout: Duration,
    ) -> Result<HostAnswer, ErrorReport> {
        connection.send_line(&serde_json::to_string(request).expect("a request is valid JSON"));
        let line = connection.receive_line("go on with", AnswerDeadline::after(timeout))?;
        serde_json::from_str(&line).map_err(|error| {
            let message = format!("cannot understand the answer of {}: {error}", self.host);
            ErrorReport::new(ErrorKind::Io, message)
                .with_help(format!("install the same build there: teamctl hosts install {}", self.host))
        })
    }
}

/// One measured ping.
struct RoundTrip {
    duration: Duration,
    /// Times of this machine's clock, in ms since the epoch.
    sent_at: u64,
    received_at: u64,
    /// The time of the other clock in between.
    there: u64,
}

impl RoundTrip {
    /// How far the host's clock is ahead, in ms. 0 if the clocks may be equal: the host's time lies
    /// between the times here before and after the request.
    fn clock_ahead_ms(&self) -> i64 {
        let difference =
            |here: u64| i64::try_from(i128::from(self.there) - i128::from(here)).unwrap_or(i64::MAX);
        let (after_sending, before_receiving) = (difference(self.sent_at), difference(self.received_at));
        if after_sending >= 0 && before_receiving <= 0 {
            return 0;
        }
        after_sending.midpoint(before_receiving)
    }
}

/// The error for a host with another release.
pub(super) fn version_error(host: &HostName, version: &str) -> ErrorReport {
    let message = format!("cannot use {host}: it has version {version}, and here it is {OWN_VERSION}");
    ErrorReport::new(ErrorKind::Config, message)
        .with_help(format!("install the same version there: teamctl hosts install {host}"))
}

fn answer_error(host: &HostName, answer: &HostAnswer) -> ErrorReport {
    let reason = match answer {
        HostAnswer::Failed { message } => message.clone(),
        _ => "it gave another answer than asked for".to_owned(),
    };
    ErrorReport::new(ErrorKind::Io, format!("cannot check {host}: {reason}"))
        .with_help(format!("try it there: teamctl --host {host} doctor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_difference_is_zero_within_the_round_trip() {
        let ahead = |sent_at, there, received_at| {
            RoundTrip { duration: Duration::ZERO, sent_at, received_at, there }.clock_ahead_ms()
        };
        assert_eq!((ahead(100, 100, 100), ahead(100, 107, 110)), (0, 0));
        assert_eq!((ahead(100, 3_705, 110), ahead(5_000, 1_000, 5_010)), (3_600, -4_005));
    }
}
