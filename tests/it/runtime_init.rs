//! `sites runtime init`: a new volume, one of an older platform, and one that is ready already.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::site::{DATA, Start, command};

struct Volume(TempDir);

impl Volume {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join(DATA)).unwrap();
        Self(folder)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(DATA).join(path)
    }

    async fn init(&self) -> String {
        let output = command("init", self.0.path(), 1, &Start::default()).output().await.unwrap();
        let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    }
}

#[tokio::test]
async fn a_new_volume_gets_its_folders_and_a_first_page() {
    let volume = Volume::new();
    // What a new file system has.
    std::fs::create_dir(volume.path("lost+found")).unwrap();
    std::fs::set_permissions(volume.path("lost+found"), std::fs::Permissions::from_mode(0o000)).unwrap();
    volume.init().await;
    let page = std::fs::read_to_string(volume.path("index.html")).unwrap();
    assert!(page.contains("<h1>team/plans</h1>"), "{page}");
    let mode = |path: &str| std::fs::metadata(volume.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("index.html"), mode(".sites")), (0o775, 0o644, 0o700));
    let before = tree(&volume.path(""));
    volume.init().await;
    assert_eq!(tree(&volume.path("")), before, "the second time changes nothing");
    std::fs::remove_file(volume.path("index.html")).unwrap();
    volume.init().await;
    assert!(!volume.path("index.html").exists(), "a site that was emptied stays empty");
}

#[tokio::test]
async fn an_older_platforms_volume_keeps_its_content() {
    let volume = Volume::new();
    std::fs::create_dir_all(volume.path("docs/1.0")).unwrap();
    std::fs::write(volume.path("docs/1.0/page.html"), "page").unwrap();
    symlink(volume.path("docs/1.0"), volume.path("docs/latest")).unwrap();
    symlink("/data/docs/1.0/page.html", volume.path("current.html")).unwrap();
    symlink("1.0", volume.path("docs/stable")).unwrap();
    symlink("/etc/passwd", volume.path("docs/passwd")).unwrap();
    symlink("/data/docs/later", volume.path("later")).unwrap();
    volume.init().await;
    let target = |path: &str| std::fs::read_link(volume.path(path)).unwrap().display().to_string();
    assert_eq!(target("docs/latest"), "1.0");
    assert_eq!(target("current.html"), "docs/1.0/page.html");
    assert_eq!(target("docs/stable"), "1.0");
    assert_eq!(target("docs/passwd"), "/etc/passwd", "no link of the site's: nobody follows it");
    assert_eq!(target("later"), "docs/later");
    assert!(!volume.path("index.html").exists(), "content is there");
    assert_eq!(std::fs::read_to_string(volume.path("docs/latest/page.html")).unwrap(), "page");
    let before = tree(&volume.path(""));
    volume.init().await;
    assert_eq!(tree(&volume.path("")), before);
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let volume = Volume::new();
    for (name, value) in [("SITE_CONTENT_DIR", "/nonexistent"), ("SITE_QUOTA_GI", "")] {
        let start = Start { env: &[(name, value)], ..Start::default() };
        let output = command("init", volume.0.path(), 1, &start).output().await.unwrap();
        let error = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!output.status.success() && error.contains(name), "{name}: {error}");
    }
}

/// Names, kinds, targets and times of all that is in a folder, but for the ledger, which counts its own changes.
fn tree(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, metadata) = (entry.path(), entry.path().symlink_metadata().unwrap());
        if path.ends_with("lost+found") || path.ends_with(".sites/usage") {
            continue;
        }
        let target = std::fs::read_link(&path).ok();
        let time = if metadata.is_dir() { None } else { metadata.modified().ok() };
        found.push(format!("{} {:?} {target:?} {time:?}", path.display(), metadata.file_type()));
        if metadata.is_dir() {
            found.extend(tree(&path));
        }
    }
    found.sort();
    found
}
