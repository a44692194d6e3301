//! The derive macros of `zubilo-typed`, which exports them with its feature `derive`; they are described there.
//! `input` is what a macro makes of the type it stands on, `fields` writes the codec that stores field by field,
//! `whole` those that hand the value to another codec. Nothing here knows bytes: all of that is in `zubilo-typed`.

mod fields;
mod input;
mod whole;

use proc_macro2::TokenStream;
use syn::{DeriveInput, parse_macro_input};

use input::{Format, Input, Purpose};

/// Makes a struct or enum a key of typed tables, and with it a value: see `zubilo_typed::Key`.
#[proc_macro_derive(Key, attributes(zubilo))]
pub fn key(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    expand(&item, Purpose::Key).into()
}

/// Makes a struct or enum a value of typed tables in a format that an attribute names: see
/// `zubilo_typed::Value`.
#[proc_macro_derive(Value, attributes(zubilo))]
pub fn value(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    expand(&item, Purpose::Value).into()
}

fn expand(item: &DeriveInput, purpose: Purpose) -> TokenStream {
    let input = match Input::of(item, purpose) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    match input.format {
        Format::Fields | Format::Tuple => fields::codec(&input),
        Format::Postcard | Format::Aligned => whole::codec(&input),
    }
}
