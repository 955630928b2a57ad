//! The one binary: each role is a sub-command.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use sites::hub::role::HubArgs;
use sites::operator::role::OperatorArgs;
use sites::telemetry::logging;
use sites::{domain, engine, hub, operator, runtime, settings};

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
    /// What runs in a site's pod.
    #[command(subcommand)]
    Runtime(runtime::role::Role),
    /// Answer people and programs: the API, the login, the pages.
    Hub(HubArgs),
    /// Print the custom resource definition of a Site.
    Crd,
    /// Print the OpenAPI document of the Hub.
    Openapi,
    /// Print what the operator and the Hub may do: `ServiceAccounts`, Roles, `ClusterRoles` and their bindings.
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
            logging::last_word(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(role: Role) -> anyhow::Result<()> {
    match role {
        Role::Runtime(role) => {
            // A site's pod has little memory: few threads, and a bound on those that wait for the volume.
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .max_blocking_threads(32)
                .enable_all()
                .build();
            runtime.context("the runtime cannot start")?.block_on(runtime::role::run(role))
        }
        Role::Operator(args) => block_on(operator::role::run(args)),
        Role::Hub(args) => block_on(hub::role::run(args)),
        Role::Crd => {
            print!("{}", domain::crd::yaml());
            Ok(())
        }
        Role::Openapi => {
            println!("{}", serde_json::to_string_pretty(&hub::openapi())?);
            Ok(())
        }
        Role::Rbac { namespace } => {
            let mut manifests = operator::rights::manifests(&namespace);
            manifests.extend(hub::rights::manifests(&namespace));
            print!("{}", engine::rights::yaml(&manifests)?);
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

/// Runs a role that speaks TLS.
fn block_on(role: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let provider = rustls::crypto::ring::default_provider();
    anyhow::ensure!(provider.install_default().is_ok(), "a TLS provider was installed before");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("the runtime cannot start")?.block_on(role)
}
