//! The one binary: each role is a sub-command.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use sites::operator::role::OperatorArgs;
use sites::{domain, operator, settings};

/// Websites as a service on Kubernetes.
#[derive(Parser)]
#[command(name = "sites", version, about)]
struct Cli {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Turn Sites into Kubernetes objects, and keep them true.
    Operator(OperatorArgs),
    /// Print the custom resource definition of a Site.
    Crd,
    /// Print what the operator may do: `ServiceAccount`, Role, `ClusterRole` and their bindings.
    Rbac {
        /// Namespace of the platform.
        #[arg(long, default_value = "sites")]
        namespace: String,
    },
    /// The platform's settings.
    #[command(subcommand)]
    Config(ConfigCommand),
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Say what is wrong with a settings file, or that nothing is.
    Check {
        /// The file.
        #[arg(long, env = "SITES_CONFIG", default_value = "/etc/sites/config.yaml")]
        config: PathBuf,
    },
    /// Print the reference of all settings, in Markdown.
    Reference,
}

fn main() -> ExitCode {
    match run(Cli::parse().role) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sites: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(role: Role) -> anyhow::Result<()> {
    match role {
        Role::Operator(args) => {
            let provider = rustls::crypto::ring::default_provider();
            anyhow::ensure!(provider.install_default().is_ok(), "a TLS provider was installed before");
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            runtime.context("the runtime cannot start")?.block_on(operator::role::run(args))
        }
        Role::Crd => {
            print!("{}", domain::crd::yaml());
            Ok(())
        }
        Role::Rbac { namespace } => {
            print!("{}", operator::rights::yaml(&namespace)?);
            Ok(())
        }
        Role::Config(ConfigCommand::Check { config }) => {
            settings::Settings::load(&config, std::env::vars())?;
            println!("{}: no problem found", config.display());
            Ok(())
        }
        Role::Config(ConfigCommand::Reference) => {
            print!("{}", settings::reference::markdown());
            Ok(())
        }
    }
}
