//! Contenders measured in interleaved rounds: A B, B A, A B, ... so that what disturbs the machine
//! disturbs all of them.

use crate::stats::{Summary, summary};
use crate::versus::Config;

/// One side of a figure.
pub(crate) struct Contender<'c> {
    pub(crate) label: String,
    /// Of the engine under test, not a peer.
    pub(crate) ours: bool,
    /// Measures once.
    pub(crate) run: Box<dyn FnMut() -> f64 + 'c>,
}

impl<'c> Contender<'c> {
    pub(crate) fn ours(label: &str, run: impl FnMut() -> f64 + 'c) -> Contender<'c> {
        Contender { label: label.into(), ours: true, run: Box::new(run) }
    }

    pub(crate) fn peer(label: &str, run: impl FnMut() -> f64 + 'c) -> Contender<'c> {
        Contender { label: label.into(), ours: false, run: Box::new(run) }
    }
}

/// What the target says about the ratio of our cost to the best peer's, or about our own value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// The peer's cost is at least this many times ours.
    Faster(f64),
    /// Our cost is at most this share of the peer's.
    AtMostShare(f64),
    /// Our value itself is at most this.
    AtMost(f64),
    /// Shown for information.
    None,
}

/// The measured figure.
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) sides: Vec<(String, bool, Summary)>,
    pub(crate) target: Target,
    /// Best peer's cost over our best cost; median of the rounds' ratios.
    pub(crate) ratio: Option<Summary>,
}

impl Figure {
    /// Our best side's value.
    pub(crate) fn our_value(&self) -> f64 {
        let ours = self.sides.iter().filter(|(_, ours, _)| *ours).map(|s| s.2.median);
        ours.fold(f64::INFINITY, f64::min)
    }

    /// Whether the target is reached; none without a target.
    pub(crate) fn reached(&self) -> Option<bool> {
        let ratio = self.ratio.map(|r| r.median);
        match self.target {
            Target::Faster(least) => ratio.map(|r| r >= least),
            Target::AtMostShare(share) => ratio.map(|r| 1.0 / r <= share),
            Target::AtMost(most) => Some(self.our_value() <= most),
            Target::None => None,
        }
    }
}

/// Runs the configured rounds, after one that does not count when `warm`.
pub(crate) fn duel(
    name: &str,
    unit: &'static str,
    target: Target,
    config: &Config,
    warm: bool,
    mut contenders: Vec<Contender<'_>>,
) -> Figure {
    let rounds = config.rounds;
    contenders.retain(|c| c.label.contains(&config.side));
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
    if warm {
        for contender in &mut contenders {
            let _ = (contender.run)();
        }
    }
    for round in 0..rounds {
        let count = contenders.len();
        for i in 0..count {
            let i = if round % 2 == 0 { i } else { count - 1 - i };
            samples[i].push((contenders[i].run)());
        }
    }
    from_samples(name, unit, target, contenders.iter().map(|c| (c.label.clone(), c.ours)), &samples)
}

/// A figure from samples that were taken otherwise, one list for each side.
pub(crate) fn from_samples(
    name: &str,
    unit: &'static str,
    target: Target,
    labels: impl Iterator<Item = (String, bool)>,
    samples: &[Vec<f64>],
) -> Figure {
    let sides: Vec<_> =
        labels.zip(samples).map(|((label, ours), s)| (label, ours, summary(s))).collect();
    let best = |ours: bool| {
        let own = sides.iter().enumerate().filter(|(_, s)| s.1 == ours);
        own.min_by(|a, b| a.1.2.median.total_cmp(&b.1.2.median)).map(|(i, _)| i)
    };
    let ratio = match (best(true), best(false)) {
        (Some(ours), Some(peer)) => {
            let ratios: Vec<f64> =
                samples[ours].iter().zip(&samples[peer]).map(|(o, p)| p / o).collect();
            Some(summary(&ratios))
        }
        _ => None,
    };
    Figure { name: name.into(), unit, sides, target, ratio }
}
