//! The OpenAPI document of the Hub, which is the contract, and the page that shows it.

use std::collections::BTreeMap;

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use utoipa::OpenApi;

use super::super::platform::state::asks;
use super::super::state::Hub;
use super::routes;
use crate::domain::forms;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sites Hub API",
        version = "2",
        description = "Websites as a service. Below `/hub/api/v2`; `v1` is the same. Every refusal is JSON with `status`, \
            `message` and, for wrong fields, `errors`. A path without its last slash answers too. A Site that is not \
            yours to see is not found; without a login every Site that is not public answers 401.",
    ),
    servers((url = "/hub/api/v2")),
    security(("bearer" = []), ("session" = [])),
    tags(
        (name = "sites", description = "The list of Sites, and new ones"),
        (name = "site", description = "One Site"),
        (name = "actions", description = "What can be done to a Site"),
        (name = "credentials", description = "Tokens and addresses that open a Site"),
        (name = "requests", description = "Requests that people decide"),
        (name = "platform", description = "The platform and the caller"),
    )
)]
struct Document;

/// What the layers around every route answer, so that no handler has to say it.
const ALWAYS: [(&str, &str); 4] = [
    ("401", "Log in first, or the token is refused"),
    ("413", "The body is too large"),
    ("429", "Too many requests: `Retry-After` says how long to wait"),
    ("503", "No answer in time, or a part of the platform is down"),
];
/// What stands before every change.
const CHANGES: (&str, &str) = ("403", "The CSRF token of a session is missing");
/// What may be asked for without a body.
const BODY_OR_NONE: [&str; 2] = ["/toggle/", "/access/"];
/// What is read without a login: who somebody is, and public Sites.
const FOR_EVERYBODY: [&str; 4] = ["/whoami/", "/sites/", "/sites/{space}/{site}/", "/sites/-/{site_id}/"];

/// The document.
#[must_use]
pub fn document() -> Value {
    let mut document = json!(Document::openapi());
    let api = json!(routes().into_openapi());
    for part in ["paths", "components"] {
        document[part] = api[part].clone();
    }
    document["components"]["securitySchemes"] = json!({
        "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "An access token of the OpenID provider"},
        "session": {"type": "apiKey", "in": "cookie", "name": "__Secure-sites-hub",
            "description": "A browser that logged in at `/hub/login/`; changes need the header `X-CSRF-Token`"},
    });
    unsigned(&mut document);
    if let Some(paths) = document["paths"].as_object_mut() {
        for (path, item) in paths {
            complete(path, item);
            for (verb, operation) in item.as_object_mut().into_iter().flatten() {
                surround(path, verb, operation);
            }
        }
    }
    document
}

/// What the handlers of one Site do not know: how it is addressed, and a name of the operation for each way.
fn complete(path: &str, item: &mut Value) {
    let named = |name: &str, text: &str, pattern: &str| {
        json!({"name": name, "in": "path", "required": true, "description": text,
            "schema": {"type": "string", "pattern": pattern}})
    };
    let (added, by_id) = if path.contains("{site_id}") {
        (vec![named("site_id", "Id of the Site", forms::ID)], true)
    } else if path.contains("{space}") {
        let segment = |name, text| named(name, text, forms::SEGMENT);
        (vec![segment("space", "First segment of the public path"), segment("site", "Second segment")], false)
    } else {
        return;
    };
    for (_, operation) in item.as_object_mut().into_iter().flatten() {
        let mut parameters = added.clone();
        parameters.extend(operation["parameters"].as_array().cloned().unwrap_or_default());
        operation["parameters"] = parameters.into();
        let name = operation["operationId"].as_str().unwrap_or_default();
        let name = format!(
            "{}_{name}",
            path.trim_end_matches('/').rsplit('/').next().filter(|last| !last.starts_with('{')).unwrap_or("site")
        );
        operation["operationId"] = if by_id { format!("{name}_by_id") } else { name }.into();
    }
}

