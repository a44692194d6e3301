//! Commits, flushes and waits for those who gather figures of the whole program: the facades `metrics`
//! and `tracing`, each behind the feature of its name. Without them nothing here costs anything.

use std::time::Instant;

use super::EnvInner;
use super::counters::CommitSums;
use super::log::Level;

/// Reports a commit.
#[inline]
pub(crate) fn commit(env: &EnvInner, txn: u64, sums: &CommitSums) {
    #[cfg(feature = "metrics")]
    {
        let store = env.data.path().display().to_string();
        let counts = [
            ("zubilo_commits_total", 1),
            ("zubilo_pages_copied_total", sums.copied),
            ("zubilo_pages_split_total", sums.split),
            ("zubilo_pages_merged_total", sums.merged),
            ("zubilo_pages_spilled_total", sums.spilled),
            ("zubilo_pages_written_total", sums.pages),
            ("zubilo_runs_written_total", sums.runs),
            ("zubilo_bytes_written_total", sums.bytes),
        ];
        for (name, count) in counts {
            metrics::counter!(name, "store" => store.clone()).increment(count);
        }
        let parts = ["prepare", "layout", "write", "log", "flush", "publish"];
        for (part, time) in parts.into_iter().zip(sums.times) {
            metrics::histogram!("zubilo_commit_seconds", "store" => store.clone(), "part" => part)
                .record(time as f64 / 1e9);
        }
    }
    #[cfg(feature = "tracing")]
    {
        let micros = sums.times.map(|time| time / 1000);
        let [prepare, layout, write, log, flush, publish] = micros;
        tracing::debug!(
            target: "zubilo",
            store = %env.data.path().display(), txn, pages = sums.pages, runs = sums.runs,
            bytes = sums.bytes, prepare_us = prepare, layout_us = layout, write_us = write,
            log_us = log, flush_us = flush, publish_us = publish, "commit"
        );
    }
    let _ = (env, txn, sums);
}

/// Reports a wait for the writer lock.
#[inline]
pub(crate) fn wait(env: &EnvInner, seconds: f64) {
    #[cfg(feature = "metrics")]
    {
        let store = env.data.path().display().to_string();
        metrics::histogram!("zubilo_writer_wait_seconds", "store" => store).record(seconds);
    }
    let _ = (env, seconds);
}

/// Reports a flush that began at `start`.
#[inline]
pub(crate) fn flush(env: &EnvInner, start: Instant) {
    #[cfg(feature = "metrics")]
    {
        let store = env.data.path().display().to_string();
        let seconds = start.elapsed().as_secs_f64();
        metrics::histogram!("zubilo_flush_seconds", "store" => store).record(seconds);
    }
    let _ = (env, start);
}

/// Hands on a message of the store.
#[inline]
pub(super) fn message(level: Level, message: std::fmt::Arguments<'_>) {
    #[cfg(feature = "tracing")]
    match level {
        Level::Error => tracing::error!(target: "zubilo", "{message}"),
        Level::Warn => tracing::warn!(target: "zubilo", "{message}"),
        Level::Info => tracing::info!(target: "zubilo", "{message}"),
        // Commits and checkpoints, which have an event and a span of their own.
        Level::Debug => {}
    }
    let _ = (level, message);
}

/// The span of a step that may take long; it ends when it is dropped.
#[cfg(feature = "tracing")]
pub(crate) fn span(env: &EnvInner, step: &'static str) -> tracing::span::EnteredSpan {
    tracing::debug_span!(target: "zubilo", "zubilo", step, store = %env.data.path().display())
        .entered()
}

/// No span.
#[cfg(not(feature = "tracing"))]
pub(crate) struct NoSpan;

/// The same without the feature.
#[cfg(not(feature = "tracing"))]
#[inline]
pub(crate) fn span(_env: &EnvInner, _step: &'static str) -> NoSpan {
    NoSpan
}
