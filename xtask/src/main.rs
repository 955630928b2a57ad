//! `cargo xtask`: the project's own commands. One module per command; the library holds what the tests need too.

#![allow(clippy::disallowed_methods, reason = "there is no runtime here whose thread a sleep could block")]

mod commands {
    pub mod background;
    pub mod cluster;
    pub mod demo;
    pub mod generated;
    pub mod kubectl;
    pub mod lint;
    pub mod platform;
    pub mod setup;
    pub mod steps;
}

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "The project's own commands", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The local Kubernetes cluster.
    #[command(subcommand)]
    Cluster(commands::cluster::Action),
    /// Bring up a cluster, an operator and a sample Site (a cluster named by KUBECONFIG is used instead of a local one).
    Up(commands::cluster::Which),
    /// End the operator and the local cluster.
    Down,
    /// Install the programs that tests need, if they are missing.
    Setup,
    /// Check format, lints, documentation, generated files and dependencies.
    Lint,
    /// Write the files that the product's binary generates.
    Generated {
        /// Only say whether the committed ones are up to date.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Cluster(action) => commands::cluster::run(&action),
        Command::Up(which) => commands::demo::up(which),
        Command::Down => commands::demo::down(),
        Command::Setup => commands::setup::run(),
        Command::Lint => commands::lint::run(),
        Command::Generated { check } => commands::generated::run(check),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
