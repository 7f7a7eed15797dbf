//! Tests of the times at which the output logs were last written.

use super::*;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;

#[test]
fn the_output_time_of_a_missing_log_is_zero() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = new_files_thread(dir.path(), BTreeMap::new());
    let log = dir.path().join("ann.log");
    let mut output_time = || {
        let logs = vec![(new_record("ann", 7).spawn_id, log.clone())];
        match files.run_job(FileJob::ReadOutputTimes { logs }) {
            Some(FileResult::OutputTimes { times }) => times[0].1,
            _ => panic!("no result"),
        }
    };
    assert_eq!(output_time(), 0);
    std::fs::write(&log, "here").unwrap();
    assert!(output_time() > 0);
}
