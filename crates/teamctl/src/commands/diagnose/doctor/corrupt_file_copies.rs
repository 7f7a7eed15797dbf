//! Reports the copies of corrupt files that teamd keeps in the state directory.

use super::report::DoctorReport;
use protocol::state_file_names::CORRUPT_DIR;
use std::fs::read_dir;
use std::path::Path;

pub(super) fn check(state_dir: &Path, report: &mut DoctorReport) {
    let directory = state_dir.join(CORRUPT_DIR);
    match read_dir(&directory).map_or(0, Iterator::count) {
        0 => report.ok("corrupt_copies", "no damaged file was set aside"),
        count => {
            let message = format!("copies of damaged files are in {}: {count}", directory.display());
            report.warn(
                "corrupt_copies",
                message,
                "once the original files work again, remove the copies; see docs/troubleshooting.md",
            );
        }
    }
}
