//! Loads from inside the box of the real node, where pods are reached without a relay: `wrk` and `curl`, whose figures
//! are read from what they print.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::cluster::node::Node;

/// Connections of `wrk`.
pub const CONNECTIONS: u32 = 32;

/// What `wrk` measured.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// Requests a second.
    pub per_second: f64,
    /// Half of the answers came within so many milliseconds.
    pub p50_ms: f64,
    /// 99 of 100 answers did.
    pub p99_ms: f64,
}

/// The standard output of a program that must end well.
pub fn output(mut command: Command) -> Result<String> {
    let out = command.output().with_context(|| format!("running {}", command.get_program().display()))?;
    ensure!(out.status.success(), "a load failed ({}): {}", out.status, String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The same request again and again for some seconds; every answer must be good.
pub fn requests(node: &Node, url: &str, headers: &[String], seconds: u32) -> Result<Rate> {
    let mut command = node.command("wrk");
    command.args(["-t1", &format!("-c{CONNECTIONS}"), &format!("-d{seconds}s"), "--latency"]);
    for header in headers {
        command.args(["-H", header]);
    }
    read(&output(with(command, url))?)
}

/// The status of one request.
pub fn status(node: &Node, url: &str, headers: &[String]) -> Result<u16> {
    let mut command = node.command("curl");
    command.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}"]);
    for header in headers {
        command.args(["-H", header]);
    }
    Ok(output(with(command, url))?.trim().parse()?)
}

/// What serves and what asks, with their versions.
pub fn versions(node: &Node, url: &str) -> Result<(String, String)> {
    let mut command = node.command("curl");
    command.args(["-sS", "-I"]);
    let head = output(with(command, url))?;
    let server = head.lines().find_map(|line| line.strip_prefix("Server: ")).context("the comparator names itself")?;
    // It says its version and then that this was a mistake.
    let wrk = Command::new("wrk").arg("-v").output().context("`wrk` (Debian's package)")?;
    let wrk = String::from_utf8_lossy(&wrk.stdout).split(" [").next().unwrap_or_default().to_owned();
    Ok((server.to_owned(), wrk))
}

/// Sends a file by `PUT`; gives bytes a second, from the connection to the answer.
pub fn upload(node: &Node, url: &str, file: &Path, headers: &[String]) -> Result<f64> {
    let mut command = node.command("curl");
    command.args(["-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_upload} %{time_total}", "-T"]).arg(file);
    for header in headers {
        command.args(["-H", header]);
    }
    let told = output(with(command, url))?;
    let mut words = told.split_whitespace();
    let mut next = || words.next().context("curl tells three figures");
    let status = next()?.to_owned();
    ensure!(matches!(status.as_str(), "200" | "201" | "204"), "the upload was answered with {status}");
    let (bytes, seconds): (f64, f64) = (next()?.parse()?, next()?.parse()?);
    Ok(bytes / seconds)
}

fn with(mut command: Command, url: &str) -> Command {
    command.arg(url);
    command
}

/// Reads what `wrk` printed.
fn read(text: &str) -> Result<Rate> {
    let field = |name: &str| {
        let line = text.lines().map(str::trim).find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)).with_context(|| format!("wrk says no {name}: {text}"))
    };
    for trouble in ["Non-2xx", "Socket errors"] {
        ensure!(!text.contains(trouble), "not every answer was good: {text}");
    }
    Ok(Rate {
        per_second: field("Requests/sec:")?.parse()?,
        p50_ms: millis(field("50%")?)?,
        p99_ms: millis(field("99%")?)?,
    })
}

/// A time as `wrk` writes it, in milliseconds.
fn millis(text: &str) -> Result<f64> {
    for (unit, factor) in [("us", 0.001), ("ms", 1.0), ("s", 1000.0), ("m", 60_000.0)] {
        if let Some(number) = text.strip_suffix(unit).and_then(|number| number.parse::<f64>().ok()) {
            return Ok(number * factor);
        }
    }
    anyhow::bail!("{text} is no time")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Running 3s test @ http://10.64.0.9:4180/\n  1 threads and 32 connections\n  Thread Stats   Avg\
        \n  Latency Distribution\n     50%  512.00us\n     75%    1.20ms\n     90%    2.00ms\n     99%    1.02s\n\
        123 requests in 3.00s, 1MB read\nRequests/sec:  41234.56\nTransfer/sec:      5MB\n";

    #[test]
    fn what_wrk_prints_is_read() {
        let rate = read(TEXT).unwrap();
        assert!((rate.per_second - 41234.56).abs() < 0.001, "{rate:?}");
        assert!((rate.p50_ms - 0.512).abs() < 0.001 && (rate.p99_ms - 1020.0).abs() < 0.001, "{rate:?}");
        assert!(read(&format!("{TEXT}  Non-2xx or 3xx responses: 4\n")).is_err());
        assert!(read("").is_err());
    }
}
