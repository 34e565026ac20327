//! The expansion of `#[orchestration]`.

use crate::options::{Kind, Options};
use crate::signature::Signature;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, ItemFn};

pub(crate) fn expand(options: &Options, item: &ItemFn, refusals: &mut Vec<Error>) -> Option<TokenStream> {
    let signature = Signature::check(Kind::Orchestration, options, item, refusals)?;
    let Signature { krate, function, handle, stored, cfgs, .. } = &signature;
    let (input, (ok, err)) = (signature.input_type(), signature.outcome());
    let (unpack, bound) = signature.unpack();
    let version = options.version.iter().map(|version| {
        quote!(const VERSION: ::core::option::Option<&'static str> = ::core::option::Option::Some(#version);)
    });
    let text_errors = options.text_errors.then(|| {
        quote!(
            const TEXT_ERRORS: bool = true;
        )
    });
    let on_cancel = on_cancel(options, krate);
    let status = match &options.status {
        Some(status) => quote_spanned!(status.span()=> #status),
        None => quote!(::std::string::String),
    };
    let accepts = options.accepts.iter().map(|message| {
        quote_spanned!(message.span()=> #(#cfgs)* impl #krate::author::AcceptedBy<#handle> for #message {})
    });
    let verbs = verbs(&signature, options);
    let (input_struct, handle_type) = (signature.input_struct(), signature.handle_type());
    let body = quote_spanned!(function.span()=> #function(ctx, #(#bound),*));
    let (future, body) = (signature.future(), signature.body(body));
    Some(quote! {
        #input_struct
        #handle_type
        #(#cfgs)*
        impl #krate::author::Orchestration for #handle {
            const NAME: &'static str = #stored;
            #(#version)*
            #text_errors
            #on_cancel
            type Input = #input;
            type Output = #ok;
            type Error = #err;
            type Status = #status;
            fn run(
                ctx: #krate::OrchestrationContext,
                input: #input,
            ) -> #future {
                #unpack
                #body
            }
        }
        #verbs
        #(#accepts)*
    })
}

/// The answer to a request to cancel.
fn on_cancel(options: &Options, krate: &TokenStream) -> Option<TokenStream> {
    let answer = options.on_cancel.as_ref()?;
    let grace = options.grace_ms.map(|ms| quote!(.grace(::core::time::Duration::from_millis(#ms))));
    Some(quote! {
        const ON_CANCEL: ::core::option::Option<#krate::author::OnCancel> =
            ::core::option::Option::Some(#krate::author::OnCancel::#answer() #grace);
    })
}

fn verbs(signature: &Signature<'_>, options: &Options) -> TokenStream {
    let Signature { krate, handle, vis, cfgs, .. } = signature;
    let (parameters, pack, input_verb) = (signature.parameters(), signature.pack(), signature.input_verb());
    let (ctx, client) = (signature.free_name("ctx"), signature.free_name("client"));
    let status = options.status.iter().map(|status| {
        quote! {
            /// Sets the custom status, which `Handle::status` reads.
            #[track_caller]
            #vis fn set_status(ctx: &#krate::OrchestrationContext, status: &#status) {
                #krate::author::set_status::<Self>(ctx, status)
            }
        }
    });
    quote! {
        #(#cfgs)*
        #[allow(dead_code, unused_variables, clippy::self_named_constructors, clippy::too_many_arguments)]
        impl #handle {
            /// Starts an instance. `.id(..)` names it; `.await` stores the start and returns a handle.
            #vis fn start(#client: &#krate::Client, #parameters) -> #krate::author::Start<'_, Self> {
                #krate::author::Start::new(#client, #pack)
            }
            /// Runs the orchestration as a child. This call schedules it; `.await` waits for its outcome.
            #[track_caller]
            #vis fn child(#ctx: &#krate::OrchestrationContext, #parameters) -> #krate::author::Child<Self> {
                #krate::author::Child::new(#ctx, #pack)
            }
            /// Starts an instance that the calling orchestration does not wait for. `.id(..)` names it and starts it.
            #vis fn detached(
                #ctx: &#krate::OrchestrationContext,
                #parameters
            ) -> #krate::author::Detached<'_, Self> {
                #krate::author::Detached::new(#ctx, #pack)
            }
            /// Ends this execution and begins the next one of the same instance:
            /// `return Self::continue_as_new(&ctx, ..).await`.
            #[track_caller]
            #vis fn continue_as_new(
                #ctx: &#krate::OrchestrationContext,
                #parameters
            ) -> #krate::author::ContinueAsNew<Self> {
                #krate::author::ContinueAsNew::new(#ctx, #pack)
            }
            /// The handle of an instance that was started before.
            #vis fn handle(
                client: &#krate::Client,
                instance: impl ::core::convert::Into<::std::string::String>,
            ) -> #krate::author::Handle<Self> {
                #krate::author::Handle::new(client, instance)
            }
            #input_verb
            #(#status)*
        }
    }
}
