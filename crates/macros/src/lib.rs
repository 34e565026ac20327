//! The attributes and derives of Outlast's typed layer. The crate `outlast` re-exports them and documents their use.
//!
//! An attribute leaves its function as it is written, and puts a type of the same name beside it: functions and types have separate
//! namespaces. The type implements `Activity` or `Orchestration` and has the verbs, such as `charge::call`. The expansion uses public
//! items of `outlast::author` only, so it can be written by hand.
//!
//! A refused function has its type too, so that each mistake is one error: without the type, every use of its name would be another.
//! Where the function does not say a type, the expansion takes the type that the error proposes.
//!
//! | file | holds |
//! |---|---|
//! | `options.rs` | the arguments of the attributes |
//! | `checks.rs` | the checks of a function: the context, its parameters, its result |
//! | `signature.rs` | the parts of a checked function that an expansion needs |
//! | `activity.rs`, `orchestration.rs` | the expansions |
//! | `scan.rs` | the search for calls that give another value on replay |
//! | `failure.rs`, `message.rs` | the derives |

mod activity;
mod checks;
mod failure;
mod message;
mod options;
mod orchestration;
mod scan;
mod signature;

use options::{Kind, Options};
use proc_macro::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, ItemFn, parse_macro_input};

/// Makes an `async fn` an activity. Orchestrations call it with `charge::call(&ctx, order).await`. The first parameter is the `ActivityContext`; then parameters of the
/// type `State<..>`, which the runtime fills in; then the input. One input travels as it is, several travel as an object by name.
/// `mail::input(..)` makes the value of several inputs, for `Undo::push` and tests.
///
/// | argument | meaning |
/// |---|---|
/// | `name = "Charge"` | the name in histories; without it, the name of the function |
/// | `retry = 5` | the number of attempts: the worker runs the body again if it fails, times out or panics; a permanent error is not retried |
/// | `backoff = "1s"` | the wait before the second attempt, without it `"100ms"`; each further wait is twice as long |
/// | `max_backoff = "5m"` | the longest wait between two attempts, without it `"30s"` |
/// | `timeout = "30s"` | the longest time of one run of the body; the worker then drops it, and without a further attempt the call gets `CallError::TimedOut` |
/// | `tag = "gpu"` | workers with this tag run it |
/// | `errors = text` | errors are stored as plain text, for callers that compare the text |
/// | `handle = Name` | the name of the type beside the function |
/// | `crate = duroxide` | the name under which the program depends on `outlast` |
#[proc_macro_attribute]
pub fn activity(arguments: TokenStream, item: TokenStream) -> TokenStream {
    define(Kind::Activity, arguments, item)
}

/// Makes an `async fn` an orchestration. Clients start it with `fulfil::start(&client, order).id("o-1").await`, and orchestrations run it with `fulfil::child(&ctx, order)`.
/// The body must make the same calls when it is run again. The attribute therefore refuses clocks, random numbers, sleeping, tasks and
/// files that are written in the body.
///
/// | argument | meaning |
/// |---|---|
/// | `name = "Fulfil"` | the name in histories; without it, the name of the function |
/// | `version = "2.0.0"` | the version; starts and children through this type use exactly this version |
/// | `accepts(Approval, Note)` | the messages that clients may send to it |
/// | `status = Progress` | the type of its custom status |
/// | `on_cancel = undo` | a request to cancel interrupts the body at its `.await`, and the steps of its `Undo` run; then the instance ends as cancelled |
/// | `on_cancel = observe` | the body observes a request to cancel with `ctx.cancelled().await`, and decides |
/// | `grace = "5m"` | the time for the answer to a request to cancel; without it five minutes |
/// | `allow(clock)` | switches rules of the scan off: `clock`, `random`, `sleep`, `spawn`, `io`, `select` |
/// | `errors = text` | errors are stored as plain text, for callers that compare the text |
/// | `handle = Name` | the name of the type beside the function |
/// | `crate = duroxide` | the name under which the program depends on `outlast` |
#[proc_macro_attribute]
pub fn orchestration(arguments: TokenStream, item: TokenStream) -> TokenStream {
    define(Kind::Orchestration, arguments, item)
}

/// Scans a helper function of orchestrations for calls that give another value on replay, as [`macro@orchestration`] does. The
/// function itself does not change. `#[outlast::deterministic(allow(clock))]` switches rules off.
#[proc_macro_attribute]
pub fn deterministic(arguments: TokenStream, item: TokenStream) -> TokenStream {
    define(Kind::Helper, arguments, item)
}

/// The item stays in place also with errors, and a refused function is expanded, so that an error does not cause others.
fn define(kind: Kind, arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function = match syn::parse::<ItemFn>(item.clone()) {
        Ok(function) => function,
        Err(refusal) => {
            return item.into_iter().chain(TokenStream::from(refusal.into_compile_error())).collect();
        }
    };
    let (options, mut refusals) = Options::parse(kind, arguments.into());
    // With a refused `allow(..)` the scan would refuse the calls that it stands for.
    if kind != Kind::Activity && refusals.is_empty() {
        refusals = scan::check(&function.block, &options);
    }
    let expanded = match kind {
        Kind::Activity => activity::expand(&options, &function, &mut refusals),
        Kind::Orchestration => orchestration::expand(&options, &function, &mut refusals),
        Kind::Helper => None,
    };
    let refusals = refusals.into_iter().map(Error::into_compile_error);
    quote!(#function #(#refusals)* #expanded).into()
}

/// Makes an error type travel from activities and orchestrations to their callers.
///
/// The type needs `Display`, `Serialize` and `Deserialize`. A variant can have these attributes:
///
/// | attribute | meaning |
/// |---|---|
/// | `#[failure(permanent)]` | retrying does not help, so nothing retries |
/// | `#[failure(retry_after = wait)]` | the field `wait`, a `Duration` or an `Option` of one, is the wait before the next attempt |
/// | `#[failure(unknown)]` | stands for variants of newer programs, and for errors that are plain text; it has one `String` |
/// | `#[failure(call)]` | `?` turns a `CallError` of any call into this variant; it has one `String`. An error of this same type stays as it is |
///
/// `#[failure(crate = duroxide)]` on the type names the dependency.
#[proc_macro_derive(Failure, attributes(failure))]
pub fn failure(item: TokenStream) -> TokenStream {
    derive(item, failure::expand)
}

/// Makes a type a message that clients send to orchestrations.
///
/// | attribute on the type | meaning |
/// |---|---|
/// | `#[message(name = "approval")]` | the name of the queue; without it, the name of the type in `snake_case` |
/// | `#[message(reply = Total)]` | the type of the answer: clients can `ask` |
/// | `#[message(route = event)]` | a positional event, which is dropped if the orchestration does not wait for it; the default is `queue` |
/// | `#[message(crate = duroxide)]` | the name under which the program depends on `outlast` |
#[proc_macro_derive(Message, attributes(message))]
pub fn message(item: TokenStream) -> TokenStream {
    derive(item, message::expand)
}

fn derive(
    item: TokenStream,
    expand: fn(&DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    expand(&item).unwrap_or_else(Error::into_compile_error).into()
}
