//! A value that does not say how it is stored.

#[derive(zubilo_typed::Value)]
struct City {
    people: u64,
}

fn main() {}
