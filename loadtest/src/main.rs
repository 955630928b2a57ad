//! The load test: how the operator compares with a bare client on the same server.
//!
//! One process drives and observes ([`observer`]); the operator and the comparators that stand for it ([`echo`],
//! [`list`]) are processes of their own. Everything is judged from the API server ([`verify`], [`observer`], its
//! audit log in [`audit`]), never by what the operator says of itself. The rows of every run are kept ([`rows`]); the
//! report ([`report`]) is made of them alone.

mod audit;
mod bare;
mod containers;
mod echo;
mod fixed;
mod ground;
mod hub;
mod list;
mod machine;
mod measures;
mod observer;
mod operator;
mod population;
mod report;
mod rows;
mod server;
mod site_pod;
mod verify;
mod web;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde_json::json;

use machine::Machine;
use measures::upgrade::{EDIT, NEW};
use measures::{Plan, Session, calls, create, memory, pods, runtime, upgrade};
use rows::{Rows, Run, Weather};

/// Measures the operator against bare clients.
#[derive(Parser)]
#[command(name = "sites-loadtest", about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, write the raw rows and the report.
    Run(RunArgs),
    /// Make the report of the rows that are there.
    Report {
        /// Folder of the rows.
        #[arg(long, default_value_os_t = results())]
        rows: PathBuf,
        /// Only say it; write no file.
        #[arg(long)]
        print: bool,
    },
    /// Comparator: list what the operator lists. Started by `run`.
    #[command(hide = true)]
    List,
    /// Comparator: copy pod phases into Sites. Started by `run`.
    #[command(hide = true)]
    Echo,
    /// Comparator: fixed answers. Started by `run`.
    #[command(hide = true)]
    Fixed,
}

