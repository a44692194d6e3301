//! Stores without a lock file whose users take turns by means of their own: the commits of others
//! are found in the metas.

use crate::error::{Error, Result};
use crate::shared::Word;
use crate::sync::Ordering;

use super::checkpoint::MetaLock;
use super::meta::Meta;
use super::metas::{self, Found};
use super::{EnvInner, open, prepared};

/// Takes over the newest commit of the file. No transaction of this process may write or begin
/// meanwhile; a store with a lock file is left alone.
pub(crate) fn adopt(env: &EnvInner) -> Result<()> {
    env.check_alive()?;
    if env.options.lock_file || env.options.is_look() {
        return Ok(());
    }
    let _lock = MetaLock::take(&env.shared)?;
    let len = env.data.len().map_err(Error::io_at("find the length of", env.data.path()))?;
    env.shared.word(Word::FileLen).store(len, Ordering::SeqCst);
    let Found::Metas(metas) = metas::read(env.data.as_ref())? else { return Ok(()) };
    let newer = metas.first().is_some_and(|(_, meta)| meta.txn > env.shared.newest());
    if newer {
        open::trust_newest(env, &metas, len)?;
    }
    if let Some((_, base)) = newest_of(env, &metas) {
        prepared::adopt(env, base);
    }
    Ok(())
}

fn newest_of<'m>(env: &EnvInner, metas: &'m [(usize, Meta)]) -> Option<&'m (usize, Meta)> {
    metas.iter().find(|(_, meta)| meta.txn == env.shared.newest())
}

/// Whether others have committed to a store without a lock file since this process looked. A checkpoint
/// of what it knows would be written over their metas, and the end of the file be cut off.
pub(crate) fn is_behind(env: &EnvInner) -> Result<bool> {
    if env.options.lock_file {
        return Ok(false);
    }
    let _lock = MetaLock::take(&env.shared)?;
    let Found::Metas(metas) = metas::read(env.data.as_ref())? else { return Ok(false) };
    // A meta that was not trusted at open is known, and newer too.
    let known = |i, txn| txn <= env.shared.newest() || metas::slot_holds(&env.shared, i, txn);
    // What others have prepared goes on from a commit that they have put on disk before.
    let is_base =
        |base: &Meta| metas::marked(env.data.as_ref(), base).iter().any(|(_, m)| m.txn > base.txn);
    let is_prepared = newest_of(env, &metas).is_some_and(|(_, base)| is_base(base));
    Ok(is_prepared || metas.iter().any(|(i, meta)| !known(*i, meta.txn)))
}