/// Takes the formats off numbers that are not below zero: `int32` and `int64` are of numbers with a sign, which end
/// earlier.
fn unsigned(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("minimum").is_some_and(|least| least.as_f64().is_some_and(|least| least >= 0.0)) {
                fields.remove("format");
            }
            fields.values_mut().for_each(unsigned);
        }
        Value::Array(items) => items.iter_mut().for_each(unsigned),
        _ => {}
    }
}

/// The headers of an answer that has one.
fn header(name: &str) -> Value {
    json!({name: {"schema": {"type": "string"}}})
}

/// What no handler knows: the answers of the layers around it, that some operations need no login, and that a read-only
/// platform refuses every change.
fn surround(path: &str, verb: &str, operation: &mut Value) {
    if verb == "get" && FOR_EVERYBODY.contains(&path) {
        operation["security"] = json!([{"bearer": []}, {"session": []}, {}]);
    }
    if BODY_OR_NONE.iter().any(|end| path.ends_with(end)) {
        operation["requestBody"]["required"] = false.into();
    }
    let answers = operation["responses"].as_object().cloned().unwrap_or_default();
    let mut answers: BTreeMap<String, Value> = answers.into_iter().collect();
    let changes = (verb != "get").then_some(CHANGES);
    for (status, text) in ALWAYS.into_iter().chain(changes) {
        let answer = answers.entry(status.to_owned()).or_insert_with(|| {
            let schema = json!({"$ref": "#/components/schemas/ErrorBody"});
            json!({"description": text, "content": {"application/json": {"schema": schema}}})
        });
        match status {
            "401" => answer["headers"] = header("WWW-Authenticate"),
            "429" => answer["headers"] = header("Retry-After"),
            _ => {}
        }
    }
    let method = Method::from_bytes(verb.to_uppercase().as_bytes()).unwrap_or_default();
    if let Some(answer) = answers.get_mut("503").filter(|_| asks(&method, path)) {
        let said = answer["description"].as_str().unwrap_or_default();
        answer["description"] = format!("{said}, or the platform is read-only").into();
    }
    // What is named is there.
    for (_, header) in answers.values_mut().filter_map(|answer| answer.get_mut("headers")?.as_object_mut()).flatten() {
        header["required"] = true.into();
    }
    operation["responses"] = json!(answers);
}

/// `GET /hub/api/openapi.json`.
pub async fn openapi() -> Json<Value> {
    Json(document())
}

struct Operation {
    verb: String,
    path: String,
    summary: String,
    parameters: Vec<(String, String, String)>,
    answers: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "api.html")]
struct Page<'a> {
    brand: &'a str,
    about: String,
    groups: Vec<(String, Vec<Operation>)>,
}

/// `GET /hub/api/docs/`: the document as a page, made by the server, without scripts.
pub async fn page(State(hub): State<Hub>) -> Response {
    let document = document();
    // Marks of code mean nothing on the page.
    let text = |value: &Value| value.as_str().unwrap_or_default().replace('`', "");
    let mut groups: Vec<(String, Vec<Operation>)> = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        // The same by id: said once in the introduction.
        if path.contains("{site_id}") {
            continue;
        }
        for (verb, operation) in item.as_object().into_iter().flatten() {
            let list = |name: &str| operation[name].as_array().cloned().unwrap_or_default();
            let given = list("parameters");
            let parameters = given.iter().map(|one| (text(&one["name"]), text(&one["in"]), text(&one["description"])));
            let answers = operation["responses"].as_object().into_iter().flatten();
            let told = Operation {
                verb: verb.to_uppercase(),
                path: path.clone(),
                summary: [text(&operation["summary"]), text(&operation["description"])].join(" ").trim().to_owned(),
                parameters: parameters.collect(),
                answers: answers.map(|(code, answer)| (code.clone(), text(&answer["description"]))).collect(),
            };
            let tag = text(&operation["tags"][0]);
            match groups.iter_mut().find(|(name, _)| *name == tag) {
                Some((_, operations)) => operations.push(told),
                None => groups.push((tag, vec![told])),
            }
        }
    }
    let page = Page { brand: &hub.settings.site.brand, about: text(&document["info"]["description"]), groups };
    match page.render() {
        Ok(html) => ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response(),
        Err(_) => super::super::error::ApiError::Upstream("the page could not be made".to_owned()).into_response(),
    }
}
