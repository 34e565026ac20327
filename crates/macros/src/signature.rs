//! The checks of a function that an attribute is on, and the parts of its signature that an expansion needs.

use crate::options::{Kind, Options, input_type};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Ident, ItemFn, Pat, PatType, PathSegment, ReturnType, Type, Visibility};

/// The parts of a checked function.
pub(crate) struct Signature<'a> {
    pub(crate) krate: TokenStream,
    /// The function.
    pub(crate) function: &'a Ident,
    /// The type beside it.
    pub(crate) handle: Ident,
    /// The name in histories.
    pub(crate) stored: String,
    pub(crate) vis: &'a Visibility,
    /// The types that the runtime fills in.
    pub(crate) states: Vec<&'a Type>,
    pub(crate) inputs: Vec<Input<'a>>,
    output: &'a Type,
    /// The `cfg` attributes, which every generated item repeats.
    pub(crate) cfgs: Vec<&'a Attribute>,
    docs: Vec<&'a Attribute>,
}

/// A parameter that travels.
pub(crate) struct Input<'a> {
    pub(crate) name: Ident,
    pub(crate) ty: &'a Type,
}

impl<'a> Signature<'a> {
    pub(crate) fn check(kind: Kind, options: &Options, item: &'a ItemFn) -> syn::Result<Self> {
        let sig = &item.sig;
        let function = &sig.ident;
        if sig.asyncness.is_none() {
            let message = format!("{} is an `async fn`: write `async fn {function}`", kind.a());
            return Err(Error::new_spanned(sig.fn_token, message));
        }
        if !sig.generics.params.is_empty() {
            let message = format!(
                "{} has one name in histories, so it is not generic: write one function per type",
                kind.a()
            );
            return Err(Error::new_spanned(&sig.generics, message));
        }
        check_context(kind, item)?;
        let (states, inputs) = parameters(kind, item)?;
        let output = output(kind, item)?;
        let (handle, stored) = options.names(function);
        let attributes =
            |name: &'static str| item.attrs.iter().filter(move |attribute| attribute.path().is_ident(name));
        Ok(Self {
            krate: options.krate(),
            function,
            handle,
            stored,
            vis: &item.vis,
            states,
            inputs,
            output,
            cfgs: attributes("cfg").collect(),
            docs: attributes("doc").collect(),
        })
    }

    pub(crate) fn names(&self) -> Vec<&Ident> {
        self.inputs.iter().map(|input| &input.name).collect()
    }

