//! The rooms keep to their layers. The sources are read as text: what a file names, it depends on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every source file by its path below the checkout.
fn sources(folders: &[&str]) -> BTreeMap<String, String> {
    fn collect(folder: &Path, root: &Path, found: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, root, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeMap::new();
    for folder in folders.iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir()) {
        collect(&folder, &root, &mut found);
    }
    assert!(!found.is_empty());
    found
}

/// The code without comments, so that a rule may be explained where it binds.
fn code(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The room of a file: the folder below `src`, or the file's own name.
fn room(file: &str) -> &str {
    let below = file.strip_prefix("src/").unwrap();
    below.split_once('/').map_or(below, |(room, _)| room)
}

/// Files outside `rooms` that name one of `words`.
fn naming(words: &[&str], rooms: &[&str]) -> Vec<String> {
    let outside = sources(&["src"]).into_iter().filter(|(file, _)| !rooms.contains(&room(file)));
    let named = outside.filter(|(_, text)| words.iter().any(|word| has_word(&code(text), word)));
    named.map(|(file, _)| file).collect()
}

/// Whether a word stands in a text, not as a part of another.
fn has_word(text: &str, word: &str) -> bool {
    let edge = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric() && letter != '_');
    text.match_indices(word).any(|(at, found)| {
        let after = text[at + found.len()..].chars().next();
        edge(text[..at].chars().next_back()) && (edge(after) || !word.ends_with(char::is_alphanumeric))
    })
}

#[test]
fn architecture_words_are_found_as_words() {
    assert!(has_word("let x: Api<Pod> = a;", "Api<") && has_word("use ractor::Actor;", "ractor::"));
    assert!(!has_word("subtractor::of(1)", "ractor::") && !has_word("MyApi<Pod>", "Api<"));
}

#[test]
fn architecture_only_cluster_names_the_client() {
    let words = ["kube::Client", "kube::client", "kube::Api", "kube::api", "kube::runtime", "Api<", "Api::"];
    assert_eq!(naming(&words, &["cluster"]), Vec::<String>::new());
}

#[test]
fn architecture_only_engine_operator_and_hub_name_actors() {
    // The name of its log target is a word too: what is meant is the library.
    assert_eq!(naming(&["ractor::", "use ractor"], &["engine", "operator", "hub"]), Vec::<String>::new());
}

#[test]
fn architecture_only_cache_names_redis() {
    // The key in the settings is a word too: what is meant is the library.
    assert_eq!(naming(&["redis::", "use redis"], &["cache"]), Vec::<String>::new());
}

/// A site's pod has no Kubernetes credentials and needs no client for them.
#[test]
fn architecture_runtime_names_no_kubernetes_client() {
    let words = ["kube::", "k8s_openapi::", "ractor::", "redis::"];
    for (file, text) in sources(&["src/runtime"]) {
        for word in words {
            assert!(!has_word(&code(&text), word), "{file} names {word}");
        }
    }
}

/// What each room may use. A room that is not here may not exist.
fn allowed() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        ("telemetry", &[][..]),
        ("settings", &[]),
        ("domain", &[]),
        ("cluster", &["telemetry"]),
        ("cache", &["telemetry"]),
        ("engine", &["cluster", "telemetry"]),
        ("render", &["domain", "settings"]),
        ("runtime", &["domain", "settings", "telemetry"]),
        ("operator", &["cache", "cluster", "domain", "engine", "render", "settings", "telemetry"]),
        // Of the engine it has how a process connects, and how rights are written down; a Site is rendered to know
        // whether its objects will fit.
        ("hub", &["cache", "cluster", "domain", "engine", "render", "settings", "telemetry"]),
        ("main.rs", &["domain", "engine", "hub", "operator", "runtime", "settings", "telemetry"]),
        (
            "lib.rs",
            &["cache", "cluster", "domain", "engine", "hub", "operator", "render", "runtime", "settings", "telemetry"],
        ),
    ])
}

#[test]
fn architecture_rooms_use_only_the_rooms_below_them() {
    let allowed = allowed();
    let rooms: Vec<&str> = allowed.keys().copied().filter(|room| !room.contains('.')).collect();
    let mut wrong = Vec::new();
    for (file, text) in sources(&["src"]) {
        let here = room(&file);
        let Some(below) = allowed.get(here) else {
            wrong.push(format!("{file}: {here} is no room: add it to the layers"));
            continue;
        };
        let text = code(&text);
        for other in rooms.iter().filter(|other| **other != here && !below.contains(other)) {
            let paths = [format!("crate::{other}"), format!("sites::{other}"), format!("super::super::{other}::")];
            if paths.iter().any(|path| has_word(&text, path)) || braced(&text).any(|name| name == *other) {
                wrong.push(format!("{file} uses {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The first names inside `use crate::{…}`.
fn braced(text: &str) -> impl Iterator<Item = &str> {
    let lists = text.match_indices("crate::{").map(|(at, found)| {
        let rest = &text[at + found.len()..];
        &rest[..rest.find(';').unwrap_or(rest.len())]
    });
    lists.flat_map(|list| list.split([',', '{', '}'])).map(|item| item.trim().split("::").next().unwrap_or_default())
}

#[test]
fn architecture_domain_and_render_are_pure() {
    let words =
        ["tokio", "Instant::now", "SystemTime", "Timestamp::now", "Zoned::now", "rand::", "std::fs", "std::net"];
    for (file, text) in sources(&["src/domain", "src/render"]) {
        // Tests at the end of a file may read files.
        let text = code(text.split("#[cfg(test)]").next().unwrap_or_default());
        if file.ends_with("_tests.rs") || file.contains("/tests/") {
            continue;
        }
        for word in words {
            assert!(!has_word(&text, word), "{file} names {word}");
        }
    }
}

#[test]
fn architecture_files_are_small_and_say_what_they_own() {
    for (file, text) in sources(&["src", "tests", "xtask/src", "examples", "loadtest"]) {
        let lines = text.lines().count();
        assert!(lines <= 500, "{file} has {lines} lines");
        assert!(text.starts_with("//! "), "{file} does not open with what it owns");
        for part in file.trim_end_matches(".rs").split('/') {
            assert!(
                !["utils", "util", "helpers", "helper", "common", "misc"].contains(&part),
                "{file}: a name for nothing"
            );
        }
        let code = code(&text);
        for name in ["utils", "helpers", "common"] {
            assert!(!has_word(&code, &format!("mod {name}")), "{file}: a module named {name}");
        }
    }
}

/// The rooms of the diagram in `src/lib.rs` are the rooms that exist.
#[test]
fn architecture_diagram_has_every_room() {
    let lib = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).unwrap();
    let diagram: String = lib.lines().filter(|line| line.starts_with("//!")).collect();
    for room in allowed().keys().filter(|room| !room.contains('.')) {
        assert!(has_word(&diagram, room), "{room} is not in the diagram");
        assert!(lib.contains(&format!("pub mod {room};")), "{room} is no module");
    }
}
