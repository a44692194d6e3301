//! The codecs that hand the whole value to another one, `Postcard` or `Aligned`, and note the names of its fields
//! or variants besides: these formats do not tell when a type has changed.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use crate::input::{Format, Input, Shape};

/// Fields of a struct, variants of an enum.
fn names(input: &Input) -> String {
    let name = |shape: &Shape| match &shape.variant {
        Some(variant) => variant.to_string(),
        None => {
            let fields =
                shape.fields.iter().map(|field| field.member.to_token_stream().to_string());
            fields.collect::<Vec<_>>().join(",")
        }
    };
    input.shapes.iter().map(name).collect::<Vec<_>>().join(",")
}

pub(crate) fn codec(input: &Input) -> TokenStream {
    let name = &input.name;
    let krate = &input.krate;
    let noted = format!("{{{}}}", names(input));
    let (codec, view) = match input.format {
        Format::Aligned => (quote!(Aligned), quote!(&'a #name)),
        _ => (quote!(Postcard), quote!(#name)),
    };
    quote! {
        const _: () = {
            use #krate as zubilo_typed;
            type __Whole = zubilo_typed::#codec<#name>;

            #[automatically_derived]
            impl zubilo_typed::Value for #name {
                type Input<'a> = &'a #name;
                type View<'a> = #view;
                type Owned = #name;

                const WIDTH: ::core::option::Option<usize> = <__Whole as zubilo_typed::Value>::WIDTH;
                const ALIGN: u8 = <__Whole as zubilo_typed::Value>::ALIGN;

                fn tag(into: &mut ::std::string::String) {
                    <__Whole as zubilo_typed::Value>::tag(into);
                    into.push_str(#noted);
                }

                fn encode(
                    input: &#name,
                    into: &mut ::std::vec::Vec<u8>,
                ) -> zubilo_typed::Result<()> {
                    <__Whole as zubilo_typed::Value>::encode(input, into)
                }

                fn decode(bytes: &[u8]) -> zubilo_typed::Result<Self::View<'_>> {
                    <__Whole as zubilo_typed::Value>::decode(bytes)
                }

                fn input(owned: &#name) -> &#name {
                    owned
                }

                fn own(view: Self::View<'_>) -> #name {
                    <__Whole as zubilo_typed::Value>::own(view)
                }
            }
        };
    }
}
