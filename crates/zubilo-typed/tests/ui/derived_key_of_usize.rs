//! A key with a field whose width is the machine's.

#[derive(zubilo_typed::Key)]
struct Place {
    number: usize,
    name: String,
}

fn main() {}
