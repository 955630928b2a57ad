//! `cargo xtask`: the project's own commands. One module per command; the library holds what the tests need too.

#![allow(clippy::disallowed_methods, reason = "there is no runtime here whose thread a sleep could block")]

mod commands {
    pub mod background;
    pub mod cluster;
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
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Cluster(action) => commands::cluster::run(&action),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
