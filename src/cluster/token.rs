//! The bearer token in a file, as the kubelet rotates it.
//!
//! Owns when the file is read: at the start, once a minute, and at once after a 401. If it cannot be read
//! later the last token stays in use. Must not print it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use http::HeaderValue;
use tokio::sync::Mutex;

use super::connect::ConnectError;

const FRESH: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    /// The header is marked sensitive: its `Debug` shows nothing.
    current: Mutex<(HeaderValue, Instant)>,
}

impl TokenFile {
    pub(super) async fn open(path: PathBuf) -> Result<Self, ConnectError> {
        let text = tokio::fs::read_to_string(&path)
            .await
            .map_err(|source| ConnectError::Token { path: path.display().to_string(), source })?;
        let header = bearer(&text).ok_or(ConnectError::Header("the token in the token file"))?;
        Ok(Self { path, current: Mutex::new((header, Instant::now())) })
    }

    /// The header to send now.
    pub(super) async fn header(&self) -> HeaderValue {
        let mut current = self.current.lock().await;
        if current.1.elapsed() >= FRESH {
            self.read(&mut current).await;
        }
        current.0.clone()
    }

    /// After a 401 on `used`: the header to try instead, if the file holds another one by now.
    pub(super) async fn other_than(&self, used: &HeaderValue) -> Option<HeaderValue> {
        let mut current = self.current.lock().await;
        if current.0 == used {
            self.read(&mut current).await;
        }
        (current.0 != used).then(|| current.0.clone())
    }

    async fn read(&self, current: &mut (HeaderValue, Instant)) {
        let path = self.path.display();
        match tokio::fs::read_to_string(&self.path).await.map(|text| bearer(&text)) {
            Ok(Some(header)) => current.0 = header,
            Ok(None) => tracing::warn!(%path, "the token file holds no token, the last one stays in use"),
            Err(error) => tracing::warn!(%path, %error, "the token file is unreadable, the last token stays in use"),
        }
        current.1 = Instant::now();
    }
}

fn bearer(text: &str) -> Option<HeaderValue> {
    let token = text.trim();
    if token.is_empty() {
        return None;
    }
    let mut header = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_rotated_token_is_found_after_a_401() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "one\n").unwrap();
        let file = TokenFile::open(path.clone()).await.unwrap();
        let one = file.header().await;
        assert_eq!(one, "Bearer one");
        assert_eq!(file.other_than(&one).await, None);
        std::fs::write(&path, "two").unwrap();
        assert_eq!(file.header().await, "Bearer one", "kept for a minute without a 401");
        let two = file.other_than(&one).await.unwrap();
        assert_eq!(two, "Bearer two");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.other_than(&two).await, None);
        assert_eq!(file.header().await, "Bearer two");
        assert!(!format!("{file:?}").contains("two"));
    }
}
