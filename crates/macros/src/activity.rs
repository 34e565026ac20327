//! The expansion of `#[activity]`.

use crate::options::{Kind, Options};
use crate::signature::Signature;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, ItemFn};

pub(crate) fn expand(options: &Options, item: &ItemFn, refusals: &mut Vec<Error>) -> Option<TokenStream> {
    let signature = Signature::check(Kind::Activity, options, item, refusals)?;
    let Signature { krate, function, handle, stored, vis, cfgs, .. } = &signature;
    let (input, (ok, err)) = (signature.input_type(), signature.outcome());
    let (parameters, pack, ctx) = (signature.parameters(), signature.pack(), signature.free_name("ctx"));
    let (unpack, bound) = signature.unpack();
    let policy = policy(options);
    let text_errors = options.text_errors.then(|| {
        quote!(
            const TEXT_ERRORS: bool = true;
        )
    });
    let found: Vec<_> = (0..signature.states.len()).map(|number| format_ident!("state{number}")).collect();
    let from_scope = signature.states.iter().zip(&found).map(|(ty, found)| {
        quote_spanned!(ty.span()=> let #found = <#ty as #krate::author::FromScope>::from_scope(&scope);)
    });
    let needs = signature
        .states
        .iter()
        .map(|ty| quote_spanned!(ty.span()=> <#ty as #krate::author::FromScope>::need()));
    let (input_struct, input_verb) = (signature.input_struct(), signature.input_verb());
    let handle_type = signature.handle_type();
    let body = quote_spanned!(function.span()=> #function(scope.context, #(#found,)* #(#bound),*));
    let (future, body) = (signature.future(), signature.body(body));
    Some(quote! {
        #input_struct
        #handle_type
        #(#cfgs)*
        impl #krate::author::Activity for #handle {
            const NAME: &'static str = #stored;
            #text_errors
            type Input = #input;
            type Output = #ok;
            type Error = #err;
            fn policy() -> #krate::author::Policy {
                #krate::author::Policy::new() #policy
            }
            fn needs() -> ::std::vec::Vec<#krate::author::Need> {
                ::std::vec![#(#needs),*]
            }
            fn run(
                scope: #krate::author::Scope,
                input: #input,
            ) -> #future {
                #unpack
                #(#from_scope)*
                #body
            }
        }
        #(#cfgs)*
        #[allow(dead_code, unused_variables, clippy::self_named_constructors, clippy::too_many_arguments)]
        impl #handle {
            /// Runs the activity. This call schedules it; `.await` waits for its outcome.
            #[track_caller]
            #vis fn call(#ctx: &#krate::OrchestrationContext, #parameters) -> #krate::author::Call<Self> {
                #krate::author::Call::new(#ctx, #pack)
            }
            #input_verb
        }
    })
}

/// The arguments that act on the worker, as calls of the policy's methods.
fn policy(options: &Options) -> TokenStream {
    let duration = |ms: u64| quote!(::core::time::Duration::from_millis(#ms));
    let call = |method: TokenStream, ms: Option<u64>| {
        let ms = ms.map(duration);
        ms.map(|ms| quote!(.#method(#ms)))
    };
    let retry = options.attempts.map(|attempts| quote!(.retry(#attempts)));
    let backoff = call(quote!(backoff), options.backoff_ms);
    let max_backoff = call(quote!(max_backoff), options.max_backoff_ms);
    let timeout = call(quote!(timeout), options.timeout_ms);
    let tag = options.tag.as_ref().map(|tag| quote!(.tag(#tag)));
    quote!(#retry #backoff #max_backoff #timeout #tag)
}
