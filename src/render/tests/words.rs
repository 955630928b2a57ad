//! A small reader of nginx configuration: enough to compare what nginx would see.
//! It follows nginx's own reader: words, quotes with backslashes, comments, `;`, `{` and `}`.

/// One directive: its words, and its block if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    pub words: Vec<String>,
    pub block: Option<Vec<Directive>>,
}

impl Directive {
    /// The names of this directive and of all below, in order: the shape of a configuration.
    pub fn shape(&self, depth: usize, into: &mut Vec<String>) {
        into.push(format!("{depth} {} {}", self.words[0], self.words.len()));
        for child in self.block.iter().flatten() {
            child.shape(depth + 1, into);
        }
    }

    /// All directives of a name, at any depth.
    pub fn all<'a>(&'a self, name: &str, into: &mut Vec<&'a Self>) {
        if self.words[0] == name {
            into.push(self);
        }
        for child in self.block.iter().flatten() {
            child.all(name, into);
        }
    }
}

/// Reads a whole configuration as one directive `main`.
pub fn read(text: &str) -> Result<Directive, String> {
    let characters: Vec<char> = text.chars().collect();
    let mut position = 0;
    let block = block(&characters, &mut position, false)?;
    Ok(Directive { words: vec!["main".to_owned()], block: Some(block) })
}

fn block(text: &[char], position: &mut usize, nested: bool) -> Result<Vec<Directive>, String> {
    let mut directives = Vec::new();
    let mut words = Vec::new();
    loop {
        let Some(&character) = text.get(*position) else {
            return if nested || !words.is_empty() { Err("unexpected end".to_owned()) } else { Ok(directives) };
        };
        match character {
            ' ' | '\t' | '\r' | '\n' => *position += 1,
            '#' => {
                while text.get(*position).is_some_and(|character| *character != '\n') {
                    *position += 1;
                }
            }
            ';' => {
                *position += 1;
                if words.is_empty() {
                    return Err("unexpected ;".to_owned());
                }
                directives.push(Directive { words: std::mem::take(&mut words), block: None });
            }
            '{' => {
                *position += 1;
                if words.is_empty() {
                    return Err("unexpected {".to_owned());
                }
                let inner = block(text, position, true)?;
                directives.push(Directive { words: std::mem::take(&mut words), block: Some(inner) });
            }
            '}' => {
                *position += 1;
                return if nested && words.is_empty() { Ok(directives) } else { Err("unexpected }".to_owned()) };
            }
            _ => words.push(word(text, position)?),
        }
    }
}

fn word(text: &[char], position: &mut usize) -> Result<String, String> {
    let quote = text.get(*position).copied().filter(|character| matches!(character, '"' | '\''));
    if quote.is_some() {
        *position += 1;
    }
    let mut word = String::new();
    loop {
        let Some(&character) = text.get(*position) else { return Err("unexpected end of a word".to_owned()) };
        match (quote, character) {
            (_, '\\') => {
                let next = text.get(*position + 1).copied().ok_or("unexpected end after a backslash")?;
                match next {
                    '"' | '\'' | '\\' => word.push(next),
                    't' => word.push('\t'),
                    'r' => word.push('\r'),
                    'n' => word.push('\n'),
                    other => word.extend(['\\', other]),
                }
                *position += 2;
                continue;
            }
            (Some(end), character) if character == end => {
                *position += 1;
                return match text.get(*position) {
                    Some(' ' | '\t' | '\r' | '\n' | ';' | '{' | ')') => Ok(word),
                    other => Err(format!("unexpected {other:?} after a quoted word")),
                };
            }
            (None, '$') if text.get(*position + 1) == Some(&'{') => {
                word.push_str("${");
                *position += 2;
                continue;
            }
            (None, ' ' | '\t' | '\r' | '\n' | ';' | '{') => return Ok(word),
            (_, character) => word.push(character),
        }
        *position += 1;
    }
}
