//! `mdb_drop`: empties a table, or deletes it.

use support::lmdb::{self, Setup};

use crate::api::{failed, open};
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
    let flags = if options.has('n') { lmdb::MDB_NOSUBDIR } else { 0 };
    let setup = Setup { flags, mode: 0o664, max_dbs: 2, ..Setup::default() };
    let env = open(path, setup)?.map_err(|code| failed("mdb_env_open", code))?;
    let mut txn = env.begin(0)?;
    let table = txn
        .table(options.value('s').map(str::as_bytes), 0)
        .map_err(|code| failed("mdb_open", code))?;
    txn.drop_table(table, options.has('d')).map_err(|code| failed("mdb_drop", code))?;
    txn.commit().map_err(|code| failed("mdb_txn_commit", code))
}
