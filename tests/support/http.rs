//! Answers to requests that are written byte by byte, so that nothing tidies them up on the way.

use serde_json::Value;

/// An answer, its header in bytes.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Reads a whole answer.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let mut lines = bytes[..end].split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let status = std::str::from_utf8(lines.next()?).ok()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, Vec<u8>)> = lines
            .filter_map(|line| {
                let colon = line.iter().position(|byte| *byte == b':')?;
                let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
                Some((name, line[colon + 1..].trim_ascii().to_vec()))
            })
            .collect();
        let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == b"chunked");
        let body = &bytes[end + 4..];
        Some(Self { status, headers, body: if chunked { joined(body) } else { body.to_vec() } })
    }

    /// All values of a header.
    pub fn all(&self, name: &str) -> Vec<String> {
        let values = self.headers.iter().filter(|(candidate, _)| candidate == name);
        values.map(|(_, value)| String::from_utf8(value.clone()).unwrap()).collect()
    }

    /// The only value of a header, or nothing.
    pub fn header(&self, name: &str) -> String {
        let values = self.all(name);
        assert!(values.len() < 2, "{name} came twice: {values:?}");
        values.into_iter().next().unwrap_or_default()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// What a stub says that it was asked.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text()))
    }
}

fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = chunks.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&chunks[..end]).unwrap(), 16).unwrap();
        body.extend(&chunks[end + 2..end + 2 + length]);
        chunks = &chunks[end + 4 + length..];
        if length == 0 {
            break;
        }
    }
    body
}
