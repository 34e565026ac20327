//! `outlast token`: the token file of `outlast serve`.

use crate::args::Format;
use crate::failure::Failure;
use crate::output::{plain, print, print_list, table};
use clap::{Args as ClapArgs, Subcommand};
use outlast_server::{Scope, TokenError, Tokens};
use serde::Serialize;
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

const EXAMPLES: &str = "Examples:
  outlast token create grafana --scope read --file tokens
  outlast token create ada --scope operate,payloads --file tokens
  outlast serve --token-file tokens --operate --store shop.db

The scope read shows names, states, times and sizes; payloads shows inputs, outputs, errors and values; operate starts, signals, cancels,
pauses and resumes; admin also deletes and prunes, and includes all others. Changes also need `outlast serve --operate`.";

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Add a token to a token file, and print it
    ///
    /// The file is created if it is missing, readable by you alone. The token is printed once. A server reads the file when it starts.
    #[command(after_help = EXAMPLES)]
    Create(CreateArgs),
    /// List the names and scopes of a token file; tokens are not shown
    List(ListArgs),
}

#[derive(Debug, ClapArgs)]
struct CreateArgs {
    /// The name of the token, which is stored in the audit
    name: String,
    /// The token file
    #[arg(long, value_name = "PATH")]
    file: PathBuf,
    /// The scopes: read, payloads, operate, admin
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', required = true, value_parser = scope)]
    scope: Vec<Scope>,
    /// Output format: a table, one JSON document, or one JSON object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

#[derive(Debug, ClapArgs)]
struct ListArgs {
    /// The token file
    #[arg(long, value_name = "PATH")]
    file: PathBuf,
    /// Output format: a table, one JSON document, or one JSON object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

fn scope(text: &str) -> Result<Scope, String> {
    Scope::from_text(text).ok_or_else(|| "the scopes are read, payloads, operate and admin".to_string())
}

pub(crate) fn run(args: TokenArgs) -> Result<(), Failure> {
    let failed = |error: TokenError| Failure::new(error.to_string());
    match args.command {
        TokenCommand::Create(args) => {
            let token = Tokens::add(&args.file, &args.name, &args.scope).map_err(failed)?;
            let created = Created { name: args.name, scopes: names(&args.scope), token };
            // Only the token: `TOKEN=$(outlast token create ..)` works.
            print(args.output, &created, |created| format!("{}\n", created.token))
        }
        TokenCommand::List(args) => {
            let tokens = Tokens::read(&args.file).map_err(failed)?;
            let tokens = tokens.named().map(|(name, scopes)| {
                let scopes: Vec<Scope> =
                    Scope::ALL.into_iter().filter(|scope| scopes.allow(*scope)).collect();
                Listed { name: name.to_string(), scopes: names(&scopes) }
            });
            let listed = All { tokens: tokens.collect() };
            print_list(args.output, &listed, &listed.tokens, None, All::text)
        }
    }
}

fn names(scopes: &[Scope]) -> Vec<&'static str> {
    scopes.iter().map(|scope| scope.as_str()).collect()
}

#[derive(Serialize)]
struct Created {
    name: String,
    scopes: Vec<&'static str>,
    token: String,
}

#[derive(Serialize)]
struct All {
    tokens: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    name: String,
    /// Included scopes too.
    scopes: Vec<&'static str>,
}

impl All {
    fn text(&self) -> String {
        let row = |token: &Listed| vec![plain(&token.name), token.scopes.join(",")];
        table(&["NAME", "SCOPES"], &self.tokens.iter().map(row).collect::<Vec<_>>())
    }
}
