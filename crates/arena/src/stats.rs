//! Medians and spread of samples.

/// A summary of samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    /// First and third quartile.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The quantile `q` of sorted samples, between neighbours by weight.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len().max(1) - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    match (sorted.get(low), sorted.get(high)) {
        (Some(a), Some(b)) => a + (b - a) * (at - low as f64),
        _ => f64::NAN,
    }
}

/// The quantiles `wanted` of samples in any order.
pub(crate) fn quantiles<const N: usize>(samples: &[f64], wanted: [f64; N]) -> [f64; N] {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    wanted.map(|q| quantile(&sorted, q))
}

/// Median and quartiles.
pub(crate) fn summary(samples: &[f64]) -> Summary {
    let [low, median, high] = quantiles(samples, [0.25, 0.5, 0.75]);
    Summary { median, low, high }
}
