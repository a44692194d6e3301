//! A key in a format whose bytes do not sort as the keys do.

#[derive(zubilo_typed::Key)]
#[zubilo(format = "postcard")]
struct Place {
    name: String,
}

#[derive(zubilo_typed::Key)]
enum Kind {
    Town = 3,
}

fn main() {}
