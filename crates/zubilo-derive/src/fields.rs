//! The codec that stores field by field, in the order of the declaration: all fields but the last know their own
//! end, as the parts of a tuple do, the last one takes the rest. An enum begins with a byte for the variant's
//! position. So the bytes sort as the derived `Ord` does.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::input::{Field, Format, Input, Purpose, Shape};

pub(crate) fn codec(input: &Input) -> TokenStream {
    let value = value(input);
    let key = match input.purpose {
        Purpose::Key => key(input),
        Purpose::Value => TokenStream::new(),
    };
    let checks = input.shapes.iter().map(|shape| checks(input, shape));
    let krate = &input.krate;
    quote! {
        const _: () = {
            use #krate as zubilo_typed;
            #value
            #key
            const _: fn() = || { #(#checks)* };
        };
    }
}

/// Names types that cannot be stored at the field that has them.
fn checks(input: &Input, shape: &Shape) -> TokenStream {
    let last = shape.fields.len().saturating_sub(1);
    let check = |(at, field): (usize, &Field)| {
        let ty = &field.ty;
        let kind = match (input.purpose, at == last) {
            (Purpose::Value, true) => quote!(value),
            _ => quote!(part),
        };
        quote_spanned! { ty.span() => zubilo_typed::derive::#kind::<#ty>(); }
    };
    shape.fields.iter().enumerate().map(check).collect()
}

fn value(input: &Input) -> TokenStream {
    let name = &input.name;
    let (width, tag) = (width(input), tag(input));
    let (encode, decode) = (encode(input, false), decode(input, false));
    quote! {
        #[automatically_derived]
        impl zubilo_typed::Value for #name {
            type Input<'a> = &'a #name;
            type View<'a> = #name;
            type Owned = #name;

            const WIDTH: ::core::option::Option<usize> = #width;

            fn tag(into: &mut ::std::string::String) {
                #tag
            }

            fn encode(
                input: &#name,
                into: &mut ::std::vec::Vec<u8>,
            ) -> zubilo_typed::Result<()> {
                #encode
            }

            fn decode(bytes: &[u8]) -> zubilo_typed::Result<#name> {
                let mut rest = bytes;
                let bytes = &mut rest;
                #decode
            }

            fn input(owned: &#name) -> &#name {
                owned
            }

            fn own(view: #name) -> #name {
                view
            }
        }
    }
}

fn key(input: &Input) -> TokenStream {
    let name = &input.name;
    let (encode, decode) = (encode(input, true), decode(input, true));
    let prefixes = match input.shapes.as_slice() {
        [shape] if !input.is_enum => prefixes(input, shape),
        _ => TokenStream::new(),
    };
    quote! {
        #[automatically_derived]
        impl zubilo_typed::Key for #name {}
        #[automatically_derived]
        impl zubilo_typed::ByteOrdered for #name {}
        #[automatically_derived]
        impl zubilo_typed::Part for #name {
            type Item<'a> = #name;

            fn encode_part(
                input: &#name,
                into: &mut ::std::vec::Vec<u8>,
            ) -> zubilo_typed::Result<()> {
                #encode
            }

            fn decode_part<'a>(bytes: &mut &'a [u8]) -> zubilo_typed::Result<#name> {
                #decode
            }

            fn own_item(item: #name) -> #name {
                item
            }
        }
        #prefixes
    }
}

