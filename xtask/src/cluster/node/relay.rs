//! The only way from this machine into the box: a listener on loopback whose connections go on inside.
//!
//! One thread stands in the box's network and opens connections there; a socket stays in the network it was made in,
//! so everybody else only copies bytes.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::cluster::ground::namespace;

/// How long a connection inside may take to open: the machine is the same, only its load counts.
const CONNECT: Duration = Duration::from_secs(10);

type Order = (SocketAddr, Sender<io::Result<TcpStream>>);

/// Opens connections inside the box. Clones share the thread; the last one ends it.
#[derive(Debug, Clone)]
pub struct Dialer(Sender<Order>);

impl Dialer {
    /// For the box of the `unshare` with this process id.
    pub(super) fn new(owner: u32) -> Result<Self> {
        let network = File::open(namespace(owner, "net")).context("opening the network of the box")?;
        let (orders, inbox) = mpsc::channel::<Order>();
        let (entered, result) = mpsc::channel();
        thread::Builder::new().name("box-dialer".into()).spawn(move || {
            let moved = move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network));
            let failed = moved.is_err();
            let _ = entered.send(moved);
            if failed {
                return;
            }
            for (target, answer) in inbox {
                let _ = answer.send(TcpStream::connect_timeout(&target, CONNECT));
            }
        })?;
        result.recv().context("the thread in the box is gone")?.context("entering the network of the box")?;
        Ok(Self(orders))
    }

    /// Opens a connection to an address inside.
    pub fn connect(&self, target: SocketAddr) -> io::Result<TcpStream> {
        let gone = || io::Error::other("the box is gone");
        let (answer, result) = mpsc::channel();
        self.0.send((target, answer)).map_err(|_| gone())?;
        result.recv().map_err(|_| gone())?
    }
}

/// A listener on this machine for an address inside the box. Dropping it ends the listener; open connections go on.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
}

impl Relay {
    /// Passes the connections of `listener` on to `target`.
    pub(super) fn start(listener: TcpListener, dialer: Dialer, target: SocketAddr) -> Result<Self> {
        let address = listener.local_addr()?;
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        thread::Builder::new().name("box-relay".into()).spawn(move || {
            for outside in listener.incoming() {
                if seen.load(Ordering::Acquire) {
                    return;
                }
                match outside {
                    Ok(outside) => pass(outside, dialer.clone(), target),
                    // Too many open files, or the peer has gone again: neither ends the listener.
                    Err(_) => thread::sleep(Duration::from_millis(10)),
                }
            }
        })?;
        Ok(Self { address, ended })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // Wakes the listener.
        let _ = TcpStream::connect_timeout(&self.address, CONNECT);
    }
}

/// Copies both ways on two threads of their own. A failure is the connection's end, which both sides see.
fn pass(outside: TcpStream, dialer: Dialer, target: SocketAddr) {
    let work = move || {
        let inside = dialer.connect(target)?;
        for stream in [&outside, &inside] {
            stream.set_nodelay(true)?;
        }
        let (from, to) = (outside.try_clone()?, inside.try_clone()?);
        let up = thread::Builder::new().spawn(move || copy(from, to))?;
        copy(inside, outside);
        let _ = up.join();
        io::Result::Ok(())
    };
    let _ = thread::Builder::new().name("box-connection".into()).spawn(work);
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    match io::copy(&mut from, &mut to) {
        Ok(_) => {
            let _ = to.shutdown(Shutdown::Write);
        }
        Err(error) if error.kind() == ErrorKind::NotConnected => {}
        Err(_) => {
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        }
    }
}
