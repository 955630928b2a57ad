//! The rules of `notifications` and `jobs`: whether people can be told of requests at all.

use std::net::IpAddr;
use std::path::Path;

use http::{HeaderName, HeaderValue};
use lettre::Address;
use lettre::message::Mailbox;
use secrecy::ExposeSecret;

use super::super::Settings;
use super::super::notifications::{Notifications, Smtp, Webhook};
use super::{Violation, dns_name, expect, url};

const MAIL: &str = "must be a mail address such as sites@example.org";

/// Appends the broken rules.
pub(super) fn check(settings: &Settings, found: &mut Vec<Violation>) {
    if let Some(set) = &settings.notifications {
        expect(
            found,
            set.smtp.is_some() || set.webhook.is_some(),
            "notifications",
            "must hold smtp or webhook, or be left out: without either of them requests are off",
        );
        let folder = set.templates_path.as_deref();
        expect(found, folder.is_none_or(named), "notifications.templates_path", "must not be empty");
        if let Some(smtp) = &set.smtp {
            mail(smtp, found);
        }
        if let Some(webhook) = &set.webhook {
            tracker(webhook, found);
        }
    }
    let assignee = settings.jobs.notification_default_assignee.as_deref();
    let key = "jobs.notification_default_assignee";
    let legal = assignee.is_none_or(|name| !name.trim().is_empty() && !name.contains(char::is_control));
    expect(found, legal, key, "must not be empty, nor have control characters");
    if let (true, Some(name), Some(Notifications { smtp: Some(smtp), webhook: None, .. })) =
        (legal, assignee, &settings.notifications)
    {
        let message = "must be a mail address such as desk@example.org, or set notifications.smtp.default_domain";
        let reached = if name.contains('@') { address(name) } else { smtp.default_domain.is_some() };
        expect(found, reached, key, message);
    }
}

fn mail(smtp: &Smtp, found: &mut Vec<Violation>) {
    let host = dns_name(&smtp.host.to_ascii_lowercase()) || smtp.host.parse::<IpAddr>().is_ok();
    expect(found, host, "notifications.smtp.host", "must be a host name such as mail.example.org, without a port");
    expect(found, smtp.port >= 1, "notifications.smtp.port", "must be a port from 1 to 65535, such as 587");
    expect(found, smtp.from.parse::<Mailbox>().is_ok(), "notifications.smtp.from", MAIL);
    let domain = smtp.default_domain.as_deref();
    expect(
        found,
        domain.is_none_or(|domain| dns_name(&domain.to_ascii_lowercase())),
        "notifications.smtp.default_domain",
        "must be a domain such as example.org, without @",
    );
    let (user, password) = (smtp.user.as_deref(), smtp.password.as_ref().map(ExposeSecret::expose_secret));
    expect(found, user.is_none_or(|user| !user.is_empty()), "notifications.smtp.user", "must not be empty");
    expect(
        found,
        user.is_some() == password.is_some() && password.is_none_or(|password| !password.is_empty()),
        "notifications.smtp.password",
        "must be set together with notifications.smtp.user and not be empty, or both must be left out",
    );
}

fn tracker(webhook: &Webhook, found: &mut Vec<Violation>) {
    expect(
        found,
        url(&webhook.url, &["https://", "http://"]),
        "notifications.webhook.url",
        "must be an address that begins with https:// or http://",
    );
    expect(
        found,
        HeaderName::try_from(&webhook.header).is_ok(),
        "notifications.webhook.header",
        "must be the name of a header such as X-Sites-Secret",
    );
    let secret = webhook.secret.expose_secret();
    expect(
        found,
        !secret.trim().is_empty() && HeaderValue::from_str(secret).is_ok(),
        "notifications.webhook.secret",
        "must not be empty and must be one line, since it is sent as a header",
    );
}

fn address(name: &str) -> bool {
    name.parse::<Address>().is_ok()
}

