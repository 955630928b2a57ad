//! The session of a browser: an encrypted, authenticated cookie, so that no replica has to remember anybody.
//!
//! Owns the cookies' names, attributes and form. A session of many groups is larger than a cookie may be: it is cut
//! into several that belong together, and groups beyond those are left out.

use axum_extra::extract::cookie::{Cookie, PrivateCookieJar, SameSite};
use serde::{Deserialize, Serialize};

use crate::domain::people::Person;

/// The first of them; the others have `-1`, `-2`, `-3` at their end.
const NAME: &str = "__Secure-sites-hub";
/// Bytes of a session in one cookie: encrypted and encoded they are under the 4096 that browsers keep.
const PIECE: usize = 2800;
/// Cookies of a session: more, and a request is larger than proxies take.
const MOST: usize = 4;

/// Who is at the browser, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Random; what is signed out.
    pub id: String,
    /// Subject.
    pub user: String,
    /// May be empty.
    pub email: String,
    /// May be empty.
    pub preferred_username: String,
    /// Exact names.
    pub groups: Vec<String>,
    /// Seconds since 1970 at which it ends.
    pub until: i64,
    /// Seconds since 1970 at which the person gave their password, if the provider says so. Never the moment of the
    /// login itself: a script of a site can bring about a login that the provider answers without asking anybody.
    pub auth_time: Option<i64>,
}

impl Session {
    /// Its person.
    pub fn person(&self) -> Person {
        let Self { user, email, preferred_username, groups, .. } = self.clone();
        Person { user, email, preferred_username, groups }
    }

    /// The session in a request's cookies, unless it has ended.
    pub fn read(jar: &PrivateCookieJar, now: i64) -> Option<Self> {
        let first = jar.get(NAME)?;
        let (mark, piece) = first.value().split_once('|')?;
        let (id, count) = mark.split_once('.')?;
        let mut text = piece.to_owned();
        for number in 1..count.parse::<usize>().ok().filter(|count| *count <= MOST)? {
            let next = jar.get(&name(number))?;
            // A piece of another session, or of this one in another place, is no piece of it.
            text.push_str(next.value().strip_prefix(&format!("{id}.{number}|"))?);
        }
        let session: Self = serde_json::from_str(&text).ok()?;
        (session.id == id && session.until > now).then_some(session)
    }

    /// Puts it into the cookies of an answer. Gives how many groups were left out.
    pub fn write(mut self, jar: PrivateCookieJar) -> (PrivateCookieJar, usize) {
        let all = self.groups.len();
        let mut text = self.text();
        while text.len() > MOST * PIECE && !self.groups.is_empty() {
            let over = text.len() - MOST * PIECE;
            let mut freed = 0;
            while freed <= over
                && let Some(group) = self.groups.pop()
            {
                freed += group.len() + 3;
            }
            text = self.text();
        }
        let pieces = pieces(&text);
        let mut jar = Self::remove(jar);
        for (number, piece) in pieces.iter().enumerate() {
            let mark = if number == 0 { pieces.len() } else { number };
            jar = jar.add(cookie(name(number), format!("{}.{mark}|{piece}", self.id)));
        }
        (jar, all - self.groups.len())
    }

    /// Takes every session out of a browser.
    pub fn remove(jar: PrivateCookieJar) -> PrivateCookieJar {
        (0..MOST).fold(jar, |jar, number| jar.remove(cookie(name(number), String::new())))
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn name(number: usize) -> String {
    if number == 0 { NAME.to_owned() } else { format!("{NAME}-{number}") }
}

/// A cookie of the Hub: of this host and its pages, never of a script or another site's form.
pub fn cookie(name: String, value: String) -> Cookie<'static> {
    Cookie::build((name, value)).path("/hub").http_only(true).secure(true).same_site(SameSite::Lax).build()
}

/// Parts of at most [`PIECE`] bytes, cut between characters.
fn pieces(text: &str) -> Vec<&str> {
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, header};
    use axum::response::IntoResponse;
    use axum_extra::extract::cookie::Key;

    use super::*;

    fn key() -> Key {
        Key::from(&[7; 64])
    }

    fn session(groups: usize) -> Session {
        Session {
            id: "x1".to_owned(),
            user: "ana".to_owned(),
            email: "ana@example.org".to_owned(),
            preferred_username: String::new(),
            groups: (0..groups).map(|number| format!("gr\u{fc}ppe-{number:04}-of-an-institute")).collect(),
            until: 1000,
            auth_time: Some(5),
        }
    }

    /// The `Set-Cookie` lines, and the `Cookie` header that comes back.
    fn written(session: Session) -> (Vec<String>, String, usize) {
        let (jar, left) = session.write(PrivateCookieJar::new(key()));
        let answer = jar.into_response();
        let lines: Vec<String> =
            answer.headers().get_all(header::SET_COOKIE).iter().map(|line| line.to_str().unwrap().to_owned()).collect();
        let sent: Vec<&str> = lines.iter().filter_map(|line| line.split(';').next()).collect();
        let sent = sent.join("; ");
        (lines, sent, left)
    }

    fn read(cookies: &str, now: i64) -> Option<Session> {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, cookies.parse().unwrap());
        Session::read(&PrivateCookieJar::from_headers(&headers, key()), now)
    }

    #[test]
    fn a_session_comes_back_until_it_ends() {
        for groups in [0, 1, 200] {
            let (lines, sent, left) = written(session(groups));
            assert_eq!((read(&sent, 999), left), (Some(session(groups)), 0));
            assert_eq!(read(&sent, 1000), None);
            for line in lines {
                assert!(line.split(';').next().unwrap().len() < 4096);
                for attribute in ["HttpOnly", "SameSite=Lax", "Secure", "Path=/hub"] {
                    assert!(line.split("; ").any(|part| part == attribute), "{attribute}: {line}");
                }
            }
        }
    }

    #[test]
    fn groups_beyond_four_cookies_are_left_out_and_counted() {
        let (lines, sent, left) = written(session(2000));
        let kept = read(&sent, 1).unwrap().groups;
        assert_eq!((lines.len(), kept.len() + left), (MOST, 2000));
        assert!(kept.len() > 200 && session(2000).groups.starts_with(&kept));
    }

    #[test]
    fn pieces_of_two_sessions_are_none() {
        let (_, sent, _) = written(session(200));
        let other = Session { id: "x2".to_owned(), ..session(200) };
        let (_, others, _) = written(other);
        let (mine, theirs): (Vec<&str>, Vec<&str>) = (sent.split("; ").collect(), others.split("; ").collect());
        assert!(mine.len() > 2);
        assert_eq!(read(&[mine[0], theirs[1], mine[2]].join("; "), 1), None);
        assert_eq!(read(&[mine[0], mine[2]].join("; "), 1), None);
        let swapped = mine[1].replacen("-1=", "-2=", 1);
        assert_eq!(read(&[mine[0], mine[1], &swapped].join("; "), 1), None);
    }

    #[test]
    fn a_changed_cookie_is_none() {
        let (_, sent, _) = written(session(1));
        let at = sent.len() - 10;
        let other = if sent.as_bytes()[at] == b'A' { "B" } else { "A" };
        assert_eq!(read(&[&sent[..at], other, &sent[at + 1..]].concat(), 1), None);
    }
}
