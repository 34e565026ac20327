//! The parts of a checked function that an expansion needs.

use crate::checks::{self, tidy};
use crate::options::{Kind, Options, input_type};
use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Ident, ItemFn, Type, Visibility, parse_quote};

/// The parts of a checked function. In the place of a refused type is the type that the error proposes.
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
    pub(crate) inputs: Vec<Input>,
    output: Type,
    is_refused: bool,
    /// The `cfg` attributes, which every generated item repeats.
    pub(crate) cfgs: Vec<&'a Attribute>,
    docs: Vec<&'a Attribute>,
}

/// A parameter that travels.
pub(crate) struct Input {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
}

impl<'a> Signature<'a> {
    /// `None` for a method: there is no place for a type beside it.
    pub(crate) fn check(
        kind: Kind,
        options: &Options,
        item: &'a ItemFn,
        refusals: &mut Vec<Error>,
    ) -> Option<Self> {
        let sig = &item.sig;
        let function = &sig.ident;
        if let Some(FnArg::Receiver(receiver)) = sig.inputs.first() {
            let message = format!(
                "{} is a free function: an activity takes the data of `self` as `State<..>`",
                kind.a()
            );
            refusals.push(Error::new_spanned(receiver, message));
            return None;
        }
        let before = refusals.len();
        if sig.asyncness.is_none() {
            let message = format!("{} is an `async fn`: write `async fn {function}`", kind.a());
            refusals.push(Error::new_spanned(sig.fn_token, message));
        }
        let contexts = checks::context(kind, item, refusals);
        let (mut states, mut inputs) = checks::parameters(kind, item, contexts, refusals);
        let mut output = checks::output(kind, item, refusals);
        if !sig.generics.params.is_empty() {
            let message = format!(
                "{} has one name in histories, so it is not generic: write one function per type",
                kind.a()
            );
            refusals.truncate(before);
            refusals.push(Error::new_spanned(&sig.generics, message));
            // The type beside the function cannot name the parameters.
            states.clear();
            for input in &mut inputs {
                input.ty = parse_quote!(impl ::core::marker::Sized);
            }
            output = checks::result(&parse_quote!(()));
        }
        let (handle, stored) = options.names(function);
        let attributes =
            |name: &'static str| item.attrs.iter().filter(move |attribute| attribute.path().is_ident(name));
        Some(Self {
            krate: options.krate(),
            function,
            handle,
            stored,
            vis: &item.vis,
            states,
            inputs,
            output,
            is_refused: refusals.len() > before,
            cfgs: attributes("cfg").collect(),
            docs: attributes("doc").collect(),
        })
    }

    /// The inputs that the expansion can put into a value: none, if one of them has a type without a name.
    fn travelling(&self) -> &[Input] {
        match self.inputs.iter().any(|input| matches!(input.ty, Type::ImplTrait(_))) {
            true => &[],
            false => &self.inputs,
        }
    }

    fn names(&self) -> Vec<&Ident> {
        self.travelling().iter().map(|input| &input.name).collect()
    }

    /// The body of `run`, which calls the function; of a refused function it only has the right type.
    pub(crate) fn body(&self, call: TokenStream) -> TokenStream {
        match self.is_refused {
            true => quote!(::core::future::pending()),
            false => call,
        }
    }

    /// The parameters of the verbs: `order: Order`.
    pub(crate) fn parameters(&self) -> TokenStream {
        let parameters = self.inputs.iter().map(|Input { name, ty }| quote!(#name: #ty));
        quote!(#(#parameters),*)
    }

    /// The type that travels: nothing, the input, or a struct with the names of the inputs.
    pub(crate) fn input_type(&self) -> TokenStream {
        match self.travelling() {
            [] => quote!(()),
            [input] => {
                let ty = &input.ty;
                quote_spanned!(ty.span()=> #ty)
            }
            _ => input_type(&self.handle).to_token_stream(),
        }
    }

    /// The definition of the struct for several inputs.
    pub(crate) fn input_struct(&self) -> TokenStream {
        if self.travelling().len() < 2 {
            return quote!();
        }
        let Self { krate, vis, cfgs, .. } = self;
        let wire = input_type(&self.handle);
        let fields = self.inputs.iter().map(|Input { name, ty }| quote!(#vis #name: #ty));
        let serde = format!("{krate}::author::serde").replace(' ', "");
        let traits = self.input_traits();
        quote! {
            #(#cfgs)*
            #[doc(hidden)]
            #[allow(missing_docs, non_camel_case_types, private_interfaces, unreachable_pub)]
            #[derive(#krate::author::serde::Serialize, #krate::author::serde::Deserialize)]
            #[serde(crate = #serde)]
            #vis struct #wire { #(#fields),* }
            #traits
        }
    }

    /// The traits that the struct for several inputs has if its fields have them. A derive would demand them of the user's types. A
    /// bound of a type without parameters may be false only if it names a lifetime, hence `for<'a> &'a T`.
    fn input_traits(&self) -> TokenStream {
        let Self { cfgs, function, .. } = self;
        let (wire, names, shown) = (input_type(&self.handle), self.names(), function.unraw().to_string());
        let types: Vec<&Type> = self.inputs.iter().map(|input| &input.ty).collect();
        let keys = names.iter().map(|name| name.unraw().to_string());
        quote! {
            #(#cfgs)*
            #[automatically_derived]
            #[allow(private_bounds, clippy::op_ref)]
            impl ::core::fmt::Debug for #wire
            where
                #(for<'input> &'input #types: ::core::fmt::Debug,)*
            {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.debug_struct(#shown) #(.field(#keys, &&self.#names))* .finish()
                }
            }
            #(#cfgs)*
            #[automatically_derived]
            #[allow(private_bounds, clippy::op_ref)]
            impl ::core::cmp::PartialEq for #wire
            where
                #(for<'input> &'input #types: ::core::cmp::PartialEq<&'input #types>,)*
            {
                fn eq(&self, other: &Self) -> bool {
                    #(&self.#names == &other.#names)&&*
                }
            }
        }
    }

    /// The verb `input`, which makes the value of several inputs: the type of that value has no name for users.
    pub(crate) fn input_verb(&self) -> TokenStream {
        if self.travelling().len() < 2 {
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
        match names.len() {
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
        let names = self.names();
        let bound: Vec<Ident> = (0..names.len()).map(|number| format_ident!("input{number}")).collect();
        let unpack = match names.len() {
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
        let (krate, ret) = (&self.krate, &self.output);
        let ok = quote_spanned!(ret.span()=> <#ret as #krate::author::Outcome>::Ok);
        let err = quote_spanned!(ret.span()=> <#ret as #krate::author::Outcome>::Err);
        (ok, err)
    }

    /// The type that `run` returns. Its tokens are at the result type of the function, where the compiler then reports its errors.
    pub(crate) fn future(&self) -> TokenStream {
        quote_spanned! {self.output.span()=>
            impl ::core::future::Future<Output = ::core::result::Result<Self::Output, Self::Error>>
                + ::core::marker::Send
        }
    }

    /// The type beside the function, with the documentation of the function and its signature.
    pub(crate) fn handle_type(&self) -> TokenStream {
        let Self { handle, vis, cfgs, docs, function, .. } = self;
        let (parameters, ret) = (self.parameters(), &self.output);
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
