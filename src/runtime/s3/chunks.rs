//! Bodies that come in chunks with a frame of S3's own around each (`aws-chunked`).
//!
//! s3s reads them, and holds one chunk in memory. Some programs send a file as one chunk, so that frames which nobody
//! has signed are cut here into small ones; of signed ones, which cannot be cut, large ones are refused.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame};

/// Largest chunk with a signature. Programs send 64 KiB to 1 MiB.
const MAX_SIGNED: u64 = 16 << 20;
/// Longest line before a chunk: its size and signature.
const MAX_LINE: usize = 1024;

/// What comes next.
#[derive(Debug)]
enum Step {
    /// The line before a chunk, as far as it is there.
    Line(Vec<u8>),
    /// So many bytes of a chunk.
    Data(u64),
    /// So many bytes of the line end behind it.
    End(u8),
    /// The end of all, or what s3s will refuse.
    Rest,
}

/// A chunk that is too large, or a line that is none.
#[derive(Debug, PartialEq, Eq)]
struct Refused;

/// Reads frames and writes them anew.
#[derive(Debug)]
struct Frames {
    step: Step,
    signed: bool,
}

impl Frames {
    const fn new(signed: bool) -> Self {
        Self { step: Step::Line(Vec::new()), signed }
    }

    fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Refused> {
        while !bytes.is_empty() {
            match &mut self.step {
                Step::Line(line) => {
                    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
                    let (now, later) = bytes.split_at(end);
                    line.extend_from_slice(now);
                    bytes = later;
                    if line.len() > MAX_LINE {
                        return Err(Refused);
                    }
                    if line.ends_with(b"\n") {
                        let line = std::mem::take(line);
                        self.step = self.line(&line, out)?;
                    }
                }
                Step::Data(left) => {
                    let now = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    let (now, later) = bytes.split_at(now);
                    bytes = later;
                    *left -= now.len() as u64;
                    if *left == 0 {
                        self.step = Step::End(2);
                    }
                    if self.signed {
                        out.extend_from_slice(now);
                    } else {
                        out.extend_from_slice(format!("{:x}\r\n", now.len()).as_bytes());
                        out.extend_from_slice(now);
                        out.extend_from_slice(b"\r\n");
                    }
                }
                Step::End(left) => {
                    if bytes[0] != [b'\n', b'\r'][usize::from(*left) - 1] {
                        return Err(Refused);
                    }
                    if self.signed {
                        out.push(bytes[0]);
                    }
                    bytes = &bytes[1..];
                    *left -= 1;
                    if *left == 0 {
                        self.step = Step::Line(Vec::new());
                    }
                }
                Step::Rest => {
                    out.extend_from_slice(bytes);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn line(&self, line: &[u8], out: &mut Vec<u8>) -> Result<Step, Refused> {
        let text = std::str::from_utf8(line).map_err(|_| Refused)?.trim_end_matches("\r\n");
        let digits = if self.signed { text.split(';').next().unwrap_or_default() } else { text };
        let size = u64::from_str_radix(digits, 16).map_err(|_| Refused)?;
        if self.signed && size > MAX_SIGNED {
            return Err(Refused);
        }
        if self.signed || size == 0 {
            out.extend_from_slice(line);
        }
        Ok(if size == 0 { Step::Rest } else { Step::Data(size) })
    }
}

/// A body in chunks that are small.
pub(super) struct Chunks<B> {
    body: B,
    frames: Frames,
}

impl<B> Chunks<B> {
    /// `signed` says whether each chunk is.
    pub(super) const fn new(body: B, signed: bool) -> Self {
        Self { body, frames: Frames::new(signed) }
    }
}

impl<B: Body<Data = Bytes, Error = axum::Error> + Unpin> Body for Chunks<B> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)).transpose()? else {
                return Poll::Ready(None);
            };
            let Ok(data) = frame.into_data() else { continue };
            let mut out = Vec::with_capacity(data.len() + MAX_LINE);
            if self.frames.feed(&data, &mut out).is_err() {
                return Poll::Ready(Some(Err(axum::Error::new("the chunks of the body are malformed or too large"))));
            }
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(Bytes::from(out)))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However the bytes arrive.
    fn fed(signed: bool, body: &[u8], at_a_time: usize) -> Result<Vec<u8>, Refused> {
        let (mut frames, mut out) = (Frames::new(signed), Vec::new());
        for piece in body.chunks(at_a_time) {
            frames.feed(piece, &mut out)?;
        }
        Ok(out)
    }

    /// What frames hold, and what follows them.
    fn content(mut frames: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let mut content = Vec::new();
        loop {
            let end = frames.windows(2).position(|two| two == b"\r\n").unwrap();
            let size = usize::from_str_radix(std::str::from_utf8(&frames[..end]).unwrap(), 16).unwrap();
            frames = &frames[end + 2..];
            if size == 0 {
                return (content, frames.to_vec());
            }
            content.extend_from_slice(&frames[..size]);
            assert_eq!(&frames[size..size + 2], b"\r\n");
            frames = &frames[size + 2..];
        }
    }

    #[test]
    fn unsigned_chunks_are_cut_where_the_bytes_arrive() {
        let trailer = "x-amz-checksum-crc32:muDarw==\r\n\r\n";
        let body = format!("a\r\n0123\r\n6789\r\n3\r\nabc\r\n0\r\n{trailer}");
        for at_a_time in 1..=body.len() {
            let out = fed(false, body.as_bytes(), at_a_time).unwrap();
            let (bytes, rest) = content(&out);
            assert_eq!((bytes.as_slice(), rest.as_slice()), (&b"0123\r\n6789abc"[..], trailer.as_bytes()));
        }
    }

    #[test]
    fn signed_chunks_pass_as_they_are() {
        let line = format!("5;chunk-signature={}\r\n", "0".repeat(64));
        let body = format!("{line}hello\r\n{}\r\n", line.replace('5', "0"));
        for at_a_time in 1..=body.len() {
            assert_eq!(fed(true, body.as_bytes(), at_a_time).unwrap(), body.as_bytes());
        }
        assert_eq!(fed(true, b"1000001;chunk-signature=0\r\n", 7), Err(Refused));
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for body in ["x\r\n", "-1\r\n", "5\r\nhelloX\n", "11111111111111111\r\n", &"1".repeat(2000), "5;a=b\r\n"] {
            assert_eq!(fed(false, body.as_bytes(), 3), Err(Refused), "{body}");
        }
    }
}
