//! The facade `tracing`: what a program's subscriber hears of a store.
//!
//! One test, in a process of its own: `tracing` notes for the whole process, at the first use of each
//! span and event, whether anybody listens. A thread without a subscriber that comes first at the
//! same moment can leave the note "nobody". So here the subscriber is there before the store is.

#![cfg(feature = "tracing")]

use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use zubilo::Options;

/// What was heard, a line each.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "zubilo"
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line("span".into());
        span.record(&mut line);
        self.0.lock().unwrap().push(line.0);
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_subscriber_hears_of_commits_and_their_parts() {
    let heard = Heard::default();
    tracing::subscriber::with_default(heard.clone(), || {
        let dir = tempfile::tempdir().unwrap();
        let env = Options::new().open(dir.path().join("store")).unwrap();
        env.update(|txn| txn.table_or_create("t")?.put("key", "value")).unwrap();
    });
    let lines = heard.0.lock().unwrap();
    assert!(lines.iter().any(|line| line.starts_with("span step=\"commit\"")), "{lines:?}");
    let event = lines.iter().find(|line| line.contains("message=commit")).expect("an event");
    for field in ["txn=", "pages=", "runs=", "layout_us=", "flush_us="] {
        assert!(event.contains(field), "{event}");
    }
}