    /// The parameters of the verbs: `order: Order`.
    pub(crate) fn parameters(&self) -> TokenStream {
        let (names, types) = (self.names(), self.inputs.iter().map(|input| input.ty));
        quote!(#(#names: #types),*)
    }

    /// The type that travels: nothing, the input, or a struct with the names of the inputs.
    pub(crate) fn input_type(&self) -> TokenStream {
        match &self.inputs[..] {
            [] => quote!(()),
            [input] => {
                let ty = input.ty;
                quote_spanned!(ty.span()=> #ty)
            }
            _ => input_type(&self.handle).to_token_stream(),
        }
    }

    /// The definition of the struct for several inputs.
    pub(crate) fn input_struct(&self) -> TokenStream {
        if self.inputs.len() < 2 {
            return quote!();
        }
        let Self { krate, vis, cfgs, .. } = self;
        let (wire, parameters) = (input_type(&self.handle), self.parameters());
        let serde = format!("{krate}::author::serde").replace(' ', "");
        quote! {
            #(#cfgs)*
            #[doc(hidden)]
            #[allow(non_camel_case_types)]
            #[derive(#krate::author::serde::Serialize, #krate::author::serde::Deserialize)]
            #[serde(crate = #serde)]
            #vis struct #wire { #parameters }
        }
    }

    /// The verb `input`, which makes the value of several inputs: the type of that value has no name for users.
    pub(crate) fn input_verb(&self) -> TokenStream {
        if self.inputs.len() < 2 {
            return quote!();
        }
        let (vis, wire, parameters, pack) =
            (self.vis, input_type(&self.handle), self.parameters(), self.pack());
        quote! {
            /// The inputs as one value, for `Undo::push` and tests.
            #vis fn input(#parameters) -> #wire {
                #pack
            }
        }
    }

    /// The value that travels, from the parameters of a verb.
    pub(crate) fn pack(&self) -> TokenStream {
        let names = self.names();
        match self.inputs.len() {
            0 => quote!(()),
            1 => quote!(#(#names)*),
            _ => {
                let wire = input_type(&self.handle);
                quote!(#wire { #(#names),* })
            }
        }
    }

    /// The statement that takes the value `input` apart, and the names that it binds. They are not the names of the parameters: a
    /// parameter may have the name of the function.
    pub(crate) fn unpack(&self) -> (TokenStream, Vec<Ident>) {
        let bound: Vec<Ident> = (0..self.inputs.len()).map(|number| format_ident!("input{number}")).collect();
        let names = self.names();
        let unpack = match self.inputs.len() {
            0 => quote!(let () = input;),
            1 => quote!(#(let #bound = input;)*),
            _ => {
                let wire = input_type(&self.handle);
                quote!(let #wire { #(#names: #bound),* } = input;)
            }
        };
        (unpack, bound)
    }

    /// A name for a parameter of a verb that no input has.
    pub(crate) fn free_name(&self, wanted: &str) -> Ident {
        let mut name = wanted.to_string();
        while self.inputs.iter().any(|input| input.name == name) {
            name.push('_');
        }
        format_ident!("{name}")
    }

    /// The associated types of the result. An alias of `Result` works too.
    pub(crate) fn outcome(&self) -> (TokenStream, TokenStream) {
        let (krate, ret) = (&self.krate, self.output);
        let ok = quote_spanned!(ret.span()=> <#ret as #krate::author::Outcome>::Ok);
        let err = quote_spanned!(ret.span()=> <#ret as #krate::author::Outcome>::Err);
        (ok, err)
    }

    /// The type beside the function, with the documentation of the function and its signature.
    pub(crate) fn handle_type(&self) -> TokenStream {
        let Self { handle, vis, cfgs, docs, function, .. } = self;
        let (parameters, ret) = (self.parameters(), self.output);
        let shown = format!("`async fn {function}({parameters}) -> {}`", quote!(#ret));
        let shown = tidy(&shown);
        let separator = if docs.is_empty() { quote!() } else { quote!(#[doc = ""]) };
        quote! {
            #(#cfgs)*
            #(#docs)*
            #separator
            #[doc = #shown]
            #[allow(non_camel_case_types)]
            #[derive(Clone, Copy)]
            #vis enum #handle {}
        }
    }
}

/// Removes the spaces that printed tokens have.
fn tidy(tokens: &str) -> String {
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

fn check_context(kind: Kind, item: &ItemFn) -> syn::Result<()> {
    let (a, context, function) = (kind.a(), kind.context(), &item.sig.ident);
    match item.sig.inputs.first() {
        Some(FnArg::Typed(first)) if is_named(&first.ty, context) => match &*first.ty {
            Type::Reference(_) => {
                let message = format!("{a} owns its context: write `ctx: {context}`, without `&`");
                Err(Error::new_spanned(&first.ty, message))
            }
            _ => Ok(()),
        },
        Some(FnArg::Typed(first)) => {
            Err(Error::new_spanned(&first.ty, format!("the first parameter of {a} is `ctx: {context}`")))
        }
        Some(FnArg::Receiver(receiver)) => {
            let message =
                format!("{a} is a free function: an activity takes the data of `self` as `State<..>`");
            Err(Error::new_spanned(receiver, message))
        }
        None => {
            let message = format!("{a} takes its context: write `{function}(ctx: {context}, ..)`");
            Err(Error::new_spanned(function, message))
        }
    }
}

/// The parameters behind the context: states, then inputs.
fn parameters(kind: Kind, item: &ItemFn) -> syn::Result<(Vec<&Type>, Vec<Input<'_>>)> {
    let (mut states, mut inputs) = (Vec::new(), Vec::new());
    let typed = item.sig.inputs.iter().skip(1).filter_map(|parameter| match parameter {
        FnArg::Typed(parameter) => Some(parameter),
        FnArg::Receiver(_) => None,
    });
    for parameter in typed {
        let ty = &*parameter.ty;
        if !is_named(ty, "State") {
            inputs.push(input(parameter, inputs.len())?);
            continue;
        }
        if kind == Kind::Orchestration {
            let message = "an orchestration is run again from its history, which does not hold state of the process: \
                           give `State` to an activity";
            return Err(Error::new_spanned(ty, message));
        }
        if !inputs.is_empty() {
            return Err(Error::new_spanned(ty, "`State` comes before the input: move it behind the context"));
        }
        states.push(ty);
    }
    Ok((states, inputs))
}

fn input(parameter: &PatType, number: usize) -> syn::Result<Input<'_>> {
    if let Type::Reference(reference) = &*parameter.ty {
        let message = "an input is stored, so it is owned: write `String` for `&str`, and `T` for `&T`";
        return Err(Error::new_spanned(reference, message));
    }
    if let Type::ImplTrait(ty) = &*parameter.ty {
        return Err(Error::new_spanned(ty, "an input is stored, so it has one type: name the type"));
    }
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
    Ok(Input { name, ty: &parameter.ty })
}

/// The result type. A type that is plainly no result gets an error here; the compiler checks all others.
fn output(kind: Kind, item: &ItemFn) -> syn::Result<&Type> {
    const PLAIN: &[&str] = &[
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
        "bool", "char", "String", "Vec", "Option", "HashMap", "BTreeMap",
    ];
    let a = kind.a();
    let ReturnType::Type(_, ret) = &item.sig.output else {
        let message = format!("{a} returns a `Result`: write `-> Result<(), String>`, for example");
        return Err(Error::new_spanned(&item.sig.ident, message));
    };
    let is_plain = matches!(**ret, Type::Tuple(_)) || PLAIN.iter().any(|plain| is_named(ret, plain));
    if is_plain {
        let shown = tidy(&quote!(#ret).to_string());
        return Err(Error::new_spanned(ret, format!("{a} returns a `Result`: write `Result<{shown}, E>`")));
    }
    Ok(ret)
}
