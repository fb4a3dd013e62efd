//! Tests the limit on the memory of the processes that play videos.

use serde_json::json;

use crate::desktop::wait_until;
use crate::hosted::{Hosted, videos};

#[test]
fn memory_of_a_process_that_plays_videos_is_limited() {
    let limited = "[power]\nmax_child_memory_mb = 300\n";
    let hosted = Hosted::with("mpvpaper", &["mpvpaper"], &["640x480"], limited, &[]);
    let [video, _] = videos(&hosted);
    hosted.set(&json!({ "image_id": video }));
    let children = || hosted.daemon.client().get("/debug").ok()["children"].clone();
    let pid = children()[0]["pid"].as_u64().unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max data size"));
    let expected = (300_u64 << 20).to_string();
    assert!(line.unwrap().contains(&expected), "{line:?}");
    // A process that exits is replaced, as any other.
    let process = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    wait_until(
        "another process",
        || matches!(children()[0]["pid"].as_u64(), Some(next) if next != pid),
    );
    let refused = json!({ "max_child_memory_mb": -1 });
    let answer = hosted.daemon.client().patch("/config/power", &refused);
    assert_eq!(answer.status, 400);
}
