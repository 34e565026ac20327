//! The expansion of `derive(Message)`.

use crate::options::{equals, krate, text, unknown};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, Ident, LitStr, Path, Token, Type};

const KNOWN: &[&str] = &["name", "reply", "route", "crate"];

/// The arguments of `#[message(..)]`.
#[derive(Default)]
struct Arguments {
    name: Option<LitStr>,
    reply: Option<Type>,
    is_event: bool,
    krate: Option<Path>,
}

impl Arguments {
    fn of(item: &DeriveInput) -> syn::Result<Self> {
        let mut found = Self::default();
        for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("message")) {
            attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
                while !input.is_empty() {
                    found.parse_one(input)?;
                    if !input.is_empty() {
                        input.parse::<Token![,]>()?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    fn parse_one(&mut self, input: syn::parse::ParseStream<'_>) -> syn::Result<()> {
        let argument = input.call(Ident::parse_any)?;
        let name = argument.to_string();
        if !KNOWN.contains(&name.as_str()) {
            return Err(unknown(&argument, "`message`", KNOWN));
        }
        equals(&argument, input)?;
        match name.as_str() {
            "name" => self.name = Some(text(input, "the name of the queue, such as \"approval\"")?),
            "reply" => self.reply = Some(input.parse()?),
            "crate" => self.krate = Some(input.parse()?),
            _ => {
                let route: Ident = input.parse()?;
                self.is_event = match route.to_string().as_str() {
                    "queue" => false,
                    "event" => true,
                    _ => return Err(Error::new(route.span(), "a route is `queue` or `event`")),
                };
            }
        }
        Ok(())
    }
}

pub(crate) fn expand(item: &DeriveInput) -> syn::Result<TokenStream> {
    if !item.generics.params.is_empty() {
        return Err(Error::new_spanned(&item.generics, "a `Message` is one type, so it is not generic"));
    }
    let arguments = Arguments::of(item)?;
    let krate = krate(arguments.krate.as_ref());
    let ident = &item.ident;
    let name = arguments.name.map_or_else(|| snake_case(&ident.unraw().to_string()), |name| name.value());
    let route = if arguments.is_event { quote!(Event) } else { quote!(Queue) };
    let reply = arguments.reply.map(|reply| {
        quote_spanned!(reply.span()=> impl #krate::author::Request for #ident { type Reply = #reply; })
    });
    Ok(quote! {
        impl #krate::author::Message for #ident {
            const NAME: &'static str = #name;
            const ROUTE: #krate::author::Route = #krate::author::Route::#route;
        }
        impl #krate::author::Outgoing for &#ident {
            type Message = #ident;

            fn message(&self) -> &#ident {
                self
            }
        }
        #reply
    })
}

/// `AddItem` becomes `add_item`, and `HTTPReply` becomes `http_reply`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (place, letter) in letters.iter().enumerate() {
        let after_lower = place > 0 && !letters[place - 1].is_uppercase();
        let before_lower = letters.get(place + 1).is_some_and(|next| next.is_lowercase());
        if place > 0 && letter.is_uppercase() && (after_lower || before_lower) && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn names_of_types_become_names_of_queues() {
        let names = ["Approval", "AddItem", "HTTPReply", "Total2", "already_snake", "A"].map(snake_case);
        assert_eq!(names, ["approval", "add_item", "http_reply", "total2", "already_snake", "a"]);
    }
}
