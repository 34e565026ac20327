//! The meaning of connection strings to this store, compared with their meaning to libpq.

use super::*;
use Libpq::{Asks, Refuses};
use Ours::{Is, Refused};
use tokio_postgres::config::Host;

/// The reading of a text by libpq: the chapters "Connection Strings", "Parameter Key Words" and "SSL Support" of its
/// documentation.
#[derive(Debug, Clone, Copy)]
enum Libpq {
    /// A mode of libpq, by its rank in [`rank`].
    Asks(&'static str),
    Refuses,
}

/// The reading of a text by this store.
#[derive(Debug, Clone, Copy)]
enum Ours {
    Is(Mode),
    /// The refusal holds this word.
    Refused(&'static str),
}

/// The rank of a mode by its protection; libpq has one mode more than this store.
fn rank(mode: &str) -> usize {
    let modes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];
    modes.iter().position(|known| *known == mode).expect("a mode of libpq")
}

fn rank_of(mode: Mode) -> usize {
    rank(match mode {
        Mode::Disable => "disable",
        Mode::Prefer => "prefer",
        Mode::Require => "require",
        Mode::VerifyCa => "verify-ca",
        Mode::VerifyFull => "verify-full",
    })
}

/// Each password in the table holds this.
const SECRET: &str = "s3cret";

const TABLE: &[(&str, Libpq, Ours)] = &[
    // Both forms.
    ("postgres://u:s3cret@h/d", Asks("prefer"), Is(Mode::Prefer)),
    ("postgresql://u:s3cret@h/d?sslmode=disable", Asks("disable"), Is(Mode::Disable)),
    ("postgres://h/d?sslmode=allow", Asks("allow"), Is(Mode::Prefer)),
    ("postgres://h/d?sslmode=prefer", Asks("prefer"), Is(Mode::Prefer)),
    ("postgres://h/d?sslmode=require", Asks("require"), Is(Mode::Require)),
    ("postgres://h?sslmode=require", Asks("require"), Is(Mode::Require)),
    (
        "postgres://h/d?application_name=x&sslmode=verify-full&connect_timeout=3",
        Asks("verify-full"),
        Is(Mode::VerifyFull),
    ),
    ("postgres://h/d?sslmode=verify-ca&sslrootcert=/a.pem", Asks("verify-ca"), Is(Mode::VerifyCa)),
    ("host=h sslmode=require", Asks("require"), Is(Mode::Require)),
    ("sslmode=verify-full host=h user=u password=s3cret", Asks("verify-full"), Is(Mode::VerifyFull)),
    // Spaces, quotes and escapes in key=value pairs.
    ("host=h sslmode = require", Asks("require"), Is(Mode::Require)),
    ("  host = h\tsslmode\n=\r\n'require'  ", Asks("require"), Is(Mode::Require)),
    ("host=h sslmode='require'", Asks("require"), Is(Mode::Require)),
    ("host=h sslmode=req\\uire", Asks("require"), Is(Mode::Require)),
    ("host=h sslmode='verify\\-full'", Asks("verify-full"), Is(Mode::VerifyFull)),
    ("password='s3cret'sslmode=require host=h", Asks("require"), Is(Mode::Require)),
    ("password='s3cret sslmode=disable' sslmode=require host=h", Asks("require"), Is(Mode::Require)),
    ("password='s3cret\\' sslmode=disable' sslmode=require host=h", Asks("require"), Is(Mode::Require)),
    ("password=s3cret\\ sslmode=disable sslmode=require host=h", Asks("require"), Is(Mode::Require)),
    ("password=s3cret://?sslmode=disable sslmode=require host=h", Asks("require"), Is(Mode::Require)),
    ("password='' sslmode=require host=h", Asks("require"), Is(Mode::Require)),
    ("password= sslmode=require host=h", Asks("prefer"), Refused("password")),
    ("password= 's3cret' host=h sslmode=require", Asks("require"), Is(Mode::Require)),
    ("host=h password='s3cret sslmode=require", Refuses, Refused("password")),
    ("host=h password=s3cret\\", Asks("prefer"), Is(Mode::Prefer)),
    ("host=h password='s3cret\\' sslmode=require", Refuses, Refused("password")),
    // Percent escapes and letters with a meaning in URLs.
    ("postgres://u:s3cret@h/d?sslmode=%72equire", Asks("require"), Is(Mode::Require)),
    ("postgres://u:s3cret@h/d?ssl%6dode=verify-full", Asks("verify-full"), Is(Mode::VerifyFull)),
    ("postgres://u:s3cret@h/d?sslmode%3Drequire", Refuses, Refused("parameter number 1")),
    ("postgres://u:s3cret@h/d?sslmode=require%00", Refuses, Refused("sslmode")),
    ("postgres://u:s3cret@h/d?sslmode=require%0", Refuses, Refused("sslmode")),
    ("postgres://u:s3cret%zz@h/d?sslmode=require", Refuses, Refused("password")),
    ("postgres://u:s3cret?x@h/d?sslmode=require", Asks("require"), Is(Mode::Require)),
    ("postgres://u:s3cret?a=b&c=d@h/d?sslmode=verify-full", Asks("verify-full"), Is(Mode::VerifyFull)),
    ("postgres://u:s3cret%40%2F%3F@h/d?sslmode=require", Asks("require"), Is(Mode::Require)),
    ("postgres://u:s3cret@s3cret@h/d?sslmode=require", Asks("require"), Refused("%40")),
    ("postgres://u:s3cret/s3cret@h/d?sslmode=require", Refuses, Refused("%40")),
    ("postgres://u:1/s3cret@h/d?sslmode=require", Asks("require"), Refused("%40")),
    ("postgres://u:s3cret/d?sslmode=require", Refuses, Refused("port")),
    ("postgres://h?sslmode=require&application_name=a@b", Asks("prefer"), Refused("sslmode")),
    ("postgres://h:5432?sslmode=verify-full&user=a@b/d", Asks("prefer"), Refused("sslmode")),
    ("postgres://s3cret?x@h/d?sslmode=require", Asks("require"), Refused("user")),
    ("postgres://h/d?sslmode=require#disable", Refuses, Refused("sslmode")),
    ("postgres://h/d#?sslmode=require", Asks("require"), Is(Mode::Require)),
    ("postgres://h/d?application_name=a+b&sslmode=require", Asks("require"), Is(Mode::Require)),
    ("postgres://h/d?sslmode=require&", Asks("require"), Is(Mode::Require)),
    ("postgres://h/d?&sslmode=require", Refuses, Refused("parameter number 1")),
    ("postgres://h/d?application_name=a;sslmode=require", Refuses, Refused("application_name")),
    ("postgres://h/d?sslmode=require=", Refuses, Refused("sslmode")),
    ("postgres://h/d?sslmode", Refuses, Refused("parameter number 1")),
    ("postgres://h/d?sslmode= require", Refuses, Refused("space")),
    ("postgres://h/d?sslmode=require\n", Refuses, Is(Mode::Require)),
    (" postgres://h/d?sslmode=require", Refuses, Is(Mode::Require)),
    // Empty values, letter case, and words that are not modes.
    ("postgres://h/d?sslmode=", Refuses, Refused("sslmode")),
    ("host=h sslmode=''", Refuses, Refused("sslmode")),
    ("host=h sslmode=", Refuses, Refused("sslmode")),
    ("sslmode= host=h", Refuses, Refused("sslmode")),
    ("postgres://h/d?sslmode=REQUIRE", Refuses, Refused("sslmode")),
    ("postgres://h/d?SSLMODE=require", Refuses, Refused("sslmode")),
    ("host=h SslMode=verify-full", Refuses, Refused("sslmode")),
    ("POSTGRES://h/d?sslmode=require", Refuses, Refused("parameter number 1")),
    ("postgres://h/d?sslmode=s3cret", Refuses, Refused("sslmode")),
    ("host=h sslmode=verify_full", Refuses, Refused("sslmode")),
    ("host=h sslmode=require,verify-full", Refuses, Refused("sslmode")),
    // Repeated parameters. libpq takes the last one.
    ("postgres://h/d?sslmode=require&sslmode=require", Asks("require"), Is(Mode::Require)),
    ("postgres://h/d?sslmode=require&sslmode=disable", Asks("disable"), Refused("sslmode")),
    ("host=h sslmode=verify-full sslmode=prefer", Asks("prefer"), Refused("sslmode")),
    ("host=h sslmode=prefer sslmode=verify-full", Asks("verify-full"), Refused("sslmode")),
    ("host=a host=h sslmode=require", Asks("require"), Is(Mode::Require)),
    ("postgres://a/d?host=h&sslmode=require", Asks("require"), Is(Mode::Require)),
    // Aliases.
    ("postgres://h/d?ssl=true", Asks("require"), Is(Mode::Require)),
    ("postgres://h/d?ssl=true&sslmode=disable", Asks("disable"), Refused("sslmode")),
    ("postgres://h/d?ssl=TRUE", Refuses, Refused("ssl")),
    ("postgres://h/d?ssl=false", Refuses, Refused("ssl")),
    ("host=h ssl=true", Refuses, Refused("ssl")),
    ("host=h requiressl=1", Asks("require"), Is(Mode::Require)),
    ("host=h requiressl=0", Asks("prefer"), Is(Mode::Prefer)),
    ("host=h requiressl=yes", Asks("prefer"), Refused("requiressl")),
    ("host=h requiressl=1 sslmode=prefer", Asks("prefer"), Refused("sslmode")),
    // Authorities.
    ("host=h sslrootcert=system", Asks("verify-full"), Is(Mode::VerifyFull)),
    ("postgres://h/d?sslrootcert=system&sslmode=verify-full", Asks("verify-full"), Is(Mode::VerifyFull)),
    ("postgres://h/d?sslrootcert=system&sslmode=require", Refuses, Refused("sslmode=verify-full")),
    ("postgres://h/d?sslrootcert=system&sslmode=disable", Refuses, Refused("sslmode=verify-full")),
    ("postgres://h/d?sslmode=require&sslrootcert=/a.pem", Asks("verify-ca"), Is(Mode::VerifyCa)),
    ("postgres://h/d?sslmode=prefer&sslrootcert=/a.pem", Asks("prefer"), Refused("sslrootcert")),
    ("host=h sslrootcert=/a.pem", Asks("prefer"), Refused("sslrootcert")),
    ("host=h sslmode=disable sslrootcert=/a.pem", Asks("disable"), Is(Mode::Disable)),
    ("host=h sslmode=require sslrootcert=''", Asks("require"), Is(Mode::Require)),
    ("host=h sslmode=verify-ca", Asks("verify-ca"), Is(Mode::VerifyFull)),
    (
        "host=h sslmode=require sslrootcert=/a.pem sslrootcert=/b.pem",
        Asks("verify-ca"),
        Refused("sslrootcert"),
    ),
    ("hostaddr=127.0.0.1 sslmode=verify-full", Refuses, Refused("host")),
    ("hostaddr=127.0.0.1 sslmode=require", Asks("require"), Is(Mode::Require)),
    ("host=h sslnegotiation=direct sslmode=prefer", Refuses, Refused("sslnegotiation")),
    ("host=h sslnegotiation=direct sslmode=require", Asks("require"), Is(Mode::Require)),
    ("host=h sslcrl=/a.crl sslmode=verify-full", Asks("verify-full"), Refused("sslcrl")),
    ("host=h ssl_min_protocol_version=TLSv1.3", Asks("prefer"), Refused("ssl_min_protocol_version")),
    ("host=h require_auth=scram-sha-256", Asks("prefer"), Refused("require_auth")),
    ("host=h gssencmode=require", Asks("prefer"), Refused("gssencmode")),
    ("host=h gssencmode=disable sslmode=require", Asks("require"), Is(Mode::Require)),
    ("host=h service=production", Asks("prefer"), Refused("service")),
    // Servers. libpq takes no notice of sslmode on a Unix socket; this store then fails to connect.
    ("postgres://a:1,b:2/d?sslmode=require", Asks("require"), Is(Mode::Require)),
    ("host=a,b port=1,2 sslmode=verify-full", Asks("verify-full"), Is(Mode::VerifyFull)),
    ("postgres://[::1]:5433/d?sslmode=require", Asks("require"), Is(Mode::Require)),
    ("postgres://[::1/d?sslmode=require", Refuses, Refused("host")),
    ("postgres://[::1]5433/d?sslmode=require", Refuses, Refused("host")),
    ("postgres://%2Fvar%2Frun/d?sslmode=require", Asks("disable"), Is(Mode::Require)),
    ("postgres:///d?host=/var/run&sslmode=prefer", Asks("disable"), Is(Mode::Prefer)),
    ("host=/var/run dbname=d", Asks("disable"), Is(Mode::Prefer)),
    ("postgres://a:1,b:2,c:3/d?port=1,2&sslmode=require", Refuses, Refused("port")),
    ("postgres://a:70000/d", Refuses, Refused("port")),
    ("host=a,,b sslmode=require", Asks("require"), Refused("host")),
    ("postgres:///d?sslmode=require", Asks("disable"), Refused("host")),
    // Texts that are no connection strings.
    ("mysql://u:s3cret@h/d?sslmode=require", Refuses, Refused("parameter number 1")),
    ("u:s3cret@h/d", Refuses, Refused("postgres://")),
    ("host=h password=a s3cret=b sslmode=require", Refuses, Refused("parameter number 3")),
    ("host=h password=a s3cret", Refuses, Refused("parameter number 3")),
    ("postgres://h/d?password=a&s3cret=b&sslmode=require", Refuses, Refused("parameter number 2")),
    ("host=h password=s3cret port=none", Refuses, Refused("port")),
    ("postgres://u:s3cret@h/d?connect_timeout=s3cret", Refuses, Refused("connect_timeout")),
    ("postgres://u:s3cret@h/d?channel_binding=s3cret", Refuses, Refused("channel_binding")),
    ("dbname=postgres://h/d?sslmode=require host=h", Asks("prefer"), Refused("dbname")),
    ("host=h\0 sslmode=require", Asks("prefer"), Refused("NUL")),
    ("", Asks("disable"), Refused("host")),
];

#[test]
fn mode_is_that_of_the_text_and_never_weaker_than_in_libpq() {
    assert!(TABLE.len() >= 40);
    for (text, libpq, expected) in TABLE {
        let parsed = parse(text);
        match (&parsed, expected) {
            (Ok(target), Is(mode)) => {
                assert_eq!(target.mode, *mode, "{text}");
                let in_driver = match mode {
                    Mode::Disable => SslMode::Disable,
                    Mode::Prefer => SslMode::Prefer,
                    Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
                };
                assert_eq!(target.config.get_ssl_mode(), in_driver, "{text}");
                if let Asks(asked) = libpq {
                    assert!(rank_of(*mode) >= rank(asked), "{text}: libpq asks for {asked}");
                }
            }
            (Err(error), Refused(word)) => {
                let refusal = error.to_string();
                assert!(refusal.contains(word), "{text}: {refusal}");
                assert!(!refusal.contains(SECRET), "{text}: {refusal}");
            }
            (Ok(target), Refused(_)) => panic!("{text}: accepted as {:?}", target.mode),
            (Err(error), Is(_)) => panic!("{text}: {error}"),
        }
    }
}

/// Any password can stand before any mode, in both forms.
#[test]
fn password_does_not_change_the_mode() {
    let words = [
        "?",
        "&",
        "=",
        "@",
        "/",
        ":",
        "#",
        "%",
        " ",
        "'",
        "\\",
        "://",
        "sslmode=disable",
        "?sslmode=disable&",
        "é",
        ",",
    ];
    let modes = ["disable", "require", "verify-full"].into_iter().zip([
        Mode::Disable,
        Mode::Require,
        Mode::VerifyFull,
    ]);
    for (name, mode) in modes {
        for first in words {
            for second in words {
                let password = format!("{first}{SECRET}{second}");
                let escaped: String = password.bytes().map(|byte| format!("%{byte:02x}")).collect();
                let quoted = password.replace('\\', "\\\\").replace('\'', "\\'");
                for text in [
                    format!("postgres://u:{escaped}@h/d?sslmode={name}"),
                    format!("postgres://h/d?password={escaped}&sslmode={name}&user=u"),
                    format!("postgres://h/d?sslmode={name}&password={escaped}&user=u"),
                    format!("host=h password='{quoted}' sslmode={name} user=u"),
                    format!("sslmode={name} host=h user=u password='{quoted}'"),
                ] {
                    let target = parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                    assert_eq!(target.mode, mode, "{text}");
                    assert_eq!(target.config.get_password(), Some(password.as_bytes()), "{text}");
                    assert_eq!(target.config.get_hosts(), [Host::Tcp("h".to_string())], "{text}");
                }
                // Without escapes: refused, or with the mode that is asked for.
                let text = format!("postgres://u:{password}@h/d?sslmode={name}");
                match parse(&text) {
                    Ok(target) => assert_eq!(target.mode, mode, "{text}"),
                    Err(error) => assert!(!error.to_string().contains(SECRET), "{text}: {error}"),
                }
            }
        }
    }
}

#[test]
fn parameters_reach_the_driver() {
    let text = "postgres://me:p%40ss@a:1,[::1]/orders?application_name=x%20y&options=-ca%3Db&connect_timeout=3&\
                tcp_user_timeout=1500&keepalives=1&keepalives_idle=4&keepalives_interval=5&keepalives_count=6&\
                target_session_attrs=read-write&channel_binding=require&load_balance_hosts=random&sslnegotiation=direct&\
                sslmode=verify-ca&sslrootcert=%2Fa%20b.pem";
    let Target { config, mode, root_file } = parse(text).ok().unwrap();
    assert_eq!((mode, root_file.as_deref()), (Mode::VerifyCa, Some("/a b.pem")));
    assert_eq!((config.get_user(), config.get_password()), (Some("me"), Some("p@ss".as_bytes())));
    assert_eq!((config.get_dbname(), config.get_application_name()), (Some("orders"), Some("x y")));
    let hosts = [Host::Tcp("a".to_string()), Host::Tcp("::1".to_string())];
    assert_eq!((config.get_hosts(), config.get_ports()), (&hosts[..], &[1, 5432][..]));
    assert_eq!(config.get_options(), Some("-ca=b"));
    assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(3)));
    assert_eq!(
        config.get_tcp_user_timeout(),
        Some(&Duration::from_millis(1500)),
        "libpq counts milliseconds"
    );
    assert!(config.get_keepalives());
    assert_eq!(config.get_keepalives_idle(), Duration::from_secs(4));
    assert_eq!(config.get_keepalives_interval(), Some(Duration::from_secs(5)));
    assert_eq!(config.get_keepalives_retries(), Some(6));
    assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    assert_eq!(config.get_channel_binding(), ChannelBinding::Require);
    assert_eq!(config.get_load_balance_hosts(), LoadBalanceHosts::Random);
    assert_eq!(config.get_ssl_negotiation(), SslNegotiation::Direct);

    let config = parse("hostaddr=127.0.0.1,::1 port=7 keepalives=0 connect_timeout=0 user='' dbname=''")
        .ok()
        .unwrap()
        .config;
    assert_eq!(config.get_hosts(), [Host::Tcp("127.0.0.1".to_string()), Host::Tcp("::1".to_string())]);
    assert_eq!((config.get_hostaddrs().len(), config.get_ports()), (2, &[7][..]));
    assert_eq!((config.get_user(), config.get_dbname(), config.get_connect_timeout()), (None, None, None));
    assert!(!config.get_keepalives());
}