fn named(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::super::super::load::tests::minimal;
    use super::super::super::notifications::SmtpSecurity;
    use super::super::violations;
    use super::*;

    fn settings() -> (Settings, Notifications) {
        let smtp = Smtp {
            host: "mail.example.org".to_owned(),
            port: 587,
            security: SmtpSecurity::Starttls,
            from: "Sites <sites@example.org>".to_owned(),
            default_domain: None,
            user: Some("sites".to_owned()),
            password: Some(SecretString::from("p")),
        };
        let webhook = Webhook {
            url: "https://issues.example.org/hook".to_owned(),
            header: "X-Sites-Secret".to_owned(),
            secret: SecretString::from("s"),
        };
        (minimal(), Notifications { smtp: Some(smtp), webhook: Some(webhook), templates_path: None })
    }

    fn keys(change: impl Fn(&mut Settings, &mut Notifications)) -> Vec<String> {
        let (mut all, mut set) = settings();
        change(&mut all, &mut set);
        all.notifications = Some(set);
        violations(&all).into_iter().map(|violation| violation.key).collect()
    }

    #[test]
    fn each_rule_of_mail_and_of_a_tracker() {
        type Break<T> = fn(&mut T);
        assert_eq!(keys(|_, _| ()), [""; 0]);
        let mail: &[(&str, Break<Smtp>)] = &[
            ("host", |smtp| smtp.host = "mail.example.org:25".to_owned()),
            ("host", |smtp| smtp.host = String::new()),
            ("port", |smtp| smtp.port = 0),
            ("from", |smtp| smtp.from = "nobody".to_owned()),
            ("from", |smtp| smtp.from = "a@b.c\r\nBcc: x@y.z".to_owned()),
            ("default_domain", |smtp| smtp.default_domain = Some("@example.org".to_owned())),
            ("password", |smtp| smtp.password = None),
            ("password", |smtp| smtp.password = Some(SecretString::from(""))),
            ("password", |smtp| smtp.user = None),
        ];
        for (key, change) in mail {
            let found = keys(|_, set| set.smtp.as_mut().into_iter().for_each(change));
            assert_eq!(found, [format!("notifications.smtp.{key}")]);
        }
        let tracker: &[(&str, Break<Webhook>)] = &[
            ("url", |webhook| webhook.url = "issues.example.org".to_owned()),
            ("header", |webhook| webhook.header = "X Secret".to_owned()),
            ("header", |webhook| webhook.header = String::new()),
            ("secret", |webhook| webhook.secret = SecretString::from(" ")),
            ("secret", |webhook| webhook.secret = SecretString::from("a\nb")),
        ];
        for (key, change) in tracker {
            let found = keys(|_, set| set.webhook.as_mut().into_iter().for_each(change));
            assert_eq!(found, [format!("notifications.webhook.{key}")]);
        }
        let neither = keys(|_, set| (set.smtp, set.webhook) = (None, None));
        assert_eq!(neither, ["notifications"]);
        assert_eq!(keys(|_, set| set.templates_path = Some("".into())), ["notifications.templates_path"]);
    }

    #[test]
    fn the_assignee_can_be_reached() {
        let key = "jobs.notification_default_assignee";
        let mail = |name: &str, domain: Option<&str>| {
            keys(|all, set| {
                all.jobs.notification_default_assignee = Some(name.to_owned());
                set.webhook = None;
                set.smtp.as_mut().into_iter().for_each(|smtp| smtp.default_domain = domain.map(str::to_owned));
            })
        };
        assert_eq!(mail("desk@example.org", None), [""; 0]);
        assert_eq!(mail("desk", Some("example.org")), [""; 0]);
        for (name, domain) in [("desk", None), ("de sk@example.org", None), ("", Some("example.org")), ("a\nb", None)] {
            assert_eq!(mail(name, domain), [key], "{name:?}");
        }
        // An account of the tracker is no mail address.
        assert_eq!(keys(|all, _| all.jobs.notification_default_assignee = Some("desk".to_owned())), [""; 0]);
        let mut without = minimal();
        without.jobs.notification_default_assignee = Some(" ".to_owned());
        assert_eq!(violations(&without).len(), 1, "also without notifications");
    }
}
