//! A big file up and down, in memory that has nothing to do with its size.

use std::fs;
use std::path::{Path, PathBuf};

use super::curl;
use crate::support::{MASTER, Pods, SiteClient, with_pods};

/// Full of holes on the way up; below, on the volume, it is real. As big as people's models are, and many times what a
/// container of the pod may take.
const LENGTH: u64 = 2 << 30;

/// What the pod's processes may take more than before, in KiB: some buffers for a connection, never a part of a file.
const ROOM: u64 = 48 << 10;

#[test]
fn real_client_33_a_big_file_goes_up_and_down_in_constant_memory() {
    with_pods("real_client_33", async |pods| {
        let site = pods.public().await;
        let here = tempfile::tempdir().unwrap();
        let source = here.path().join("model.ckpt");
        let file = fs::File::create(&source).unwrap();
        file.set_len(LENGTH).unwrap();
        // Not the same everywhere: what is cut or put together in another way is found.
        for place in (0..LENGTH).step_by(64 << 20) {
            std::os::unix::fs::FileExt::write_all_at(&file, &(place + 1).to_le_bytes(), place + 12_345).unwrap();
        }
        let processes = processes(pods, "pages").await;
        assert!(processes.len() >= 5, "the pod's processes are seen: {processes:?}");
        let idle = resident(&processes, "VmRSS:");
        forget_peaks(&processes);

        transfer(&site, &source, here.path()).await;
        let peaks = resident(&processes, "VmHWM:");
        for ((name, before), (_, peak)) in idle.iter().zip(&peaks) {
            assert!(peak.saturating_sub(*before) < ROOM, "{name} took {peak} KiB, {before} KiB before");
        }
        eprintln!("memory in KiB, before and at its peak: {idle:?} {peaks:?}");
        let pod = pods.world.must("Pod", "pages-0").await;
        for status in pod["status"]["containerStatuses"].as_array().unwrap() {
            assert_eq!(status["restartCount"], 0, "{status}");
        }
        assert_eq!(site.delete("files/deep").await.status, 200);
    });
}

/// Uploads a file by a form and downloads it as a page.
async fn transfer(site: &SiteClient, source: &Path, here: &Path) {
    let bearer = format!("Authorization: Bearer {MASTER}");
    let part = format!("file=@{};filename=file", source.display());
    let (url, format) = (site.url("files/deep/model.ckpt"), "\n%{http_code} %{time_total}");
    let up = curl(site, &["-X", "PUT", "-H", &bearer, "-F", &part, "--write-out", format, &url]).await.well();
    assert!(up.contains("\n200 "), "{up}");
    let back = here.join("back.ckpt").display().to_string();
    let format = "%{http_code} %header{content-length} %{size_download} %{time_total}";
    let url = site.page_url("deep/model.ckpt");
    let down = curl(site, &["-fsSL", "-o", &back, "--write-out", format, &url]).await.well();
    assert!(down.starts_with(&format!("200 {LENGTH} {LENGTH} ")), "{down}");
    eprintln!("seconds for {LENGTH} bytes, up and down: {} and {}", last(&up), last(&down));
    let compared = std::process::Command::new("cmp").arg(source).arg(&back).output().unwrap();
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stdout));
}

fn last(text: &str) -> &str {
    text.rsplit(' ').next().unwrap()
}

/// The processes of a Site's pod, as the control groups of the node have them: name and folder in `/proc`.
async fn processes(pods: &Pods, id: &str) -> Vec<(String, PathBuf)> {
    let uid = pods.world.must("Pod", &format!("{id}-0")).await["metadata"]["uid"].clone();
    let uid = uid.as_str().map(str::to_owned).unwrap();
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let inside =
        all.filter(|process| fs::read_to_string(process.join("cgroup")).is_ok_and(|groups| groups.contains(&uid)));
    let named = inside.filter_map(|process| {
        let command = fs::read_to_string(process.join("cmdline")).ok()?.replace('\0', " ");
        (!command.contains("sleep infinity")).then_some((command.chars().take(40).collect(), process))
    });
    named.collect()
}

/// A line of `/proc/<pid>/status` of each process, in KiB.
fn resident(processes: &[(String, PathBuf)], line: &str) -> Vec<(String, u64)> {
    let read = |process: &Path| -> Option<u64> {
        let status = fs::read_to_string(process.join("status")).ok()?;
        status.lines().find_map(|told| told.strip_prefix(line))?.trim().trim_end_matches(" kB").parse().ok()
    };
    processes.iter().map(|(name, process)| (name.clone(), read(process).expect(name))).collect()
}

/// The kernel counts each process's peak anew from here.
fn forget_peaks(processes: &[(String, PathBuf)]) {
    for (_, process) in processes {
        fs::write(process.join("clear_refs"), "5").unwrap();
    }
}
