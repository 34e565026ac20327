//! `outlast serve`

use crate::failure::Failure;
use crate::output::plain;
use crate::store::{self, Intent, StoreArgs};
use clap::Args as ClapArgs;
use outlast::runtime::observability::init_logging;
use outlast::runtime::{LogFormat, ObservabilityConfig, RuntimeOptions};
use outlast_server::{Options, Scope, Tls, Tokens};
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Serve the HTTP API and the dashboard of a store.
///
/// The server reads every answer from the store, and runs no orchestration. It changes nothing unless --operate is given. On the
/// loopback it needs no token: every user of this machine can then use it, with all scopes. Any other address needs a token file.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  outlast serve --store sqlite:shop.db
  outlast serve --store sqlite:shop.db --operate --token-file tokens
  OUTLAST_STORE=postgres://ada@db/shop outlast serve --listen 0.0.0.0:7411 --token-file tokens --allow-host ops.example.com

A token file has one token per line: NAME SCOPE,SCOPE TOKEN. The scopes are read, payloads, operate and admin. A file that does not
exist is created with one token of the scope admin.

Over SSH: ssh -L 7411:127.0.0.1:7411 HOST, and open http://127.0.0.1:7411 here.")]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The address to listen on; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7411")]
    listen: SocketAddr,
    /// Allow requests that change instances
    #[arg(long)]
    operate: bool,
    /// The file with the tokens; created if it is missing
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// A host name under which clients reach the server; may be given more than once
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// The path under which a proxy passes requests on, such as /outlast
    #[arg(long, value_name = "PATH", default_value = "")]
    base_path: String,
    /// The chain of certificates of the server, in PEM form; then the server speaks TLS
    #[arg(long, value_name = "PATH", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM form
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Ask the server that listens on the address whether it and its store are ready, and exit with status 0 if they are. For the
    /// health checks of containers, on the same machine and without TLS
    #[arg(long, conflicts_with_all = ["operate", "token_file", "tls_cert"])]
    probe: bool,
    /// The most deliveries of a message, as the runtimes have it
    #[arg(long, value_name = "N", default_value_t = RuntimeOptions::default().max_attempts)]
    max_attempts: u32,
}

pub(crate) async fn run(args: ServeArgs) -> Result<(), Failure> {
    if args.probe {
        return probe(args.listen, &args.base_path).await;
    }
    if args.token_file.is_none() && !args.listen.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "{} can be reached from other machines: give --token-file <PATH>, or listen on 127.0.0.1",
            args.listen
        )));
    }
    let place = args.store.place()?;
    let intent = if args.operate { Intent::Write } else { Intent::Read };
    let client = store::open(&place, intent).await?;
    let (tokens, login) = match &args.token_file {
        Some(path) => tokens(path).map(|(tokens, login)| (Some(tokens), login))?,
        None => (None, None),
    };
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            let tls = Tls::from_pem_files(certificate, key);
            Some(tls.map_err(|error| Failure::new(error.to_string()))?)
        }
        _ => None,
    };
    // The handlers are installed before the address is printed: a signal after that ends the server in order.
    let stop = Stop::install();
    let listener = TcpListener::bind(args.listen).await.map_err(|error| busy(args.listen, &error))?;
    let address = listener.local_addr()?;
    let mut options = Options::default();
    options.store = place.to_string();
    options.operate = args.operate;
    options.tokens = tokens;
    options.tls = tls;
    options.hosts = args.allow_host;
    // Clients of an address that is given may name it.
    options.hosts.extend((!address.ip().is_unspecified()).then(|| host(address)));
    options.base_path = args.base_path;
    options.max_attempts = args.max_attempts;
    announce(&options, address, login.as_deref())?;
    let log_format = if io::stdout().is_terminal() { LogFormat::Compact } else { LogFormat::Json };
    init_logging(&ObservabilityConfig { log_format, ..ObservabilityConfig::default() })
        .map_err(Failure::new)?;
    outlast_server::serve(listener, client, options, stop.requested()).await?;
    Ok(())
}

/// The tokens of the file. A file that does not exist is created; then its token is returned too.
fn tokens(path: &Path) -> Result<(Tokens, Option<String>), Failure> {
    let failed = |error: outlast_server::TokenError| Failure::new(error.to_string());
    let login = match path.exists() {
        true => None,
        false => Some(Tokens::create(path, "admin", Scope::Admin).map_err(failed)?),
    };
    Ok((Tokens::read(path).map_err(failed)?, login))
}

fn announce(options: &Options, address: SocketAddr, login: Option<&str>) -> io::Result<()> {
    let path = options.base_path.trim_matches('/');
    let base = if path.is_empty() { String::new() } else { format!("/{path}") };
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let mut out = io::stdout().lock();
    writeln!(out, "Serving {} at {scheme}://{}{base}/", plain(&options.store), shown(address))?;
    let mode = if options.operate {
        "Requests may change instances."
    } else {
        "Read-only: --operate allows changes."
    };
    writeln!(out, "{mode}")?;
    match (&options.tokens, login) {
        (None, _) => writeln!(
            out,
            "No token is needed: every user of this machine can use it. --token-file requires tokens."
        )?,
        (Some(_), None) => writeln!(out, "Requests need a token of the token file.")?,
        // Browsers do not send the part after `#`.
        (Some(_), Some(token)) => {
            writeln!(out, "Log in once with {scheme}://{}{base}/login#token={token}", shown(address))?;
        }
    }
    out.flush()
}

/// The address for a browser of this machine.
fn shown(address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("127.0.0.1:{}", address.port()),
        false => address.to_string(),
    }
}

/// The address as the header `Host` names it.
fn host(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

fn busy(address: SocketAddr, error: &io::Error) -> Failure {
    Failure::new(match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("{address} is in use: another server runs there; --listen 127.0.0.1:0 takes a free port")
        }
        _ => format!("cannot listen on {address}: {error}"),
    })
}

/// The time in which a probe must be answered.
const PROBE_WITHIN: Duration = Duration::from_secs(5);

/// Asks a running server whether it is ready.
async fn probe(listen: SocketAddr, base_path: &str) -> Result<(), Failure> {
    let address = shown(listen);
    let ask = async {
        let mut stream = TcpStream::connect(&address).await?;
        let path = base_path.trim_matches('/');
        let base = if path.is_empty() { String::new() } else { format!("/{path}") };
        let request = format!("GET {base}/readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(65_536).read_to_end(&mut answer).await?;
        io::Result::Ok(answer)
    };
    let answer = match timeout(PROBE_WITHIN, ask).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(Failure::new(format!("{address} does not answer: {error}"))),
        Err(_) => return Err(Failure::new(format!("{address} does not answer within {PROBE_WITHIN:?}"))),
    };
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split_whitespace().nth(1).unwrap_or("no status");
    match status {
        "200" => Ok(writeln!(io::stdout(), "ready")?),
        status => Err(Failure::new(format!("{address} is not ready: it answers with {}", plain(status)))),
    }
}

/// The signals that stop the server.
struct Stop {
    #[cfg(unix)]
    signals: io::Result<[tokio::signal::unix::Signal; 2]>,
}

impl Stop {
    fn install() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let terminate = signal(SignalKind::terminate());
            let interrupt = signal(SignalKind::interrupt());
            Self { signals: terminate.and_then(|terminate| Ok([terminate, interrupt?])) }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Resolves at Ctrl-C or SIGTERM.
    async fn requested(self) {
        #[cfg(unix)]
        if let Ok([mut terminate, mut interrupt]) = self.signals {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            return;
        }
        // Without a handler the process ends at the signal itself.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
