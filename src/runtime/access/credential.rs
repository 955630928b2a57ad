//! Which credentials a request carries. Reads headers; believes none of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderValue};
use secrecy::SecretString;

use super::refusal::Refusal;

/// What the `Authorization` header holds.
#[derive(Debug)]
pub(super) enum Authorization {
    /// `Bearer <token>`.
    Bearer(SecretString),
    /// `Basic`: the password is the token, the user name means nothing.
    Basic(SecretString),
}

/// Reads the `Authorization` header. One that cannot be read is not none.
pub(super) fn authorization(headers: &HeaderMap) -> Result<Option<Authorization>, Refusal> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), more) = (values.next(), values.next()) else { return Ok(None) };
    if more.is_some() {
        return Err(Refusal::Malformed("the request has more than one Authorization header"));
    }
    let unknown = Refusal::Unauthenticated("use 'Authorization: Bearer <token>'");
    let text = value.to_str().map_err(|_| unknown.clone())?.trim();
    let (scheme, rest) = text.split_once(' ').ok_or_else(|| unknown.clone())?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") && !rest.is_empty() {
        return Ok(Some(Authorization::Bearer(SecretString::from(rest))));
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let pair = STANDARD.decode(rest).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let pair = pair.ok_or(Refusal::Unauthenticated("the Basic credentials are not valid"))?;
        let (_, password) =
            pair.split_once(':').ok_or(Refusal::Unauthenticated("the Basic credentials are not valid"))?;
        return Ok(Some(Authorization::Basic(SecretString::from(password))));
    }
    Err(unknown)
}

/// All cookies, in the order of the request, as they were sent.
pub(super) fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let texts = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

/// The session cookies of oauth2-proxy, joined for asking it: of the name or a part `<name>_<number>`, nothing else.
pub(super) fn session_cookies(headers: &HeaderMap, name: &str) -> Option<HeaderValue> {
    let ours = |candidate: &str| {
        candidate.strip_prefix(name).is_some_and(|rest| {
            let number = rest.strip_prefix('_');
            rest.is_empty()
                || number.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let pairs: Vec<String> =
        cookies(headers).filter(|(name, _)| ours(name)).map(|(name, value)| format!("{name}={value}")).collect();
    if pairs.is_empty() { None } else { HeaderValue::from_str(&pairs.join("; ")).ok() }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn headers(name: &http::HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn schemes() {
        let of = |text: &str| authorization(&headers(&AUTHORIZATION, &[text]));
        assert!(matches!(of("bearer  abc "), Ok(Some(Authorization::Bearer(t))) if t.expose_secret() == "abc"));
        assert!(matches!(of("Basic dGVhbTphOmI="), Ok(Some(Authorization::Basic(t))) if t.expose_secret() == "a:b"));
        for text in
            ["Bearer", "Bearer ", "abc", "Basic !", "Basic dGVhbQ==", "Digest a", "AWS4-HMAC-SHA256 Credential=x"]
        {
            assert!(matches!(of(text), Err(Refusal::Unauthenticated(_))), "{text}");
        }
        assert!(matches!(authorization(&HeaderMap::new()), Ok(None)));
        let two = authorization(&headers(&AUTHORIZATION, &["Bearer a", "Bearer b"]));
        assert!(matches!(two, Err(Refusal::Malformed(_))));
    }

    #[test]
    fn only_the_sites_session_is_asked_for() {
        let headers = headers(
            &COOKIE,
            &[
                "a=1; __Secure-sites-fdb=x; __Secure-sites-fdb2=no",
                "__Secure-sites-fdb_1=y; __Secure-sites-fdb_csrf=no",
            ],
        );
        let joined = session_cookies(&headers, "__Secure-sites-fdb").unwrap();
        assert_eq!(joined, "__Secure-sites-fdb=x; __Secure-sites-fdb_1=y");
        assert_eq!(session_cookies(&headers, "__Secure-sites-other"), None);
    }
}
