//! What it stands on does not answer, or is full.

use super::{Stopped, says, stays, types};
use harness::{Disk, House};

#[test]
fn teamd_is_not_there() {
    let house = House::with_team();
    stays(&house);
    house.kill_9(house.daemon());
    let told = says(&house, "no_daemon");
    assert!(told["evidence"][0].as_str().unwrap().contains("without a word"), "{told}");
    types(&house, &told);
    says(&house, "works");
    house.end();
}

/// In a pane tmux would let it go on at once.
#[test]
fn teamd_is_stopped() {
    let house = House::empty();
    let mut teamd = house.start_teamd();
    house.teamctl(["create", "survey"]).ok();
    stays(&house);
    let stopped = Stopped::new(teamd.id());
    types(&house, &says(&house, "daemon_silent"));
    says(&house, "works");
    drop(stopped);
    house.teamctl(["kill", "ann"]).ok();
    house.teamctl(["down"]).ok();
    assert!(teamd.wait().unwrap().success());
    house.end();
}

#[test]
fn tmux_is_stopped() {
    let house = House::with_team();
    stays(&house);
    let stopped = Stopped::new(house.tmux(["display-message", "-p", "#{pid}"]).parse().unwrap());
    types(&house, &says(&house, "tmux_silent"));
    says(&house, "works");
    drop(stopped);
    house.end();
}

#[test]
fn the_disk_is_full() {
    let Some(disk) = Disk::mount(16) else {
        return harness::skipped("why-full-disk", "no right to mount a small file system");
    };
    let house = House::on(disk.path());
    house.start_daemon();
    house.teamctl(["create", "survey"]).ok();
    stays(&house);
    disk.fill();
    types(&house, &says(&house, "disk_full"));
    disk.free();
    says(&house, "works");
    house.end();
}
