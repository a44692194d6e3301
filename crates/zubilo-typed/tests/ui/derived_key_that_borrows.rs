//! A key that borrows its text.

#[derive(zubilo_typed::Key)]
struct Place<'a> {
    name: &'a str,
}

#[derive(zubilo_typed::Key)]
struct Country {
    name: &'static str,
}

fn main() {}
