//! Mail.

use std::time::Duration;

use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use secrecy::ExposeSecret;

use super::message::Message;
use super::{NotifyError, Provider, Sending};
use crate::settings::notifications::{Smtp, SmtpSecurity};

/// Longest time until a mail is handed over. The library's own limit is for the connection only: a server that falls
/// silent later would hold the request.
const LIMIT: Duration = Duration::from_secs(10);

/// A mail server.
pub struct Mail {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    domain: Option<String>,
}

impl std::fmt::Debug for Mail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mail").field("from", &self.from).finish_non_exhaustive()
    }
}

impl Mail {
    pub(super) fn new(settings: &Smtp) -> Result<Self, NotifyError> {
        let host = &settings.host;
        let bad = |_| NotifyError::Settings("notifications.smtp.host is no host name".to_owned());
        let builder = match settings.security {
            SmtpSecurity::Starttls => AsyncSmtpTransport::<Tokio1Executor>::starttls_relay(host).map_err(bad)?,
            SmtpSecurity::Tls => AsyncSmtpTransport::<Tokio1Executor>::relay(host).map_err(bad)?,
            SmtpSecurity::Plain => AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host),
        };
        let mut builder = builder.port(settings.port).timeout(Some(LIMIT));
        if let (Some(user), Some(password)) = (&settings.user, &settings.password) {
            builder = builder.credentials(Credentials::new(user.clone(), password.expose_secret().to_owned()));
        }
        let from = settings
            .from
            .parse()
            .map_err(|_| NotifyError::Settings("notifications.smtp.from is no mail address".to_owned()))?;
        Ok(Self { transport: builder.build(), from, domain: settings.default_domain.clone() })
    }

    /// A user without an `@` is at the default domain.
    fn mailbox(&self, name: &str) -> Option<Mailbox> {
        let address = match (&self.domain, name.contains('@')) {
            (_, true) => name.to_owned(),
            (Some(domain), false) => format!("{name}@{domain}"),
            (None, false) => return None,
        };
        // The bare address only: a name in front of it would be taken from what people wrote.
        address.parse().ok().map(|email| Mailbox::new(None, email))
    }
}

impl Provider for Mail {
    fn send<'a>(&'a self, message: &'a Message) -> Sending<'a> {
        Box::pin(async move {
            let to = self.mailbox(&message.assignee).ok_or(NotifyError::Address("the assignee"))?;
            let mut mail = lettre::Message::builder()
                .from(self.from.clone())
                .to(to)
                .subject(&message.summary)
                // Mail programs join what has the same key.
                .references(format!("<{}@sites>", message.duplicate_key))
                .header(ContentType::TEXT_PLAIN);
            if let Some(reply) = self.mailbox(if message.email.is_empty() { &message.reporter } else { &message.email })
            {
                mail = mail.reply_to(reply);
            }
            let mail = mail.body(message.body.clone()).map_err(|_| NotifyError::Template("of the mail".to_owned()))?;
            let refused = |error: lettre::transport::smtp::Error| {
                let code = error.status().map(|code| code.to_string());
                NotifyError::Refused("mail server", code.unwrap_or_else(|| "it cannot be reached".to_owned()))
            };
            let silent = || NotifyError::Refused("mail server", format!("no answer within {} s", LIMIT.as_secs()));
            let sent = tokio::time::timeout(LIMIT, self.transport.send(mail)).await.map_err(|_| silent())?;
            sent.map(drop).map_err(refused)
        })
    }
}
