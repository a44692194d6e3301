//! `mdb_drop`: empties a table, or deletes it.

use crate::api::{Env, Setup, failed, number};
use crate::options::Options;
use crate::{Result, show_version};

const USAGE: &str = "[-V] [-n] [-d] [-s subdb] dbpath";

/// Runs the tool.
pub fn drop(arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments, "dns:V", USAGE)?;
    if options.has('V') {
        return Err(show_version());
    }
    let path = options.path(USAGE)?;
    let flags = if options.has('n') { number::NOSUBDIR } else { 0 };
    let setup = Setup { flags, mode: 0o664, max_dbs: 2, ..Setup::default() };
    let env = Env::open(path, setup)?.map_err(|code| failed("mdb_env_open", code))?;
    let txn = env.begin(0)?;
    let table = txn
        .table(options.value('s').map(str::as_bytes), 0)?
        .map_err(|code| failed("mdb_open", code))?;
    txn.drop_table(table, options.has('d')).map_err(|code| failed("mdb_drop", code))?;
    txn.commit().map_err(|code| failed("mdb_txn_commit", code))
}
