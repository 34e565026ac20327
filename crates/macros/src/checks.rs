//! The checks of a function that an attribute is on: the context, its parameters, its result. A check returns the type that its error
//! proposes in the place of a refused type.

use crate::options::Kind;
use crate::signature::Input;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ItemFn, Pat, PatType, PathSegment, ReturnType, Type, parse_quote};

/// Removes the spaces that printed tokens have.
pub(crate) fn tidy(tokens: &str) -> String {
    [
        (" :", ":"),
        (" ,", ","),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (": :", "::"),
        (":: ", "::"),
        (" ::", "::"),
    ]
    .iter()
    .fold(tokens.to_string(), |text, (from, to)| text.replace(from, to))
    .replace(")->", ") ->")
    .replace("- >", "->")
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        Type::Reference(reference) => last_segment(&reference.elem),
        _ => None,
    }
}

fn is_named(ty: &Type, name: &str) -> bool {
    last_segment(ty).is_some_and(|segment| segment.ident == name)
}

/// Refuses a function without its context. Returns the number of parameters that are a context: also one of another type stands in its
/// place, and every other first parameter is an input.
pub(crate) fn context(kind: Kind, item: &ItemFn, refusals: &mut Vec<Error>) -> usize {
    let (a, context, function) = (kind.a(), kind.context(), &item.sig.ident);
    let Some(FnArg::Typed(first)) = item.sig.inputs.first() else {
        let message = format!("{a} takes its context: write `{function}(ctx: {context}, ..)`");
        refusals.push(Error::new_spanned(function, message));
        return 0;
    };
    if !is_named(&first.ty, context) {
        let message = format!("the first parameter of {a} is `ctx: {context}`");
        refusals.push(Error::new_spanned(&first.ty, message));
    } else if let Type::Reference(_) = &*first.ty {
        let message = format!("{a} owns its context: write `ctx: {context}`, without `&`");
        refusals.push(Error::new_spanned(&first.ty, message));
    }
    let is_context = last_segment(&first.ty).is_some_and(|last| last.ident.to_string().ends_with("Context"));
    let is_ctx = matches!(&*first.pat, Pat::Ident(name) if name.ident == "ctx" || name.ident == "_ctx");
    usize::from(is_context || is_ctx)
}

/// The parameters behind the context: states, then inputs.
pub(crate) fn parameters<'a>(
    kind: Kind,
    item: &'a ItemFn,
    contexts: usize,
    refusals: &mut Vec<Error>,
) -> (Vec<&'a Type>, Vec<Input>) {
    let (mut states, mut inputs) = (Vec::new(), Vec::new());
    let typed = item.sig.inputs.iter().skip(contexts).filter_map(|parameter| match parameter {
        FnArg::Typed(parameter) => Some(parameter),
        FnArg::Receiver(_) => None,
    });
    for parameter in typed {
        let ty = &*parameter.ty;
        if !is_named(ty, "State") {
            inputs.push(input(parameter, inputs.len(), refusals));
            continue;
        }
        if kind == Kind::Orchestration {
            let message = "an orchestration is run again from its history, which does not hold state of the process: \
                           give `State` to an activity";
            refusals.push(Error::new_spanned(ty, message));
        } else if !inputs.is_empty() {
            let message = "`State` comes before the input: move it behind the context";
            refusals.push(Error::new_spanned(ty, message));
        }
        states.push(ty);
    }
    (states, inputs)
}

fn input(parameter: &PatType, number: usize, refusals: &mut Vec<Error>) -> Input {
    let ty = match &*parameter.ty {
        Type::Reference(reference) => {
            let message = "an input is stored, so it is owned: write `String` for `&str`, and `T` for `&T`";
            refusals.push(Error::new_spanned(reference, message));
            owned(&reference.elem)
        }
        ty => {
            if let Type::ImplTrait(_) = ty {
                let message = "an input is stored, so it has one type: name the type";
                refusals.push(Error::new_spanned(ty, message));
            }
            ty.clone()
        }
    };
    let name = match &*parameter.pat {
        Pat::Ident(pattern) => pattern.ident.clone(),
        other if number == 0 => Ident::new("input", other.span()),
        other => format_ident!("input{}", number + 1, span = other.span()),
    };
    // `_order` is a parameter that the body does not use: its name is `order`.
    let plain = name.unraw().to_string();
    let plain = plain.trim_start_matches('_');
    let name = match syn::parse_str::<Ident>(plain) {
        Ok(_) => Ident::new(plain, name.span()),
        Err(_) => name,
    };
    Input { name, ty }
}

/// The type to write for a reference to this type.
fn owned(ty: &Type) -> Type {
    match ty {
        Type::Slice(slice) => {
            let of = &slice.elem;
            parse_quote!(::std::vec::Vec<#of>)
        }
        _ if is_named(ty, "str") => parse_quote!(::std::string::String),
        _ => ty.clone(),
    }
}

/// The result type. A type that is plainly no result gets an error here; the compiler checks all others.
pub(crate) fn output(kind: Kind, item: &ItemFn, refusals: &mut Vec<Error>) -> Type {
    const PLAIN: &[&str] = &[
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
        "bool", "char", "String", "Vec", "Option", "HashMap", "BTreeMap",
    ];
    let (a, nothing) = (kind.a(), parse_quote!(()));
    let ReturnType::Type(_, ret) = &item.sig.output else {
        let message = format!("{a} returns a `Result`: write `-> Result<(), String>`, for example");
        refusals.push(Error::new_spanned(&item.sig.ident, message));
        return result(&nothing);
    };
    let is_plain = matches!(**ret, Type::Tuple(_)) || PLAIN.iter().any(|plain| is_named(ret, plain));
    if is_plain {
        let shown = tidy(&quote!(#ret).to_string());
        let message = format!("{a} returns a `Result`: write `Result<{shown}, E>`");
        refusals.push(Error::new_spanned(ret, message));
        return result(ret);
    }
    match item.sig.asyncness.is_none() && !is_named(ret, "Result") {
        // `-> impl Future<Output = ..>` is refused as a function that is not `async`.
        true => result(&nothing),
        false => (**ret).clone(),
    }
}

/// The result of a refused function. Its error is `String`, which `?` turns into most errors of callers.
pub(crate) fn result(ok: &Type) -> Type {
    parse_quote!(::core::result::Result<#ok, ::std::string::String>)
}
