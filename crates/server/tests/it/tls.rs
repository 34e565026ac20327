//! TLS: the right authority, another one, plain HTTP, and files that cannot be used.
//!
//! The files in `certificates` are valid until 2126: `server.crt` for `localhost` and 127.0.0.1, signed by `ca.crt`; `other-ca.crt`, which
//! signed nothing; `other.key`, which belongs to no certificate.

use crate::kit::{PATIENCE, Server, token, with_tokens};
use outlast::ClientError;
use outlast_client_http::HttpClient;
use outlast_server::{Options, Scope, Tls};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/certificates").join(name)
}

fn options() -> Options {
    let mut options = with_tokens(Options::default());
    options.tls = Some(Tls::from_pem_files(&file("server.crt"), &file("server.key")).unwrap());
    options
}

/// A client that trusts one authority.
fn trusting(authority: &str) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file(authority)).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    TlsConnector::from(Arc::new(config.with_no_client_auth()))
}

async fn ask(
    server: &Server,
    client: &TlsConnector,
    name: &'static str,
    request: &str,
) -> io::Result<String> {
    let stream = TcpStream::connect(&server.address).await?;
    let stream = client.connect(ServerName::try_from(name).unwrap(), stream).await?;
    exchange(stream, request, &server.address).await
}

async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &str,
    host: &str,
) -> io::Result<String> {
    stream.write_all(format!("{request}host: {host}\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut text = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut text))
        .await
        .expect("an answer, or the end of the connection");
    match read {
        // A server that ends a connection need not say so.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(String::from_utf8_lossy(&text).into_owned()),
    }
}

#[tokio::test]
async fn client_with_the_right_authority_is_served_and_others_refuse_the_server() {
    let server = Server::start(options()).await;
    let get = "GET /healthz HTTP/1.1\r\n";
    let right = trusting("ca.crt");
    for name in ["localhost", "127.0.0.1"] {
        let answer = ask(&server, &right, name, get).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let error = ask(&server, &trusting("other-ca.crt"), "localhost", get).await.unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    let error = ask(&server, &right, "ops.example.com", get).await.unwrap_err();
    assert!(error.to_string().contains("not valid for name"), "{error}");
    let stream = TcpStream::connect(&server.address).await.unwrap();
    let plain = exchange(stream, get, &server.address).await;
    assert!(
        !plain.as_ref().is_ok_and(|text| text.contains("HTTP/1.1")),
        "plain HTTP gets no answer: {plain:?}"
    );
    let answer = ask(&server, &right, "localhost", get).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "the server goes on: {answer}");
    server.stop().await;
}

#[tokio::test]
async fn http_client_trusts_the_authority_that_it_is_given_and_no_other() {
    let server = Server::start(options()).await;
    let client = |host: &str, authority: &str| {
        let port = server.address.rsplit(':').next().unwrap();
        let client = HttpClient::new(&format!("https://{host}:{port}")).unwrap();
        let pem = std::fs::read(file(authority)).unwrap();
        client.with_root_certificates(&pem).unwrap().with_token(token(Scope::Read))
    };
    for host in ["localhost", "127.0.0.1"] {
        let trusting = client(host, "ca.crt");
        assert_eq!(trusting.list_all_instances().await.unwrap(), [""; 0]);
        // The client keeps both authorities.
        let pem = std::fs::read(file("other-ca.crt")).unwrap();
        let both = trusting.with_root_certificates(&pem).unwrap();
        assert_eq!(both.list_all_instances().await.unwrap(), [""; 0]);
    }
    let system = HttpClient::new(&format!("https://{}", server.address)).unwrap();
    for client in [client("localhost", "other-ca.crt"), system] {
        let error = client.list_all_instances().await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("the certificate of the server is refused"), "{text}");
        let ClientError::Provider(error) = error else { panic!("{text}") };
        assert!(!error.is_retryable(), "a repetition is refused too: {text}");
    }
    let plain = HttpClient::new(&format!("http://{}", server.address)).unwrap();
    assert!(plain.list_all_instances().await.is_err(), "the server speaks TLS only");
    server.stop().await;
}

#[tokio::test]
async fn cookie_of_a_login_over_tls_is_sent_over_tls_only() {
    let server = Server::start(options()).await;
    let body = format!("{{\"token\":\"{}\"}}", token(Scope::Read));
    let stream = TcpStream::connect(&server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = trusting("ca.crt").connect(name, stream).await.unwrap();
    let head = format!(
        "POST /login HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text).await;
    assert!(text.starts_with("HTTP/1.1 204") && text.contains("; Secure"), "{text}");
    server.stop().await;
}

#[test]
fn files_that_cannot_be_used_are_named_without_their_content() {
    let failure = |certificate: &str, key: &str| {
        Tls::from_pem_files(&file(certificate), &file(key)).unwrap_err().to_string()
    };
    for (certificate, key, parts) in [
        ("missing.crt", "server.key", ["cannot read", "missing.crt"]),
        ("server.crt", "missing.key", ["cannot read", "missing.key"]),
        ("server.key", "server.key", ["server.key", "holds no certificate"]),
        ("server.crt", "server.crt", ["server.crt", "holds no private key"]),
        ("server.crt", "other.key", ["other.key", "cannot be used together"]),
    ] {
        let message = failure(certificate, key);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        assert!(!message.contains("BEGIN"), "{message}");
    }
}
