//! `zubilo demo`: a real data set, loaded, indexed, queried, copied and killed.

use clap::Args;

/// Options of the demonstration.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Keep the store in this directory instead of deleting it.
    #[arg(long)]
    keep: Option<std::path::PathBuf>,
}

/// Runs it.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    anyhow::bail!("not there yet (keep: {:?})", args.keep)
}
