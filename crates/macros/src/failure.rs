//! The expansion of `derive(Failure)`.

use crate::options::{equals, krate, unknown};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, Member, Path, Token};

const KNOWN: &[&str] = &["permanent", "retry_after", "unknown", "call", "crate"];

/// The arguments of `#[failure(..)]` on a type or a variant.
#[derive(Default)]
struct Arguments {
    permanent: bool,
    retry_after: Option<Member>,
    unknown: Option<Ident>,
    call: Option<Ident>,
    krate: Option<Path>,
}

impl Arguments {
    fn of(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("failure")) {
            attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
                while !input.is_empty() {
                    let argument = input.call(Ident::parse_any)?;
                    match argument.to_string().as_str() {
                        "permanent" => found.permanent = true,
                        "unknown" => found.unknown = Some(argument),
                        "call" => found.call = Some(argument),
                        "retry_after" => {
                            equals(&argument, input)?;
                            found.retry_after = Some(input.parse()?);
                        }
                        "crate" => {
                            equals(&argument, input)?;
                            found.krate = Some(input.parse()?);
                        }
                        _ => return Err(unknown(&argument, "`failure`", KNOWN)),
                    }
                    if !input.is_empty() {
                        input.parse::<Token![,]>()?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

pub(crate) fn expand(item: &DeriveInput) -> syn::Result<TokenStream> {
    if !item.generics.params.is_empty() {
        return Err(Error::new_spanned(&item.generics, "a `Failure` is one type, so it is not generic"));
    }
    let outer = Arguments::of(&item.attrs)?;
    let krate = krate(outer.krate.as_ref());
    let name = &item.ident;
    let variants = variants(item, outer)?;
    let permanent = variants
        .iter()
        .filter(|(_, arguments, _)| arguments.permanent)
        .map(|(path, ..)| quote!(#path { .. } => true,));
    let retry_after = variants.iter().filter_map(|(path, arguments, _)| {
        let field = arguments.retry_after.as_ref()?;
        Some(quote_spanned!(field.span()=>
            #path { #field: __wait, .. } => #krate::author::RetryAfter::retry_after(__wait),
        ))
    });
    let from_text = one(&variants, |arguments| arguments.unknown.as_ref())?.map(|make| {
        quote! {
            fn from_text(text: ::std::string::String) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(#make)
            }
        }
    });
    let from_call = match one(&variants, |arguments| arguments.call.as_ref())? {
        // No type meets the bound, whose message the compiler prints for a `?` that needs the variant. With the span of the type,
        // the compiler does not advise to replace the derive.
        None => quote_spanned! {name.span()=>
            impl<E> ::core::convert::From<#krate::author::CallError<E>> for #name
            where
                Self: #krate::author::HasCallVariant<#krate::author::CallError<E>>,
            {
                fn from(error: #krate::author::CallError<E>) -> Self {
                    #krate::author::HasCallVariant::from_call(error)
                }
            }
        },
        Some(make) => quote! {
            impl<E: ::core::fmt::Display + 'static> ::core::convert::From<#krate::author::CallError<E>> for #name {
                fn from(error: #krate::author::CallError<E>) -> Self {
                    match #krate::author::failed_or_text(error) {
                        ::core::result::Result::Ok(error) => error,
                        ::core::result::Result::Err(text) => #make,
                    }
                }
            }
        },
    };
    Ok(quote! {
        impl #krate::author::Failure for #name {
            fn is_permanent(&self) -> bool {
                match self {
                    #(#permanent)*
                    #[allow(unreachable_patterns)]
                    _ => false,
                }
            }
            fn retry_after(&self) -> ::core::option::Option<::core::time::Duration> {
                match self {
                    #(#retry_after)*
                    #[allow(unreachable_patterns)]
                    _ => ::core::option::Option::None,
                }
            }
            #from_text
        }
        #from_call
    })
}

type Variant<'a> = (TokenStream, Arguments, &'a Fields);

/// The variants of an enum, or the struct itself, each as a path.
fn variants(item: &DeriveInput, outer: Arguments) -> syn::Result<Vec<Variant<'_>>> {
    match &item.data {
        Data::Struct(data) => Ok(vec![(quote!(Self), outer, &data.fields)]),
        Data::Enum(data) => data
            .variants
            .iter()
            .map(|variant| {
                let ident = &variant.ident;
                Ok((quote!(Self::#ident), Arguments::of(&variant.attrs)?, &variant.fields))
            })
            .collect(),
        Data::Union(data) => Err(Error::new(data.union_token.span, "a `Failure` is a struct or an enum")),
    }
}

/// The expression that makes the one marked variant from `text`.
fn one(
    variants: &[Variant<'_>],
    mark: impl Fn(&Arguments) -> Option<&Ident>,
) -> syn::Result<Option<TokenStream>> {
    let mut marked =
        variants.iter().filter_map(|(path, arguments, fields)| Some((path, mark(arguments)?, fields)));
    let Some((path, mark_ident, fields)) = marked.next() else { return Ok(None) };
    if let Some((_, second, _)) = marked.next() {
        return Err(Error::new(second.span(), format!("only one variant can be `{second}`")));
    }
    let mut fields = fields.iter();
    match (fields.next(), fields.next()) {
        (Some(field), None) => Ok(Some(match &field.ident {
            Some(field) => quote!(#path { #field: text }),
            None => quote!(#path(text)),
        })),
        _ => {
            let message = format!("a variant that is `{mark_ident}` has one field of the type `String`");
            Err(Error::new(mark_ident.span(), message))
        }
    }
}
