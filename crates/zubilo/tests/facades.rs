//! The facades `metrics` and `tracing`: what a program's recorder and subscriber hear of a store.

#![cfg(any(feature = "metrics", feature = "tracing"))]

use zubilo::{Env, Options};

fn store() -> (tempfile::TempDir, Env) {
    let dir = tempfile::tempdir().unwrap();
    let env = Options::new().open(dir.path().join("store")).unwrap();
    (dir, env)
}

fn commit(env: &Env) {
    env.update(|txn| txn.table_or_create("t")?.put("key", "value")).unwrap();
}

#[cfg(feature = "metrics")]
mod with_metrics {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};

    use metrics::{
        Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
        SharedString, Unit,
    };

    /// Sums of counters and numbers of records, by name.
    #[derive(Clone, Default)]
    struct Sums(Arc<Mutex<HashMap<String, u64>>>);

    struct One(Sums, String);

    impl One {
        fn add(&self, n: u64) {
            *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += n;
        }
    }

    impl CounterFn for One {
        fn increment(&self, n: u64) {
            self.add(n);
        }
        fn absolute(&self, _: u64) {}
    }

    impl HistogramFn for One {
        fn record(&self, value: f64) {
            assert!(value >= 0.0);
            self.add(1);
        }
    }

    impl Recorder for Sums {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            assert!(key.labels().any(|label| label.key() == "store"));
            Counter::from_arc(Arc::new(One(self.clone(), key.name().into())))
        }
        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }
        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(Arc::new(One(self.clone(), key.name().into())))
        }
    }

    #[test]
    fn a_recorder_hears_of_commits_and_flushes() {
        let (_dir, env) = super::store();
        let sums = Sums::default();
        metrics::with_local_recorder(&sums, || {
            super::commit(&env);
            super::commit(&env);
        });
        let sums = sums.0.lock().unwrap();
        assert_eq!(sums["zubilo_commits_total"], 2);
        assert_eq!(sums["zubilo_commit_seconds"], 12);
        assert!(sums["zubilo_flush_seconds"] >= 2, "{sums:?}");
        assert!(
            sums["zubilo_bytes_written_total"] > 8192 && sums["zubilo_pages_written_total"] >= 2
        );
    }
}

#[cfg(feature = "tracing")]
mod with_tracing {
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

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
        let (_dir, env) = super::store();
        let heard = Heard::default();
        tracing::subscriber::with_default(heard.clone(), || super::commit(&env));
        let lines = heard.0.lock().unwrap();
        assert!(lines.iter().any(|line| line.starts_with("span step=\"commit\"")), "{lines:?}");
        let event = lines.iter().find(|line| line.contains("message=commit")).expect("an event");
        for field in ["txn=", "pages=", "runs=", "layout_us=", "flush_us="] {
            assert!(event.contains(field), "{event}");
        }
    }
}
