//! B15: no text of a Site breaks out of the nginx configuration, an annotation or a page.

use proptest::prelude::*;

use super::words::{Directive, read};
use super::{MODES, SITES, file, objects, observed, settings, site};
use crate::domain::site::{ErrorHandling, Site};
use crate::render::{RenderError, render};

const HOSTILE: [&str; 14] = [
    "\"; return 200 owned; #",
    "'; } server { listen 1; } #",
    "$request_uri",
    "${document_root}",
    "\\",
    "\\\"; deny all; \"",
    "a\\",
    "{}",
    "}}}}",
    "# comment",
    "a;b",
    "ü 日本",
    "{{ id }} {% raw %}",
    "$",
];

fn with_header(value: &str, custom: bool) -> Site {
    let mut site = site(if custom { "dashboard" } else { "data" });
    site.spec.configuration.headers = [("X-Text".to_owned(), value.to_owned())].into();
    site
}

fn nginx(site: &Site) -> Result<Directive, RenderError> {
    let desired = render(site, &settings(), &observed())?;
    Ok(read(&file(&desired, "nginx.conf")).unwrap())
}

fn shape(directive: &Directive) -> Vec<String> {
    let mut names = Vec::new();
    directive.shape(0, &mut names);
    names
}

/// The text that nginx makes of the word that carries the header's value.
fn served(configuration: &Directive, custom: bool) -> String {
    let all = |name| {
        let mut found = Vec::new();
        configuration.all(name, &mut found);
        found
    };
    let word = if custom {
        let maps = all("map");
        let map = maps.iter().find(|map| map.words.get(2).is_some_and(|name| name == "$header_0")).unwrap();
        map.block.as_ref().unwrap().iter().find(|entry| entry.words[0].is_empty()).unwrap().words[1].clone()
    } else {
        all("add_header").iter().find(|header| header.words[1] == "X-Text").unwrap().words[2].clone()
    };
    let mut text = String::new();
    for variable in word.split_inclusive('}') {
        let name = variable.strip_prefix("${").and_then(|name| name.strip_suffix('}')).unwrap();
        let geos = all("geo");
        let geo = geos.iter().find(|geo| geo.words[1] == format!("${name}")).unwrap();
        let default = &geo.block.as_ref().unwrap()[0];
        assert_eq!((default.words[0].as_str(), default.words.len()), ("default", 2));
        text.push_str(&default.words[1]);
    }
    text
}

#[test]
fn b15_hostile_values_stay_values() {
    for custom in [false, true] {
        let benign = nginx(&with_header("benign", custom)).unwrap();
        for value in HOSTILE {
            let configuration = nginx(&with_header(value, custom)).unwrap();
            assert_eq!(shape(&configuration), shape(&benign), "{value}");
            assert_eq!(served(&configuration, custom), value);
        }
    }
}

#[test]
fn b15_control_characters_are_refused_raw_and_encoded() {
    for value in
        ["a\r\nSet-Cookie: x=1", "a\nb", "a\0b", "a\tb", "a\u{7f}", "a\u{85}b", "a%0d%0ab", "a%0Ab", "%00", "%7F"]
    {
        let error = nginx(&with_header(value, false)).unwrap_err();
        assert!(matches!(&error, RenderError::Header { name, .. } if name == "X-Text"), "{value:?}: {error}");
        assert!(error.to_string().contains("control characters"), "{error}");
    }
    for value in ["100%", "a%20b", "%zz", "50%0"] {
        nginx(&with_header(value, false)).unwrap();
    }
}

#[test]
fn b15_names_that_are_no_header_names_or_not_the_sites_are_refused() {
    let with = |headers: &[(&str, &str)]| {
        let mut site = site("data");
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        site.spec.configuration.headers = headers.collect();
        nginx(&site)
    };
    for name in [
        "X Y",
        "X:Y",
        "X\nY",
        "",
        "X;",
        "X{",
        "\"x\"",
        "x\\",
        "Ü",
        "Set-Cookie",
        "content-length",
        "Content-Type",
        "Transfer-Encoding",
        "connection",
        "LOCATION",
        "X-Accel-Redirect",
    ] {
        let error = with(&[(name, "value")]).unwrap_err();
        assert!(matches!(&error, RenderError::Header { name: given, .. } if given == name), "{name:?}: {error}");
    }
    let benign = shape(&with(&[("X-Name", "value")]).unwrap());
    for name in ["$request_uri", "'x'", "#x", "-x", "x|y", "`x`"] {
        assert_eq!(shape(&with(&[(name, "value")]).unwrap()), benign, "{name:?}");
    }
    let joined = with(&[("x-text", "1"), ("X-Text", "2"), ("Y", " ")]).unwrap();
    assert_eq!(served(&joined, false), "2, 1", "one header, both values");
}

#[test]
fn a_text_of_any_length_is_served_and_no_word_is_too_long_for_nginx() {
    let value = "\"ü\\$".repeat(1024);
    let configuration = nginx(&with_header(&value, false)).unwrap();
    assert_eq!(served(&configuration, false), value);
    let text = file(&render(&with_header(&value, false), &settings(), &observed()).unwrap(), "nginx.conf");
    let longest = text.lines().filter(|line| line.contains("geo ")).map(str::len).max().unwrap();
    assert!(longest < 4096, "{longest}");
}