#[derive(Args)]
struct RunArgs {
    /// How much.
    #[arg(long, value_enum, default_value_t = Size::Smoke)]
    size: Size,
    /// Only these groups.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Group>,
    /// Interleaved rounds, instead of the size's own.
    #[arg(long)]
    rounds: Option<usize>,
    /// Sites of a run, instead of the size's own.
    #[arg(long)]
    sites: Option<usize>,
    /// Sites of the restart and memory runs, instead of the size's own.
    #[arg(long)]
    many: Option<usize>,
    /// Server on core 0, operator and observer on core 1.
    #[arg(long)]
    pinned: bool,
    /// Folder for the rows. Default: `loadtest/results`, or a temporary one for `quick`.
    #[arg(long)]
    rows: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Size {
    /// 100 Sites, one round: to see that it works. Its figures mean little.
    Quick,
    /// 1,000 Sites (5,000 for restart and memory), one round: several sessions are put together.
    Smoke,
    /// 10,000 Sites, three rounds.
    Full,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Group {
    /// M1, M1b on API server and etcd alone.
    Create,
    /// M1 with controllers and kwok.
    Whole,
    /// M2, M5b, M5c.
    Calls,
    /// M3, M3b, M5.
    Memory,
    /// M4, M4b.
    Pods,
    /// M9.
    Upgrade,
    /// M7, M7b. Only when it is named.
    Hub,
    /// R1 to R4: a site's pod on a real node. Only when it is named.
    Runtime,
}

fn results() -> PathBuf {
    xtask::paths::checkout().join("loadtest/results")
}

fn plan(args: &RunArgs) -> Plan {
    let second = Duration::from_secs;
    let (sites, many, rounds, rates) = match args.size {
        Size::Quick => (100, 200, 1, vec![(10, second(5)), (40, second(5))]),
        Size::Smoke => (1_000, 5_000, 1, vec![(20, second(12)), (100, second(12))]),
        Size::Full => (10_000, 10_000, 3, vec![(1, second(60)), (20, second(60)), (100, second(60))]),
    };
    Plan {
        sites: args.sites.unwrap_or(sites),
        many: args.many.unwrap_or(many),
        rounds: args.rounds.unwrap_or(rounds),
        rates,
        pinned: args.pinned,
    }
}

fn main() -> ExitCode {
    // Several crates bring rustls: the provider is chosen before one of them has to guess.
    let _already_chosen = rustls::crypto::ring::default_provider().install_default();
    match command(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sites-loadtest: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn command(command: Command) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match command {
        Command::Run(args) => runtime.block_on(run(args)),
        Command::Report { rows, print } => {
            let text = report::markdown(&rows::read_all(&rows)?);
            println!("{text}");
            if !print {
                std::fs::write(rows.with_file_name("RESULTS.md"), text)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::List => runtime.block_on(list::run()).map(|()| ExitCode::SUCCESS),
        Command::Echo => runtime.block_on(echo::run()).map(|()| ExitCode::SUCCESS),
        Command::Fixed => runtime.block_on(fixed::run()).map(|()| ExitCode::SUCCESS),
    }
}

async fn run(args: RunArgs) -> Result<ExitCode> {
    operator::program()?;
    let label = match args.size {
        Size::Quick => "quick",
        Size::Smoke => "smoke",
        Size::Full => "full",
    };
    let label = if args.only == [Group::Runtime] { "runtime" } else { label };
    let dir = match &args.rows {
        Some(dir) => dir.clone(),
        None if args.size == Size::Quick => std::env::temp_dir().join("sites-loadtest"),
        None => results(),
    };
    let rows = Rows::begin(&dir, label)?;
    let path = rows.path().to_owned();
    let mut session = Session { plan: plan(&args), rows, failed: Vec::new() };
    about(&mut session, label)?;
    let wanted = |group: Group| args.only.is_empty() || args.only.contains(&group);
    // Counts do not depend on the weather: they come first and fail early.
    if wanted(Group::Calls) {
        calls::count(&mut session).await?;
    }
    for round in 0..session.plan.rounds {
        if wanted(Group::Create) {
            create::round(&mut session, round).await?;
        }
        if wanted(Group::Whole) {
            create::whole_round(&mut session, round).await?;
        }
        if wanted(Group::Pods) {
            pods::round(&mut session, round).await?;
        }
        if wanted(Group::Upgrade) {
            upgrade::round(&mut session, round, &NEW).await?;
            upgrade::round(&mut session, round, &EDIT).await?;
        }
        if args.only.contains(&Group::Hub) {
            measures::hub::round(&mut session, round).await?;
        }
    }
    if wanted(Group::Memory) {
        memory::measure(&mut session, 0).await?;
    }
    if args.only.contains(&Group::Runtime) {
        runtime::measure(&mut session).await?;
    }
    let failed = session.failed;
    println!("\n{}", report::markdown(&rows::read_file(&path)?));
    println!("raw rows: {}", path.display());
    if dir == results() {
        // Also when a gate has failed: the report shows which.
        std::fs::write(dir.with_file_name("RESULTS.md"), report::markdown(&rows::read_all(&dir)?))?;
    }
    for gate in &failed {
        eprintln!("gate failed: {gate}");
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The first row of a session: what it runs on and how.
fn about(session: &mut Session, label: &str) -> Result<()> {
    let machine = Machine::here();
    let revision = std::process::Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .current_dir(xtask::paths::checkout())
        .output()
        .map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
        .unwrap_or_default();
    let figures = json!({
        "size": label,
        "processor": machine.processor,
        "cores": machine.cores,
        "memory_mib": machine.memory,
        "kernel": machine.kernel,
        "revision": revision,
        "optimized": !cfg!(debug_assertions),
        "pinned": session.plan.pinned,
        "rounds": session.plan.rounds,
        "many": session.plan.many,
    });
    let run = Run { metric: "about", variant: "session".to_owned(), round: 0, server: "", sites: session.plan.sites };
    session.rows.write(&run, Weather::now(), figures)
}
