//! Answers under way: the server's body as it is, or what a rule makes of it.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::task::AtomicWaker;
use hyper::body::{Body, Bytes, Frame, Incoming};
use tokio::time::Sleep;

use super::rules::{Asked, Match, Upset};
use super::wire::{Fault, Socket, error_event};

/// The answers that are under way.
#[derive(Default)]
pub(super) struct Streams(Mutex<Vec<(Asked, Weak<Stream>)>>);

impl Streams {
    pub(super) fn open(&self, asked: Asked) -> Arc<Stream> {
        let stream = Arc::new(Stream::default());
        let mut all = self.0.lock().unwrap();
        all.retain(|(_, stream)| stream.strong_count() > 0);
        all.push((asked, Arc::downgrade(&stream)));
        stream
    }

    pub(super) fn upset(&self, matching: &Match, upset: Upset) -> usize {
        let all = self.0.lock().unwrap();
        let covered = all.iter().filter(|(asked, _)| matching.covers(asked)).filter_map(|(_, stream)| stream.upgrade());
        covered.map(|stream| stream.upset(upset)).count()
    }
}

/// One answer, as the outside can reach it.
#[derive(Default)]
pub(super) struct Stream {
    /// 0, or an [`Upset`] as it is numbered in [`Stream::upset`].
    fate: AtomicU8,
    waker: AtomicWaker,
}

impl Stream {
    fn upset(&self, upset: Upset) {
        let fate = match upset {
            Upset::Silence => 1,
            Upset::Break => 2,
            Upset::Expire => 3,
        };
        self.fate.store(fate, Ordering::SeqCst);
        self.waker.wake();
    }

    fn fate(&self) -> Option<Upset> {
        match self.fate.load(Ordering::SeqCst) {
            1 => Some(Upset::Silence),
            2 => Some(Upset::Break),
            3 => Some(Upset::Expire),
            _ => None,
        }
    }
}

/// What a rule does to a body.
pub(super) enum Twist {
    None,
    Silence,
    CutAfter(Pin<Box<Sleep>>),
    /// After so many bytes, which get a moment to reach the client: a reset would overtake them.
    ResetAt(usize, Arc<Socket>, Pin<Box<Sleep>>),
    /// The pause before each part, and the one that runs.
    Slow(Duration, Pin<Box<Sleep>>),
}

/// A body on its way through.
pub(super) struct Flow {
    pub(super) body: Incoming,
    pub(super) stream: Arc<Stream>,
    pub(super) twist: Twist,
    pub(super) over: bool,
}

impl Body for Flow {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let this = &mut *self;
        if this.over {
            return Poll::Ready(None);
        }
        this.stream.waker.register(context.waker());
        match this.stream.fate() {
            Some(Upset::Silence) => return Poll::Pending,
            Some(Upset::Break) => return Poll::Ready(Some(Err(Fault::other("broken off")))),
            Some(Upset::Expire) => {
                this.over = true;
                return Poll::Ready(Some(Ok(Frame::data(error_event(410)))));
            }
            None => {}
        }
        match &mut this.twist {
            Twist::None => Pin::new(&mut this.body).poll_frame(context).map_err(Fault::other),
            Twist::Silence => Poll::Pending,
            Twist::CutAfter(end) => {
                if end.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Some(Err(Fault::other("cut by rule"))));
                }
                Pin::new(&mut this.body).poll_frame(context).map_err(Fault::other)
            }
            Twist::Slow(pause, sleep) => {
                ready!(sleep.as_mut().poll(context));
                let frame = ready!(Pin::new(&mut this.body).poll_frame(context).map_err(Fault::other));
                sleep.as_mut().reset(tokio::time::Instant::now() + *pause);
                Poll::Ready(frame)
            }
            Twist::ResetAt(left, socket, moment) => {
                if *left == 0 {
                    ready!(moment.as_mut().poll(context));
                    socket.reset();
                    return Poll::Ready(Some(Err(Fault::other("reset by rule"))));
                }
                let frame = ready!(Pin::new(&mut this.body).poll_frame(context).map_err(Fault::other));
                let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
                let Ok(mut data) = frame.into_data() else { return Poll::Ready(None) };
                data.truncate(*left);
                *left -= data.len();
                moment.as_mut().reset(tokio::time::Instant::now() + Duration::from_millis(50));
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
        }
    }
}
