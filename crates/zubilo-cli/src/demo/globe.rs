//! Distances on the globe and the cells that the index of positions is made of.
//!
//! A cell's number interleaves the bits of latitude and longitude, so the cells of one square of
//! any size are one range of keys.

use super::data::PER_DEGREE;

const RADIUS_KM: f64 = 6371.0;

/// Cells of the finest level are 1 / 2^32 of the globe in each direction.
const LEVELS: u32 = 32;

/// From -limit..=limit to all 32-bit numbers.
fn spread(value: i32, limit: i64) -> u32 {
    let from_zero = (i64::from(value) + limit).clamp(0, 2 * limit);
    u32::try_from(from_zero * i64::from(u32::MAX) / (2 * limit)).unwrap_or(u32::MAX)
}

fn row(lat: i32) -> u32 {
    spread(lat, 9_000_000)
}

fn column(lon: i32) -> u32 {
    spread(lon, 18_000_000)
}

/// Spaces the bits of a number out to every second place.
fn space_out(bits: u32) -> u64 {
    let mut out = u64::from(bits);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        out = (out | out << shift) & mask;
    }
    out
}

fn interleave(row: u32, column: u32) -> u64 {
    space_out(row) << 1 | space_out(column)
}

/// The finest cell of a position.
pub(crate) fn cell(lat: i32, lon: i32) -> u64 {
    interleave(row(lat), column(lon))
}

/// The cells around a position on one level: nine, fewer at the poles.
pub(crate) struct Around {
    /// First and last finest cell of each.
    pub(crate) cells: Vec<(u64, u64)>,
    /// What is nearer than this lies in one of them.
    pub(crate) sure_km: f64,
}

/// The cells of 1 / 2^level of the globe around a position. `level` is 3 at least, where cells are
/// no wider than an eighth of the globe.
pub(crate) fn around(lat: i32, lon: i32, level: u32) -> Around {
    let shift = LEVELS - level;
    let (row, column) = (row(lat) >> shift, column(lon) >> shift);
    let last = u32::MAX >> shift;
    let mut cells = Vec::with_capacity(9);
    for row in row.saturating_sub(1)..=row.saturating_add(1).min(last) {
        for step in [last, 0, 1] {
            // Longitudes go round.
            let column = column.wrapping_add(step) & last;
            let first = interleave(row << shift, column << shift);
            cells.push((first, first | (u64::MAX >> (2 * level))));
        }
    }
    Around { cells, sure_km: sure_km(lat, level) }
}

/// The cells around reach at least one cell's height to the north and south, and one cell's width
/// to the east and west: the nearest point of that meridian is at the foot of a perpendicular.
fn sure_km(lat: i32, level: u32) -> f64 {
    let cells = f64::from(1u32 << level);
    let height = (180.0 / cells).to_radians();
    let width = (360.0 / cells).to_radians();
    let aside = (degrees(lat).to_radians().cos() * width.sin()).clamp(-1.0, 1.0).asin();
    // A hair less, for the rounding of positions to cells.
    height.min(aside) * RADIUS_KM * 0.999
}

fn degrees(value: i32) -> f64 {
    f64::from(value) / PER_DEGREE
}

/// The way over the ground between two positions.
pub(crate) fn distance_km(a: (i32, i32), b: (i32, i32)) -> f64 {
    let radians = |value: i32| degrees(value).to_radians();
    let half_sine = |from: i32, to: i32| ((radians(to) - radians(from)) / 2.0).sin().powi(2);
    let h = half_sine(a.0, b.0) + radians(a.0).cos() * radians(b.0).cos() * half_sine(a.1, b.1);
    2.0 * RADIUS_KM * h.clamp(0.0, 1.0).sqrt().asin()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_atlas() {
        let (paris, new_york) = ((4_885_341, 234_880), (4_071_427, -7_400_597));
        assert!((distance_km(paris, new_york) - 5837.0).abs() < 10.0);
        assert_eq!(distance_km(paris, paris), 0.0);
        let poles = distance_km((9_000_000, 0), (-9_000_000, 77));
        assert!((poles - 20_015.0).abs() < 1.0, "{poles}");
    }

    /// What is nearer than `sure_km` is in one of the cells, also at the date line and the poles.
    #[test]
    fn the_cells_around_hold_all_that_is_near() {
        let seed = 4711;
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut inside = 0;
        for _ in 0..200_000 {
            let lat = rng.i32(-9_000_000..=9_000_000);
            let lon = rng.i32(-18_000_000..=18_000_000);
            let level = rng.u32(3..16);
            let reach = 40_000_000 >> level;
            let near_lat = (lat + rng.i32(-reach..=reach)).clamp(-9_000_000, 9_000_000);
            let lon_far = lon + rng.i32(-reach..=reach);
            let near_lon = (lon_far + 54_000_000).rem_euclid(36_000_000) - 18_000_000;
            let around = around(lat, lon, level);
            let here = cell(near_lat, near_lon);
            if distance_km((lat, lon), (near_lat, near_lon)) < around.sure_km {
                inside += 1;
                let found =
                    around.cells.iter().any(|(first, last)| (*first..=*last).contains(&here));
                assert!(found, "{lat} {lon} to {near_lat} {near_lon} on level {level}");
            }
        }
        assert!(inside > 10_000, "{inside}");
    }
}
