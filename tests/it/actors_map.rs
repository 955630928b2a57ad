//! `actors.md` is true to the code: its table has each actor with exactly the messages that the actor takes, and names
//! no message and no file that does not exist. The sources are parsed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::{ImplItem, Item, Type};

/// What the sources say.
#[derive(Default)]
struct Code {
    /// Type of an actor to type of its messages.
    actors: BTreeMap<String, String>,
    /// Every enum with its variants.
    enums: BTreeMap<String, BTreeSet<String>>,
}

impl Code {
    fn read(folder: &Path) -> Self {
        let mut code = Self::default();
        code.folder(folder);
        code
    }

    fn folder(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.folder(&path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let file = syn::parse_file(&std::fs::read_to_string(&path).unwrap());
                self.items(&file.unwrap_or_else(|error| panic!("{}: {error}", path.display())).items);
            }
        }
    }

    fn items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Mod(module) => self.items(module.content.as_ref().map_or(&[][..], |(_, items)| items)),
                Item::Enum(found) => {
                    let variants = found.variants.iter().map(|variant| variant.ident.to_string()).collect();
                    self.enums.insert(found.ident.to_string(), variants);
                }
                Item::Impl(found) => {
                    let of = found.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
                    if of.is_some_and(|of| of.ident == "Actor") {
                        let messages = found.items.iter().find_map(|item| match item {
                            ImplItem::Type(item) if item.ident == "Msg" => Some(name(&item.ty)),
                            _ => None,
                        });
                        self.actors.insert(name(&found.self_ty), messages.expect("an actor has a type of messages"));
                    }
                }
                _ => {}
            }
        }
    }

    /// The enums that actors take.
    fn messages(&self) -> impl Iterator<Item = (&String, &BTreeSet<String>)> {
        self.actors.values().map(|of| self.enums.get_key_value(of).unwrap_or_else(|| panic!("{of} is no enum")))
    }
}

/// The last name of a path, without what it is generic over.
fn name(of: &Type) -> String {
    let Type::Path(path) = of else { panic!("an actor and its messages are named types") };
    path.path.segments.last().unwrap().ident.to_string()
}

/// What stands in backticks.
fn ticked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What is wrong with a map.
fn faults(map: &str, code: &Code) -> Vec<String> {
    let mut faults = Vec::new();
    let mut rows = BTreeSet::new();
    let table = map.lines().skip_while(|line| !line.starts_with("| Actor | Owns | Accepts | Emits |"));
    for line in table.skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').skip(1).collect();
        let actor = ticked(cells[0]).next().unwrap_or_default();
        let Some(messages) = code.actors.get(actor) else {
            faults.push(format!("{actor} is no actor"));
            continue;
        };
        rows.insert(actor);
        let accepts: BTreeSet<&str> = ticked(cells[2]).collect();
        let takes: BTreeSet<&str> = code.enums[messages].iter().map(String::as_str).collect();
        faults.extend(accepts.difference(&takes).map(|name| format!("{actor} takes no {name}")));
        faults
            .extend(takes.difference(&accepts).map(|name| format!("{actor} takes {name}, which the map does not say")));
        // What somebody sends, somebody takes.
        let known = |name: &str| code.messages().any(|(of, all)| of == name || all.contains(name));
        faults.extend(ticked(cells[3]).filter(|name| !known(name)).map(|name| format!("{actor}: nobody takes {name}")));
    }
    faults.extend(
        code.actors.keys().filter(|actor| !rows.contains(actor.as_str())).map(|actor| format!("no row for {actor}")),
    );
    // The files of the tree, and those that the text names.
    let words = map.split(|letter: char| letter.is_whitespace() || "`(),".contains(letter));
    let files = words.filter(|word| Path::new(word).extension().is_some_and(|extension| extension == "rs"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let missing = files.filter(|file| !root.join("src").join(file).exists() && !root.join(file).exists());
    faults.extend(missing.map(|file| format!("there is no {file}")));
    faults
}

#[test]
fn actors_map_is_true_to_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let code = Code::read(&root.join("src"));
    assert!(code.actors.len() >= 3 && code.messages().all(|(_, all)| !all.is_empty()), "{:?}", code.actors);
    let map = std::fs::read_to_string(root.join("actors.md")).unwrap();
    assert_eq!(faults(&map, &code), Vec::<String>::new());

    // Each kind of untruth is found.
    for (from, to, fault) in [
        ("| `RouteOwner` |", "| `RouteKeeper` |", "RouteKeeper is no actor"),
        ("| `RouteOwner` |", "| `RouteKeeper` |", "no row for RouteOwner"),
        ("`ResyncTick`, ", "", "Registry takes ResyncTick, which the map does not say"),
        ("`Describe` |", "`Describe`, `Scribe` |", "ObjectActor takes no Scribe"),
        ("| `Want`,", "| `Wish`,", "ObjectActor: nobody takes Wish"),
        ("engine/registry.rs", "engine/registrar.rs", "there is no engine/registrar.rs"),
    ] {
        assert!(map.contains(from), "{from}");
        let found = faults(&map.replacen(from, to, 1), &code);
        assert!(found.iter().any(|found| found == fault), "{fault}: {found:?}");
    }
}
