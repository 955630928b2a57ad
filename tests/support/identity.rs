//! A stand-in for oauth2-proxy's `/oauth2/auth`: a session or token says itself whose it is, and what was asked is kept.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// What was asked: cookie and authorization, word by word.
pub type Questions = Arc<Mutex<Vec<(String, String)>>>;

/// Starts one; the port and what it was asked. A session `<user>` or `<user>+<group>+<group>`, a token `ey<the same>`.
pub async fn start() -> (u16, Questions) {
    let questions = Questions::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().route("/team/plans/oauth2/auth", axum::routing::get(answer));
    let router = router.with_state(questions.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (port, questions)
}

async fn answer(State(questions): State<Questions>, request: Request) -> Response {
    let text = |name: &str| {
        let value = request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        value.unwrap_or_default()
    };
    let (cookie, authorization) = (text("cookie"), text("authorization"));
    questions.lock().unwrap().push((cookie.clone(), authorization.clone()));
    let session = cookie.split("; ").find_map(|pair| pair.strip_prefix("__Secure-sites-plans="));
    let known = session.or_else(|| authorization.strip_prefix("Bearer ey")).unwrap_or_default();
    if known == "broken" {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let mut words = known.split('+');
    let user = words.next().unwrap_or_default().to_owned();
    if user.is_empty() || user == "nobody" {
        return StatusCode::ACCEPTED.into_response();
    }
    let groups = words.collect::<Vec<_>>().join(",");
    let email = format!("{user}@example.org");
    (
        StatusCode::ACCEPTED,
        [("X-Auth-Request-User", user), ("X-Auth-Request-Email", email), ("X-Auth-Request-Groups", groups)],
    )
        .into_response()
}
