//! Paths that try to get out of a site's content, and what lies there.

use std::path::Path;

use proptest::prelude::*;

use super::RunningSite;

const PIECES: &[&str] = &[
    "..",
    "%2e%2e",
    ".%2e",
    "%2E.",
    "%252e%252e",
    "..%00",
    "..;",
    "%c0%ae%c0%ae",
    "..\\",
    "%5c..",
    "..%5c",
    "....//",
    "....",
    ".",
    "%2e",
    "%00",
    "%0a",
    "~",
    "in",
    "side.txt",
    "out",
    "up",
    "state",
    "beside.txt",
    "data",
    ".sites",
    "%2esites",
    ".SITES",
    "tokens.json",
    "access.json",
    "usage",
    "parts",
    "etc",
    "passwd",
    "proc",
    "self",
];
const SLASHES: &[&str] = &["/", "%2f", "%2F", "//", "\\", "%5c", "/./", "%252f"];

/// Pieces of such paths in any order, as they stand in a request line.
pub fn paths() -> impl Strategy<Value = String> + Clone {
    let piece = prop_oneof![prop::sample::select(PIECES).prop_map(str::to_owned), "[a-z%./]{0,6}"];
    let parts = prop::collection::vec((piece, prop::sample::select(SLASHES)), 1..7);
    parts.prop_map(|parts| parts.into_iter().map(|(piece, slash)| piece + slash).collect::<String>())
}

/// Makes what they look for: a file beside the content, links that lead out or to the state, and a token.
pub async fn bait(site: &RunningSite) {
    let volume = site.content("").parent().unwrap().to_owned();
    std::fs::write(volume.join("beside.txt"), "outside of the content").unwrap();
    for (target, link) in [("../beside.txt", "out"), ("..", "up"), (".sites", "state")] {
        std::os::unix::fs::symlink(target, site.content(link)).unwrap();
    }
    site.must_put("in/side.txt", b"inside").await;
    site.token("read", None).await;
}

/// Every file beside the content, and the tokens.
pub fn outside(site: &RunningSite) -> Vec<(String, Vec<u8>)> {
    let volume = site.content("").parent().unwrap().to_owned();
    let read = |path: &Path| (path.display().to_string(), std::fs::read(path).unwrap());
    let entries = std::fs::read_dir(&volume).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.chain([volume.join("data/.sites/tokens.json")]).filter(|path| path.is_file());
    let mut files: Vec<_> = files.map(|path| read(&path)).collect();
    files.sort();
    files
}
