//! The arguments of the attributes.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitInt, LitStr, Path, Token, Type, parenthesized};

/// The kind of function that an attribute is on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Activity,
    Orchestration,
    Helper,
}

impl Kind {
    /// The kind with its article, for error messages.
    pub(crate) fn a(self) -> &'static str {
        match self {
            Self::Activity => "an activity",
            Self::Orchestration => "an orchestration",
            Self::Helper => "a deterministic function",
        }
    }

    pub(crate) fn context(self) -> &'static str {
        match self {
            Self::Activity => "ActivityContext",
            Self::Orchestration | Self::Helper => "OrchestrationContext",
        }
    }

    /// The names of its arguments.
    fn known(self) -> &'static [&'static str] {
        match self {
            Self::Activity => {
                &["name", "retry", "backoff", "max_backoff", "timeout", "tag", "errors", "handle", "crate"]
            }
            Self::Orchestration => &[
                "name",
                "version",
                "accepts",
                "status",
                "on_cancel",
                "grace",
                "allow",
                "errors",
                "handle",
                "crate",
            ],
            Self::Helper => &["allow"],
        }
    }
}

/// The arguments of an attribute.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) version: Option<LitStr>,
    pub(crate) attempts: Option<u32>,
    pub(crate) backoff_ms: Option<u64>,
    pub(crate) max_backoff_ms: Option<u64>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) tag: Option<LitStr>,
    pub(crate) accepts: Vec<Path>,
    pub(crate) status: Option<Type>,
    pub(crate) on_cancel: Option<Ident>,
    pub(crate) grace_ms: Option<u64>,
    /// The word `grace`, for errors about it.
    grace: Option<Ident>,
    pub(crate) allow: Vec<Ident>,
    pub(crate) text_errors: bool,
    pub(crate) handle: Option<Ident>,
    krate: Option<Path>,
}

impl Options {
    /// The arguments without those that are refused, and the refusals.
    pub(crate) fn parse(kind: Kind, arguments: TokenStream) -> (Self, Vec<Error>) {
        let (mut options, mut refusals) = (Self::default(), Vec::new());
        let parse = |input: ParseStream<'_>| {
            while !input.is_empty() {
                if let Err(refusal) = options.parse_one(kind, input) {
                    refusals.push(refusal);
                    while !input.is_empty() && !input.peek(Token![,]) {
                        input.parse::<TokenTree>()?;
                    }
                }
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
            Ok(())
        };
        let parsed = parse.parse2(arguments);
        // A refused list leaves tokens, about which syn reports another error.
        if refusals.is_empty() {
            refusals.extend(parsed.err());
        }
        if let (Some(grace), None, true) = (&options.grace, &options.on_cancel, refusals.is_empty()) {
            let message = "`grace` needs `on_cancel`: write `on_cancel = undo` or `on_cancel = observe`";
            refusals.push(Error::new(grace.span(), message));
        }
        (options, refusals)
    }

    fn parse_one(&mut self, kind: Kind, input: ParseStream<'_>) -> syn::Result<()> {
        let argument = input.call(Ident::parse_any)?;
        let name = argument.to_string();
        if !kind.known().contains(&name.as_str()) {
            return Err(unknown(&argument, kind.a(), kind.known()));
        }
        match name.as_str() {
            "accepts" => self.accepts = list(input, Path::parse)?,
            "allow" => self.allow = list(input, rule)?,
            _ => {
                equals(&argument, input)?;
                self.parse_value(&name, input)?;
                if name == "grace" {
                    self.grace = Some(argument);
                }
            }
        }
        Ok(())
    }

    fn parse_value(&mut self, name: &str, input: ParseStream<'_>) -> syn::Result<()> {
        match name {
            "name" => self.name = Some(text(input, "the name, such as \"charge\"")?),
            "tag" => self.tag = Some(text(input, "the tag, such as \"gpu\"")?),
            "version" => self.version = Some(version(input)?),
            "retry" => self.attempts = Some(attempts(input)?),
            "backoff" => self.backoff_ms = Some(duration_ms(input)?),
            "max_backoff" => self.max_backoff_ms = Some(duration_ms(input)?),
            "timeout" => self.timeout_ms = Some(duration_ms(input)?),
            "on_cancel" => self.on_cancel = Some(on_cancel(input)?),
            "grace" => self.grace_ms = Some(duration_ms(input)?),
            "status" => self.status = Some(input.parse()?),
            "handle" => self.handle = Some(input.parse()?),
            "crate" => self.krate = Some(input.parse()?),
            _ => {
                let value = input.call(Ident::parse_any)?;
                if value != "text" {
                    return Err(Error::new(value.span(), "`errors` has one value: write `errors = text`"));
                }
                self.text_errors = true;
            }
        }
        Ok(())
    }

    /// The path of the facade.
    pub(crate) fn krate(&self) -> TokenStream {
        krate(self.krate.as_ref())
    }

