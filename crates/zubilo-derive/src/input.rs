//! The type that a macro stands on: its variants and fields, and the format that its attribute names. What cannot
//! be stored is refused here, at the place in the program that is to be changed.

use proc_macro2::{Ident, Span};
use quote::quote;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Index, LitStr, Member, Path, Result, Type};

/// What the type is to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Sorted.
    Key,
    /// Stored only.
    Value,
}

/// How a value is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Field by field, noted with their names.
    Fields,
    /// Field by field, noted as the tuple that has the same encoding.
    Tuple,
    /// By serde.
    Postcard,
    /// As in memory.
    Aligned,
}

/// A field: how it is named, and its type.
pub(crate) struct Field {
    pub(crate) member: Member,
    pub(crate) ty: Type,
}

/// The fields of a struct or of a variant.
pub(crate) struct Shape {
    /// The variant; none of a struct.
    pub(crate) variant: Option<Ident>,
    pub(crate) fields: Vec<Field>,
    /// Whether the fields have names.
    pub(crate) named: bool,
}

/// A type to be stored.
pub(crate) struct Input {
    pub(crate) name: Ident,
    pub(crate) purpose: Purpose,
    pub(crate) format: Format,
    /// One of a struct, several of an enum.
    pub(crate) shapes: Vec<Shape>,
    pub(crate) is_enum: bool,
    /// The path of `zubilo_typed`.
    pub(crate) krate: Path,
}

/// Variants that one byte can tell apart.
const VARIANTS_MAX: usize = 256;

impl Input {
    pub(crate) fn of(item: &DeriveInput, purpose: Purpose) -> Result<Input> {
        if !item.generics.params.is_empty() {
            let what = "types of tables have no parameters and no lifetimes: what is stored is owned, \
                        `String` in place of `&str`";
            return Err(Error::new(item.generics.span(), what));
        }
        let (format, krate) = attributes(item, purpose)?;
        let (shapes, is_enum) = match &item.data {
            Data::Struct(data) => (vec![shape(None, &data.fields)], false),
            Data::Enum(data) => {
                let by_fields = matches!(format, Format::Fields | Format::Tuple);
                let mut shapes = Vec::new();
                for variant in &data.variants {
                    if let Some((_, number)) = &variant.discriminant
                        && by_fields
                    {
                        let what = "the number of a variant is its position: leave the discriminant out, \
                                    or implement the codec by hand";
                        return Err(Error::new(number.span(), what));
                    }
                    shapes.push(shape(Some(variant.ident.clone()), &variant.fields));
                }
                if by_fields && !(1..=VARIANTS_MAX).contains(&shapes.len()) {
                    let what = "an enum in a table has 1 to 256 variants";
                    return Err(Error::new(item.ident.span(), what));
                }
                (shapes, true)
            }
            Data::Union(_) => {
                let what = "a union does not say what it holds; store a struct or an enum";
                return Err(Error::new(item.ident.span(), what));
            }
        };
        let fields = shapes.iter().flat_map(|shape| &shape.fields);
        for field in fields {
            if matches!(field.ty, Type::Reference(_)) {
                let what =
                    "a field is owned: `String` in place of `&str`, `Vec<u8>` in place of `&[u8]`";
                return Err(Error::new(field.ty.span(), what));
            }
        }
        Ok(Input { name: item.ident.clone(), purpose, format, shapes, is_enum, krate })
    }
}

fn shape(variant: Option<Ident>, fields: &Fields) -> Shape {
    let named = matches!(fields, Fields::Named(_));
    let field = |(at, field): (usize, &syn::Field)| Field {
        member: match &field.ident {
            Some(name) => Member::Named(name.clone()),
            None => Member::Unnamed(Index { index: at as u32, span: field.ty.span() }),
        },
        ty: field.ty.clone(),
    };
    Shape { variant, fields: fields.iter().enumerate().map(field).collect(), named }
}

/// What `#[zubilo(..)]` says.
fn attributes(item: &DeriveInput, purpose: Purpose) -> Result<(Format, Path)> {
    let mut format = None;
    let mut krate = syn::parse2(quote!(::zubilo_typed))?;
    let ours = |attribute: &&Attribute| attribute.path().is_ident("zubilo");
    for attribute in item.attrs.iter().filter(ours) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("format") {
                let text: LitStr = meta.value()?.parse()?;
                format = Some(format_of(&text, purpose)?);
                Ok(())
            } else if meta.path.is_ident("crate") {
                krate = meta.value()?.parse::<LitStr>()?.parse()?;
                Ok(())
            } else {
                Err(meta.error("there are `format = \"..\"` and `crate = \"..\"`"))
            }
        })?;
    }
    let format = match (format, purpose) {
        (Some(format), _) => format,
        (None, Purpose::Key) => Format::Fields,
        (None, Purpose::Value) => {
            let what = "say how the value is stored: `#[zubilo(format = \"fields\")]`, or \"tuple\", \
                        \"postcard\" or \"aligned\"";
            return Err(Error::new(Span::call_site(), what));
        }
    };
    Ok((format, krate))
}

fn format_of(text: &LitStr, purpose: Purpose) -> Result<Format> {
    match (text.value().as_str(), purpose) {
        ("fields", _) => Ok(Format::Fields),
        ("tuple", _) => Ok(Format::Tuple),
        ("postcard", Purpose::Value) => Ok(Format::Postcard),
        ("aligned", Purpose::Value) => Ok(Format::Aligned),
        ("postcard" | "aligned", Purpose::Key) => {
            let what = "the bytes of this format do not sort as the keys do: a key is stored by its \
                        \"fields\", or as a \"tuple\"";
            Err(Error::new(text.span(), what))
        }
        (_, Purpose::Key) => Err(Error::new(text.span(), "formats of keys: \"fields\", \"tuple\"")),
        (_, Purpose::Value) => {
            let what = "formats of values: \"fields\", \"tuple\", \"postcard\", \"aligned\"";
            Err(Error::new(text.span(), what))
        }
    }
}