/// A tuple of the first fields is the beginning of keys.
fn prefixes(input: &Input, shape: &Shape) -> TokenStream {
    let name = &input.name;
    let of_len = |len: usize| {
        let types: Vec<_> = shape.fields.iter().take(len).map(|field| &field.ty).collect();
        let places = (0..len).map(syn::Index::from);
        quote! {
            #[automatically_derived]
            impl<'a> zubilo_typed::Prefix<#name>
                for (#(<#types as zubilo_typed::Value>::Input<'a>,)*)
            {
                fn encode_prefix(
                    self,
                    into: &mut ::std::vec::Vec<u8>,
                ) -> zubilo_typed::Result<()> {
                    #(<#types as zubilo_typed::Part>::encode_part(self.#places, into)?;)*
                    ::core::result::Result::Ok(())
                }
            }
        }
    };
    (1..shape.fields.len()).map(of_len).collect()
}

/// The width of the encoding, where it is always the same.
fn width(input: &Input) -> TokenStream {
    let of_shape = |shape: &Shape| {
        let types = shape.fields.iter().map(|field| &field.ty);
        let byte = usize::from(input.is_enum);
        quote! {
            zubilo_typed::derive::width(#byte, &[#(<#types as zubilo_typed::Value>::WIDTH),*])
        }
    };
    let widths = input.shapes.iter().map(of_shape);
    quote!(zubilo_typed::derive::one_width(&[#(#widths),*]))
}

/// The text that is noted in the store.
fn tag(input: &Input) -> TokenStream {
    let shapes = input.shapes.iter().enumerate().map(|(at, shape)| {
        let comma = if at > 0 { "," } else { "" };
        let variant =
            shape.variant.as_ref().map(|variant| quote!(into.push_str(stringify!(#variant));));
        let fields = tag_of_fields(input, shape);
        quote!(into.push_str(#comma); #variant #fields)
    });
    match input.is_enum {
        true => quote!(into.push_str("enum{"); #(#shapes)* into.push('}');),
        false => quote!(#(#shapes)*),
    }
}

fn tag_of_fields(input: &Input, shape: &Shape) -> TokenStream {
    let named = shape.named && input.format == Format::Fields;
    let of_field = |(at, field): (usize, &Field)| {
        let (member, ty) = (&field.member, &field.ty);
        let comma = if at > 0 { "," } else { "" };
        let name = match named {
            true => format!("{comma}{}:", member.to_token_stream()),
            false => comma.to_string(),
        };
        quote!(into.push_str(#name); <#ty as zubilo_typed::Value>::tag(into);)
    };
    let fields = shape.fields.iter().enumerate().map(of_field);
    let (open, close) = match (named, shape.fields.len(), input.is_enum) {
        (true, _, _) => ("{", "}"),
        // A unit variant is its name; a struct around one value is that value.
        (false, 0, true) | (false, 1, false) => ("", ""),
        (false, ..) => ("(", ")"),
    };
    quote!(into.push_str(#open); #(#fields)* into.push_str(#close);)
}

/// Appends `input`; `part` says whether something can follow.
fn encode(input: &Input, part: bool) -> TokenStream {
    let name = &input.name;
    let arms = input.shapes.iter().enumerate().map(|(at, shape)| {
        let path = match &shape.variant {
            Some(variant) => quote!(#name::#variant),
            None => quote!(#name),
        };
        let locals: Vec<_> = (0..shape.fields.len()).map(|at| format_ident!("field{at}")).collect();
        let members = shape.fields.iter().map(|field| &field.member);
        let at = at as u8;
        let number = input.is_enum.then(|| quote!(into.push(#at);));
        let last = shape.fields.len().saturating_sub(1);
        let puts = shape.fields.iter().zip(&locals).enumerate().map(|(at, (field, local))| {
            let ty = &field.ty;
            let put = match part || at < last {
                true => quote!(<#ty as zubilo_typed::Part>::encode_part),
                false => quote!(<#ty as zubilo_typed::Value>::encode),
            };
            quote!(#put(<#ty as zubilo_typed::Value>::input(#local), into)?;)
        });
        quote!(#path { #(#members: #locals),* } => { #number #(#puts)* })
    });
    quote! {
        match input {
            #(#arms)*
        }
        ::core::result::Result::Ok(())
    }
}

/// Reads from `bytes`, a `&mut &[u8]`; `part` says whether something can follow.
fn decode(input: &Input, part: bool) -> TokenStream {
    let name = &input.name;
    if !input.is_enum {
        return input.shapes.iter().map(|shape| decode_shape(name, shape, part, name)).collect();
    }
    let arms = input.shapes.iter().enumerate().map(|(at, shape)| {
        let variant = &shape.variant;
        let at = at as u8;
        let decode = decode_shape(&quote!(#name::#variant), shape, part, name);
        quote!(#at => { #decode })
    });
    quote! {
        match zubilo_typed::derive::variant(bytes, stringify!(#name))? {
            #(#arms)*
            _ => ::core::result::Result::Err(zubilo_typed::Error::Decode {
                ty: stringify!(#name),
                reason: "no variant has this number",
            }),
        }
    }
}

fn decode_shape(path: &impl ToTokens, shape: &Shape, part: bool, name: &syn::Ident) -> TokenStream {
    let last = shape.fields.len().saturating_sub(1);
    let takes = shape.fields.iter().enumerate().map(|(at, field)| {
        let (member, ty) = (&field.member, &field.ty);
        let take = match part || at < last {
            true => quote! {
                <#ty as zubilo_typed::Part>::own_item(
                    <#ty as zubilo_typed::Part>::decode_part(bytes)?
                )
            },
            false => quote! {
                <#ty as zubilo_typed::Value>::own(
                    <#ty as zubilo_typed::Value>::decode(::core::mem::take(bytes))?
                )
            },
        };
        quote!(#member: #take)
    });
    let end = match part || !shape.fields.is_empty() {
        true => TokenStream::new(),
        false => quote!(zubilo_typed::derive::at_end(bytes, stringify!(#name))?;),
    };
    quote!(#end ::core::result::Result::Ok(#path { #(#takes),* }))
}
