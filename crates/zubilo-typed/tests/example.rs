//! Runs the example, which asserts what it shows.

#[path = "../examples/places.rs"]
mod places;

#[test]
fn the_example_keeps_its_promises() {
    places::main().unwrap();
}
