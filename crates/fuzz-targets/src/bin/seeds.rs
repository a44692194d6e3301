//! Writes the inputs that the fuzzers start from: `seeds FOLDER` makes a folder in it for each target.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| std::io::Error::other("usage: seeds FOLDER"))?;
    for target in fuzz_targets::ALL {
        let folder = folder.join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (n, seed) in (target.seeds)().into_iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{n:03}")), seed)?;
        }
    }
    Ok(())
}
