//! The table of contents: every route of the Hub and what answers it.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::routing::get;
use tower::Layer;

use super::platform::state::guard;
use super::state::Hub;
use super::{api, auth, pages, shell};
use crate::settings::Settings;

/// Every route, in the shell of headers and limits that all answers share.
pub fn router(hub: &Hub) -> Router {
    let known = axum::middleware::from_fn_with_state(hub.clone(), auth::identify);
    let v2 = Router::from(api::routes());
    let api = Router::new()
        .route("/hub/readyz", get(api::ready))
        .route("/hub/api/openapi.json", get(api::document::openapi))
        .route("/hub/api/docs/", get(api::document::page))
        .nest("/hub/api/v2", v2.clone())
        .nest("/hub/api/v1", v2)
        .merge(auth::login::routes())
        .route("/hub/", get(pages::home::page))
        .route_layer(axum::middleware::from_fn_with_state(hub.clone(), guard))
        .layer(known)
        .with_state(hub.clone());
    finished(api.merge(pages(hub.settings.clone())), &hub.settings)
}

/// Routes that need nothing but the settings.
fn pages(settings: Arc<Settings>) -> Router {
    Router::new()
        .route("/hub/healthz", get(async || "ok\n"))
        .route("/hub/static/hub.css", get(pages::style))
        .route("/hub/error/page/{code}/", get(pages::error::page))
        .route("/oauth2/callback", get(pages::callback::forward))
        .fallback(pages::error::not_found)
        .with_state(settings)
}

fn finished(routes: Router, settings: &Arc<Settings>) -> Router {
    let routes = shell::around(routes, settings);
    // Outside of the routing: a path without the slash at its end is the same route.
    Router::new()
        .fallback_service(tower::util::MapRequestLayer::new(shell::with_slash as fn(Request) -> Request).layer(routes))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::{HeaderMap, StatusCode, header};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::settings::load::tests::minimal;

    async fn ask(path: &str, accept: &str) -> (StatusCode, HeaderMap, String) {
        let request = Request::get(path).header(header::ACCEPT, accept).body(Body::empty()).unwrap();
        let settings = Arc::new(minimal());
        let answer = finished(pages(settings.clone()), &settings).oneshot(request).await.unwrap();
        let (head, body) = answer.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        (head.status, head.headers, text)
    }

    #[tokio::test]
    async fn an_error_page_answers_with_its_own_code_to_people_and_programs() {
        for path in ["/hub/error/page/410/", "/hub/error/page/410"] {
            let (status, headers, page) = ask(path, "text/html,*/*").await;
            assert_eq!(status, StatusCode::GONE);
            assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
            assert!(page.contains("This site is archived"), "{page}");
            let (status, headers, text) = ask(path, "*/*").await;
            assert_eq!(
                (status, &headers[header::CONTENT_TYPE]),
                (StatusCode::GONE, &"application/json".parse().unwrap())
            );
            assert!(text.starts_with("{\"message\":\"This site is archived") && text.contains("\"status\":\"error\""));
        }
        for path in
            ["/hub/error/page/200/", "/hub/error/page/x/", "/hub/nowhere", "/", "/hub/error/page/410%2f..%2f500/"]
        {
            let (status, _, text) = ask(path, "*/*").await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
            assert!(text.contains("not found"), "clients look for these words: {text}");
        }
    }

    #[tokio::test]
    async fn every_answer_protects_a_browser() {
        for path in ["/hub/healthz", "/hub/nowhere/", "/oauth2/callback", "/hub/static/hub.css"] {
            let (_, headers, _) = ask(path, "text/html").await;
            assert!(headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap().starts_with("default-src 'none'"));
            assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert_eq!(headers[header::X_FRAME_OPTIONS], "DENY");
            let kept = path.starts_with("/hub/static/");
            assert_eq!(headers[header::CACHE_CONTROL] == "no-store", !kept, "{path}");
        }
    }

    #[tokio::test]
    async fn the_callback_is_passed_on_as_it_came() {
        let (status, headers, _) = ask("/oauth2/callback?code=a%2Bb&state=n%3A%2Fdocs%2Ffdb%2F", "text/html").await;
        assert_eq!(status, StatusCode::FOUND);
        assert_eq!(headers[header::LOCATION], "/docs/fdb/oauth2/callback?code=a%2Bb&state=n%3A%2Fdocs%2Ffdb%2F");
        let (status, headers, _) = ask("/oauth2/callback?code=a&state=n%3A%2F%2Fevil.test%2Fx", "text/html").await;
        assert_eq!((status, headers.get(header::LOCATION)), (StatusCode::BAD_REQUEST, None));
    }
}