#[test]
fn b15_paths_that_are_no_segments_are_refused_everywhere() {
    for text in
        ["a b", "a;b", "a{", "a}", "a$b", "a\"", "a'", "a#", "a\nb", "a%0ab", "..", ".a", "a/b", "ü", "-a", "a\\"]
    {
        for (_, routing, provider) in MODES {
            let mut settings = settings();
            settings.routing.mode = routing;
            settings.routing.gateway.provider = provider;
            for field in ["spec.name", "spec.configuration.space"] {
                let mut site = site("docs");
                if field == "spec.name" {
                    site.spec.name = Some(text.to_owned());
                } else {
                    site.spec.configuration.space = Some(text.to_owned());
                }
                let error = render(&site, &settings, &observed()).unwrap_err();
                assert!(error.to_string().starts_with(field), "{text:?}: {error}");
            }
        }
    }
}

#[test]
fn b15_a_not_found_page_stays_inside_the_content() {
    let mut site = site("docs");
    let mut with = |page: &str| {
        site.spec.configuration.settings.error_handling =
            Some(ErrorHandling { not_found_page: Some(page.to_owned()), ..ErrorHandling::default() });
        nginx(&site)
    };
    let benign = shape(&with("/404.html").unwrap());
    for page in ["//404.html", "/a/", "/", "/a b/$x \"y\";.html", "/${document_root}/x{}"] {
        assert_eq!(shape(&with(page).unwrap()), benign, "{page}");
    }
    for page in ["404.html", "/../etc/passwd", "/a/../../b", "/a\nb", "/./a", "/a?b", "/a%2f..%2fb"] {
        assert!(with(page).is_err(), "{page}");
    }
    let mut found = Vec::new();
    let state = with("/.sites/tokens").unwrap();
    state.all("try_files", &mut found);
    assert_eq!(found, Vec::<&Directive>::new(), "the state of the site is no page");
}

#[test]
fn b15_owner_and_brand_are_data() {
    let mut settings = settings();
    settings.site.brand = "</style><script>alert(1)</script>{{ id }}".to_owned();
    for (name, _) in SITES {
        let mut site = site(name);
        let benign = render(&site, &super::settings(), &observed()).unwrap();
        site.spec.owner = "\"; } evil \n $x {{ id }}".to_owned();
        let desired = render(&site, &settings, &observed()).unwrap();
        assert_eq!(file(&desired, "nginx.conf"), file(&benign, "nginx.conf"));
        assert!(!file(&desired, "404.html").contains("<script"));
        for object in objects(&desired) {
            let labels = &object["metadata"]["labels"];
            assert!(labels["sites.ecmwf.int/owner"].as_str().unwrap().starts_with("sha256-"));
        }
    }
}

#[test]
fn b15_annotations_refuse_what_breaks_a_shared_configuration() {
    for text in ["1s; evil", "1s\nx", "$x", "\"", "{", "#"] {
        let mut settings = settings();
        settings.routing.ingress.proxy_timeout = text.to_owned();
        assert!(matches!(render(&site("docs"), &settings, &observed()), Err(RenderError::Setting { .. })), "{text}");
    }
}

proptest! {
    #[test]
    fn any_value_is_refused_or_one_word(value in "\\PC{0,80}", custom in any::<bool>()) {
        prop_assume!(!value.trim().is_empty());
        let benign = shape(&nginx(&with_header("benign", custom)).unwrap());
        if let Ok(configuration) = nginx(&with_header(&value, custom)) {
            prop_assert_eq!(shape(&configuration), benign);
            prop_assert_eq!(served(&configuration, custom), value);
        }
    }

    #[test]
    fn hostile_letters_in_any_order(value in "[\\\\\"'$;{}# a\\n%0]{1,24}") {
        prop_assume!(!value.trim().is_empty());
        if let Ok(configuration) = nginx(&with_header(&value, false)) {
            prop_assert_eq!(served(&configuration, false), value);
        }
    }
}

proptest! {
    /// What the rules of a Site allow can be rendered: a Site that was accepted never stays unready for its texts.
    #[test]
    fn every_valid_site_renders(
        name in "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}",
        value in "\\PC{0,40}",
        page in "/[a-z0-9 ./%$\"\\\\{};']{0,20}",
        cpu in "\\+?[0-9]{1,6}(\\.[0-9]{0,12})?(n|u|m|k|M|Ki|Mi|e3|E-2|E)?",
        custom in any::<bool>(),
    ) {
        let mut site = site(if custom { "dashboard" } else { "data" });
        let configuration = &mut site.spec.configuration;
        configuration.headers = [(name, value)].into();
        configuration.settings.error_handling =
            Some(ErrorHandling { not_found_page: Some(page), ..ErrorHandling::default() });
        configuration.settings.resource_limits =
            Some(crate::domain::site::ResourceLimits { cpu: Some(cpu), memory: None });
        prop_assume!(crate::domain::rules::violations(&site).is_empty());
        if let Err(error) = nginx(&site) {
            prop_assert!(false, "{}", error);
        }
    }
}
