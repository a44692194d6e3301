//! A snapshot together with its meta, for those who work on a whole store: the meta says where the
//! free-space log of the snapshot is, and the snapshot keeps both from being reused.

use std::sync::Arc;

use crate::env::checkpoint::MetaLock;
use crate::env::meta::Meta;
use crate::env::{EnvInner, metas};
use crate::error::{Error, Result};
use crate::num::PageNo;

use super::ReadTxn;

/// A snapshot of the newest commit together with its meta.
pub(crate) fn pinned(env: &Arc<EnvInner>) -> Result<(ReadTxn, Meta)> {
    let _lock = MetaLock::take(&env.shared)?;
    let txn = ReadTxn::begin(env)?;
    let meta = metas::load(env.data.as_ref(), &env.shared, env.shift)?;
    if meta.txn != txn.id().0 || meta.main != txn.root().main {
        return Err(Error::Corrupted {
            page: PageNo(0),
            reason: "the newest meta is not the one published",
        });
    }
    Ok((txn, meta))
}
