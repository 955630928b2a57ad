//! A part of an answer, and the token that continues it.
//!
//! Owns the token: the place of the last Site that was given and a mark of the question. The next page begins behind
//! that place, so Sites that come and go meanwhile move nothing: none is given twice, none that stays is left out.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::index::{Entry, Found, Place, place};
use super::query::Query;

/// Sites of a page, unless the caller says how many.
pub const LIMIT: usize = 50;
/// Most Sites of a page.
pub const MOST: usize = 500;

/// A token that is not one of ours, or of another question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("[continuation_token] {}", self.advice())]
pub struct BadToken;

impl BadToken {
    /// What to do.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        "is not of this list: leave it out to begin again"
    }
}

#[derive(Serialize, Deserialize)]
struct Token {
    after: Place,
    question: u64,
}

/// Where a page begins.
#[derive(Clone, Debug)]
pub enum Start {
    /// Behind so many Sites.
    Offset(usize),
    /// Where another page ended.
    Token(String),
}

/// A part of an answer.
#[derive(Debug)]
pub struct Page {
    /// Its Sites.
    pub sites: Vec<Arc<Entry>>,
    /// Of how many.
    pub count: usize,
    /// Continues behind it; `None` at the end.
    pub token: Option<String>,
}

/// Cuts a page out of an answer.
pub fn page(found: &Found, query: &Query, start: &Start, limit: usize) -> Result<Page, BadToken> {
    let from = match start {
        Start::Offset(offset) => (*offset).min(found.len()),
        Start::Token(token) => {
            let token = read(token).filter(|token| token.question == question(query)).ok_or(BadToken)?;
            found.partition_point(|entry| {
                let here = place(query.sort_by, &entry.site);
                if query.descending { here >= token.after } else { here <= token.after }
            })
        }
    };
    let to = from.saturating_add(limit.min(MOST)).min(found.len());
    let token = found[from..to].last().filter(|_| to < found.len()).map(|last| {
        let token = Token { after: place(query.sort_by, &last.site), question: question(query) };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    });
    Ok(Page { sites: found[from..to].to_vec(), count: found.len(), token })
}

fn read(token: &str) -> Option<Token> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()
}

/// The same for every replica of one release.
fn question(query: &Query) -> u64 {
    let mut hasher = DefaultHasher::new();
    query.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::index::Index;
    use super::super::index::tests::site;
    use super::super::query::Viewer;
    use super::*;

    #[test]
    fn a_token_of_another_question_is_refused() {
        let mut index = Index::default();
        for id in ["a", "b", "c"] {
            index.put(site(id, "s", id, "o", "public"));
        }
        let query = Query::default();
        let found = index.find(&Viewer::Everything, &query);
        let first = page(&found, &query, &Start::Offset(0), 2).unwrap();
        assert_eq!((first.sites.len(), first.count), (2, 3));
        let token = first.token.unwrap();
        let last = page(&found, &query, &Start::Token(token.clone()), 2).unwrap();
        assert_eq!((last.sites.len(), last.token), (1, None));
        let other = Query { descending: true, ..Query::default() };
        assert_eq!(page(&found, &other, &Start::Token(token), 2).unwrap_err(), BadToken);
        assert_eq!(page(&found, &query, &Start::Token("x!".to_owned()), 2).unwrap_err(), BadToken);
        assert_eq!(page(&found, &query, &Start::Offset(99), 2).unwrap().sites.len(), 0);
    }

    proptest! {
        /// Sites that are there all the time are given exactly once, whatever comes and goes between two pages.
        #[test]
        fn churn_moves_nothing(
            churn in prop::collection::vec((20..40_u8, any::<bool>()), 30),
            limit in 1..6_usize,
            descending in any::<bool>(),
        ) {
            let mut index = Index::default();
            let stable = |number: u8| format!("s{number:02}");
            for number in 0..20 {
                index.put(site(&stable(number), "s", &stable(number * 2), "o", "public"));
            }
            let query = Query { descending, ..Query::default() };
            let (mut start, mut given, mut churn) = (Start::Offset(0), Vec::new(), churn.into_iter());
            loop {
                let part = page(&index.find(&Viewer::Everything, &query), &query, &start, limit).unwrap();
                given.extend(part.sites.iter().map(|entry| entry.site.spec.id.clone()));
                let Some(token) = part.token else { break };
                start = Start::Token(token);
                if let Some((number, gone)) = churn.next() {
                    let id = format!("t{number}");
                    if gone { index.remove(&id) } else { index.put(site(&id, "s", &stable(number), "o", "public")) }
                }
            }
            let stays: Vec<&String> = given.iter().filter(|id| id.starts_with('s')).collect();
            let distinct: BTreeSet<&String> = stays.iter().copied().collect();
            prop_assert_eq!((stays.len(), distinct.len()), (20, 20));
        }
    }
}
