//! Stores without a lock file whose users take turns by means of their own: the commits of others
//! are found in the metas.

use crate::error::Result;
use crate::shared::Word;
use crate::sync::Ordering;

use super::checkpoint::MetaLock;
use super::metas::{self, Found};
use super::{EnvInner, open};

/// Takes over the newest commit of the file. No transaction of this process may write or begin
/// meanwhile; a store with a lock file is left alone.
pub(crate) fn adopt(env: &EnvInner) -> Result<()> {
    env.check_alive()?;
    if env.options.lock_file {
        return Ok(());
    }
    let _lock = MetaLock::take(&env.shared)?;
    let len = env.data.len().map_err(crate::Error::io_at("find the length of", env.data.path()))?;
    env.shared.word(Word::FileLen).store(len, Ordering::SeqCst);
    let Found::Metas(metas) = metas::read(env.data.as_ref())? else { return Ok(()) };
    let newer = metas.first().is_some_and(|(_, meta)| meta.txn > env.shared.newest());
    if newer { open::believe(env, &metas, len) } else { Ok(()) }
}