    /// The name of the type beside the function, and the name in histories.
    pub(crate) fn names(&self, function: &Ident) -> (Ident, String) {
        let handle = self.handle.clone().unwrap_or_else(|| function.clone());
        let stored = match &self.name {
            Some(name) => name.value(),
            None => function.unraw().to_string(),
        };
        (handle, stored)
    }
}

/// The path of the facade: `::outlast`, or the name that the program gave it.
pub(crate) fn krate(named: Option<&Path>) -> TokenStream {
    match named {
        None => quote!(::outlast),
        Some(path) if path.leading_colon.is_some() || path.segments.len() > 1 => path.to_token_stream(),
        Some(path) => quote!(::#path),
    }
}

/// The error for an argument that does not exist. It names an argument that begins alike.
pub(crate) fn unknown(argument: &Ident, whose: &str, known: &[&str]) -> Error {
    let name = argument.to_string();
    let alike = |known: &&&str| name.chars().zip(known.chars()).take_while(|(a, b)| a == b).count() >= 3;
    let near = known.iter().find(alike).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let known = known.join(", ");
    Error::new(argument.span(), format!("{whose} has no argument `{name}`: it has {known}{near}"))
}

/// The `=` behind the name of an argument.
pub(crate) fn equals(argument: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
    match input.parse::<Token![=]>() {
        Ok(_) => Ok(()),
        Err(_) => {
            Err(Error::new(argument.span(), format!("`{argument}` needs a value: write `{argument} = ..`")))
        }
    }
}

fn list<T>(input: ParseStream<'_>, parse: fn(ParseStream<'_>) -> syn::Result<T>) -> syn::Result<Vec<T>> {
    let inner;
    parenthesized!(inner in input);
    Ok(Punctuated::<T, Token![,]>::parse_terminated_with(&inner, parse)?.into_iter().collect())
}

fn rule(input: ParseStream<'_>) -> syn::Result<Ident> {
    let rule = input.call(Ident::parse_any)?;
    if crate::scan::RULES.iter().any(|known| rule == known) {
        return Ok(rule);
    }
    let known = crate::scan::RULES.join(", ");
    Err(Error::new(rule.span(), format!("there is no rule `{rule}`: the rules are {known}")))
}

pub(crate) fn text(input: ParseStream<'_>, expected: &str) -> syn::Result<LitStr> {
    let span = input.span();
    let text: LitStr =
        input.parse().map_err(|_| Error::new(span, format!("write {expected}, as a string")))?;
    if text.value().is_empty() {
        return Err(Error::new(text.span(), "the text is empty"));
    }
    Ok(text)
}

/// The value of `on_cancel`: `undo` or `observe`.
fn on_cancel(input: ParseStream<'_>) -> syn::Result<Ident> {
    let value = input.call(Ident::parse_any)?;
    match value == "undo" || value == "observe" {
        true => Ok(value),
        false => {
            let text = "write `on_cancel = undo` (the request interrupts the body, and its `Undo` runs) or \
                        `on_cancel = observe` (the body awaits `ctx.cancelled()`)";
            Err(Error::new(value.span(), text))
        }
    }
}

fn attempts(input: ParseStream<'_>) -> syn::Result<u32> {
    const EXPECTED: &str = "write the number of attempts, the first one included: `retry = 5`";
    let span = input.span();
    let number: LitInt = input.parse().map_err(|_| Error::new(span, EXPECTED))?;
    let attempts = number.base10_parse::<u32>().ok().filter(|attempts| *attempts > 0);
    attempts.ok_or_else(|| Error::new(number.span(), EXPECTED))
}

fn duration_ms(input: ParseStream<'_>) -> syn::Result<u64> {
    const EXPECTED: &str = "write a duration: \"250ms\", \"30s\", \"5m\", \"2h\" or \"1d\"";
    let span = input.span();
    let text: LitStr = input.parse().map_err(|_| Error::new(span, EXPECTED))?;
    let value = text.value();
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at(digits);
    let unit_ms: Option<u64> = match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let ms = unit_ms.and_then(|unit_ms| number.parse::<u64>().ok()?.checked_mul(unit_ms));
    ms.filter(|ms| *ms > 0).ok_or_else(|| Error::new(text.span(), EXPECTED))
}

fn version(input: ParseStream<'_>) -> syn::Result<LitStr> {
    let text = text(input, "a version, such as \"2.0.0\"")?;
    let value = text.value();
    let core = value.split(['-', '+']).next().unwrap_or_default();
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    match core.split('.').collect::<Vec<_>>()[..] {
        [major, minor, patch] if [major, minor, patch].into_iter().all(is_number) => Ok(text),
        _ => {
            let message = format!("a version has three numbers, such as \"2.0.0\"; this one is \"{value}\"");
            Err(Error::new(text.span(), message))
        }
    }
}

/// The name of the type that holds several inputs.
pub(crate) fn input_type(handle: &Ident) -> Ident {
    format_ident!("__{}_input", handle.unraw())
}
