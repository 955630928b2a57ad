//! The table of contents of the Site API, and its OpenAPI document.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::StatusCode;
use utoipa::OpenApi;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AnyOf, Schema};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::plain;
use super::front::Front;
use super::{Api, answer, files, private, site, symlinks, tokens, transfer, urls};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Site API",
        version = "2",
        description = "Content, tokens and addresses of one site. Below `/<space>/<site>/s/api/v2`; `v1` is the same. \
            Every answer is JSON with `status` (`OK` or `error`), but for the bytes of a file. 401: nobody knows who \
            asks. 403: the caller is known, or was, and may not. People may use their session of the site as well. \
            Paths are percent-encoded, `%2F` separates too, empty segments mean nothing: an empty path is the site's \
            root.",
    ),
    servers((
        url = "https://{host}/{space}/{site}/s/api/v2",
        variables(("host" = (default = "sites.example.org")), ("space" = (default = "team")), ("site" = (default = "plans")))
    )),
    security(("token" = []), ("password" = [])),
    tags(
        (name = "files", description = "Content"),
        (name = "symlinks", description = "Links inside the site"),
        (name = "tokens", description = "HTTP access tokens; for administrators and the master token"),
        (name = "urls", description = "Signed and session URLs"),
        (name = "site", description = "The site as a whole"),
    )
)]
struct Document;

fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(files::get, files::put, files::delete))
        .routes(routes!(files::get_public))
        .routes(routes!(files::put_directory))
        .routes(routes!(symlinks::get, symlinks::put, symlinks::delete))
        .routes(routes!(transfer::copy))
        .routes(routes!(transfer::rename))
        .routes(routes!(transfer::checksum))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::history))
        .routes(routes!(tokens::get, tokens::revoke))
        .routes(routes!(urls::sign))
        .routes(routes!(urls::verify))
        .routes(routes!(urls::create_session))
        .routes(routes!(urls::open_session))
        .routes(routes!(site::usage))
        .routes(routes!(site::whoami))
        .routes(routes!(site::health))
}

/// The document, as it is committed and served.
#[must_use]
pub fn document() -> String {
    let mut document = routes().into_openapi();
    let scheme = |scheme| SecurityScheme::Http(Http::new(scheme));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", scheme(HttpAuthScheme::Bearer));
    components.add_security_scheme("password", scheme(HttpAuthScheme::Basic));
    let signature = ApiKeyValue::with_description(
        "sites-signature",
        "With `sites-expires` and `sites-method`: a signed URL opens one path by one method",
    );
    components.add_security_scheme("signature", SecurityScheme::ApiKey(ApiKey::Query(signature)));
    // A listing is JSON too: both forms fit it.
    if let Some(RefOr::T(shown)) = components.schemas.get_mut("Shown")
        && let Schema::OneOf(forms) = shown
    {
        let forms = std::mem::take(forms);
        *shown = Schema::AnyOf(AnyOf { items: forms.items, description: forms.description, ..AnyOf::default() });
    }
    // The router's mark for "all that follows" is no part of a path's name.
    let text = document.to_pretty_json().unwrap_or_default().replace("{*path}", "{path}");
    format!("{text}\n")
}

/// Everything that is served.
pub fn front(api: &Api) -> Front {
    let (mut router, _) = routes().split_for_parts();
    let document = document();
    // A wildcard does not match nothing, but an empty path is the root.
    for root in ["/files", "/files/"] {
        router = router.route(root, get(files::get).put(files::put).delete(files::delete));
    }
    for root in ["/pub/files", "/pub/files/"] {
        router = router.route(root, get(files::get_public));
    }
    let served = move || {
        let document = document.clone();
        async move { ([(http::header::CONTENT_TYPE, "application/json")], document) }
    };
    let router = router
        .route("/openapi.json", get(served))
        .route("/", get(|| async { answer::done("the Site API; openapi.json describes it") }))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(api.clone());
    let internal = Router::new()
        .route("/healthz", get(private::healthz))
        .route("/_auth/private", get(private::decide))
        .with_state(api.clone());
    Front { prefix: api.config.prefix.clone(), internal, api: router }
}

async fn not_found() -> Response {
    plain(StatusCode::NOT_FOUND, "not found: no such endpoint of the Site API")
}

async fn method_not_allowed() -> Response {
    plain(StatusCode::METHOD_NOT_ALLOWED, "the endpoint does not know this method")
}