#[test]
fn several_hosts_require_a_writable_server_unless_the_url_sets_another_target() {
    use TargetSessionAttrs::{Any, ReadOnly, ReadWrite};
    for (text, expected) in [
        ("postgres://a,b/d", ReadWrite),
        ("host=a,b dbname=d", ReadWrite),
        ("hostaddr=127.0.0.1,127.0.0.2 dbname=d", ReadWrite),
        ("postgres://a,b/d?target_session_attrs=any", Any),
        ("postgres://a,b/d?target_session_attrs=read-only", ReadOnly),
        ("postgres://a/d", Any),
        ("postgres://a/d?target_session_attrs=read-write", ReadWrite),
    ] {
        assert_eq!(parse(text).ok().unwrap().config.get_target_session_attrs(), expected, "{text}");
    }
}

/// The address of a server may be shown, if the text was understood that far.
#[test]
fn refusal_shows_the_server_but_no_secret() {
    let refusal =
        parse("postgres://me:s3cret@db.example.com:5432/orders?sslmode=perhaps").err().unwrap().to_string();
    assert_eq!(
        refusal,
        "cannot use database URL 'postgres://...@db.example.com:5432/orders?sslmode=...': the value of its parameter \
         sslmode is unknown: use one of disable, allow, prefer, require, verify-ca, verify-full"
    );
    let refusal = parse("postgres://me:s3cret/orders").err().unwrap().to_string();
    assert!(
        refusal.starts_with("cannot use database URL 'postgres://...': its port is no number"),
        "{refusal}"
    );
}

#[cfg(unix)]
#[test]
fn sockets_reach_the_driver() {
    for text in
        ["postgres://%2Ftmp,h:1/d", "postgres:///d?host=/tmp,h&port=,1", "host=/tmp,h port=,1 dbname=d"]
    {
        let config = parse(text).ok().unwrap().config;
        assert_eq!(config.get_hosts(), [Host::Unix("/tmp".into()), Host::Tcp("h".to_string())], "{text}");
        assert_eq!((config.get_ports(), config.get_dbname()), (&[5432, 1][..], Some("d")), "{text}");
    }
}
