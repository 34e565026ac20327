//! Creates and starts a PostgreSQL server, and removes the server when the value is dropped or the process ends.

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::keeper::Keeper;
use super::pooler::Pooler;
use super::server_user::ServerUser;
use super::{certificates, programs};
use crate::process;

/// The environment variables that describe the server to a command, with their meaning.
pub const VARIABLES: &[(&str, &str)] = &[
    (URL, "the server, for a superuser: postgres://.."),
    (CA, "the authority of its certificate, as a PEM file"),
    (OTHER_CA, "an authority that did not sign it"),
    (PROGRAMS, "the folder of the server's programs, for example pg_ctl"),
    (DATA, "the folder of its data; the owner of the folder runs the server"),
    (POOLED, "what a PgBouncer in between does with prepared statements: `keeps` or `forgets`"),
];

const URL: &str = "OUTLAST_TEST_POSTGRES_URL";
const CA: &str = "OUTLAST_TEST_POSTGRES_CA";
const OTHER_CA: &str = "OUTLAST_TEST_POSTGRES_OTHER_CA";
const PROGRAMS: &str = "OUTLAST_TEST_POSTGRES_BIN";
const DATA: &str = "OUTLAST_TEST_POSTGRES_DATA";
const POOLED: &str = "OUTLAST_TEST_POSTGRES_POOLED";

pub(super) const USER: &str = "postgres";
pub(super) const HOST: &str = "127.0.0.1";

/// Another process can take a free port before the server does: then the next port is tried.
const TRIES: usize = 5;

/// Settings of the server.
#[derive(Clone)]
pub struct Options {
    /// The server has a certificate and accepts TLS.
    pub tls: bool,
    /// A PgBouncer runs in front of the server, and the URL is that of the PgBouncer.
    pub pooled: bool,
    /// The data goes into the first of these folders that the server's user can reach.
    pub within: Vec<PathBuf>,
    /// Further lines of `postgresql.conf`, such as `("fsync", "off")`. They win over the settings of every private server.
    pub settings: Vec<(&'static str, &'static str)>,
}

impl Default for Options {
    fn default() -> Self {
        // The server runs as another user, who may not be able to read the caller's folders.
        let within = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
        Self { tls: true, pooled: false, within: within.to_vec(), settings: Vec::new() }
    }
}

/// A running server.
pub struct Cluster {
    port: u16,
    password: String,
    programs: PathBuf,
    folder: PathBuf,
    user: ServerUser,
    tls: bool,
    pooler: Option<Pooler>,
    _keeper: Keeper,
}

impl Cluster {
    /// Starts an empty server. The error names the missing program and the command that installs it.
    pub fn start(options: &Options) -> Result<Self, String> {
        let programs = programs::find()?;
        let user = ServerUser::choose()?;
        let password = secret()?;
        let folder = user.folder(&options.within, &format!("outlast-postgres-{}", &secret()?[..12]))?;
        // The keeper removes the folder from here on, also after an error.
        let keeper = Keeper::start(user, &programs, &folder)?;
        initialise(user, &programs, &folder, &password)?;
        if options.tls {
            certificates::write(user, &folder)?;
        }
        let port = start(user, &programs, &folder, options)?;
        let pooler = match options.pooled {
            true => Some(Pooler::start(user, &folder, port, &password)?),
            false => None,
        };
        Ok(Self { port, password, programs, folder, user, tls: options.tls, pooler, _keeper: keeper })
    }

    /// Starts a hot standby of this server: a second server that copies each commit, and that only reads. A TLS certificate is the one of
    /// this server, whose folder has it.
    pub fn standby(&self, options: &Options) -> Result<Self, String> {
        let (user, programs) = (self.user, self.programs.clone());
        let folder = user.folder(&options.within, &format!("outlast-standby-{}", &secret()?[..12]))?;
        let keeper = Keeper::start(user, &programs, &folder)?;
        let mut copy = user.command(programs.join("pg_basebackup"));
        // The option `--write-recovery-conf` makes the copy a standby.
        copy.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--pgdata"])
            .arg(folder.join("data"));
        copy.args(["--host", HOST, "--username", USER]).arg("--port").arg(self.port.to_string());
        copy.env("PGPASSWORD", &self.password);
        process::output(&mut copy)?;
        let port = start(user, &programs, &folder, &Options { tls: false, ..options.clone() })?;
        let password = self.password.clone();
        Ok(Self { port, password, programs, folder, user, tls: false, pooler: None, _keeper: keeper })
    }

    /// The URL of a database, with the superuser's name and password.
    pub fn url(&self, database: &str) -> String {
        let port = self.pooler.as_ref().map_or(self.port, |pooler| pooler.port);
        format!("postgres://{USER}:{}@{HOST}:{port}/{database}", self.password)
    }

    /// The id of the server's main process. Its children execute the statements.
    pub fn process(&self) -> Option<u32> {
        let file = self.folder.join("data/postmaster.pid");
        fs::read_to_string(file).ok()?.lines().next()?.trim().parse().ok()
    }

    /// Runs a program of PostgreSQL as the superuser of a database, and returns its stdout.
    pub fn tool(&self, program: &str, args: &[&str], database: &str) -> Result<String, String> {
        let beside = self.programs.join(program);
        let mut command = Command::new(if beside.is_file() { beside } else { program.into() });
        command.args(args).stdin(Stdio::null());
        command.env("PGHOST", HOST).env("PGPORT", self.port.to_string()).env("PGDATABASE", database);
        command.env("PGUSER", USER).env("PGPASSWORD", &self.password);
        process::output(&mut command)
    }

    /// The variables of [`VARIABLES`] with their values for this server.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let file = |name: &str| self.folder.join(name).display().to_string();
        let mut variables = vec![
            (URL, self.url(USER)),
            (PROGRAMS, self.programs.display().to_string()),
            (DATA, file("data")),
        ];
        if let Some(pooler) = &self.pooler {
            let does = if pooler.keeps_statements { "keeps" } else { "forgets" };
            variables.push((POOLED, does.to_string()));
        }
        if self.tls {
            variables.extend([(CA, file("ca.crt")), (OTHER_CA, file("other-ca.crt"))]);
        }
        variables
    }
}

/// Creates the data folder, with the password of the superuser.
fn initialise(user: ServerUser, programs: &Path, folder: &Path, password: &str) -> Result<(), String> {
    let (data, file) = (folder.join("data"), folder.join("password"));
    user.write(&file, password)?;
    let mut initdb = user.command(programs.join("initdb"));
    initdb.args(["--username", USER, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]);
    // No sync is needed: the data is not used after a crash of the machine.
    initdb.arg("--no-sync").arg("--pwfile").arg(&file).arg("--pgdata").arg(&data);
    process::output(&mut initdb)?;
    fs::remove_file(&file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Starts the server and returns its port.
fn start(user: ServerUser, programs: &Path, folder: &Path, options: &Options) -> Result<u16, String> {
    let (data, log) = (folder.join("data"), folder.join("server.log"));
    let file = data.join("postgresql.conf");
    let standard = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut failure = String::new();
    for _ in 0..TRIES {
        let port = free_port().map_err(|error| format!("no port of the loopback is free: {error}"))?;
        let text = format!("{standard}\n{}", configuration(port, folder, options));
        user.write(&file, &text)?;
        let mut pg_ctl = user.command(programs.join("pg_ctl"));
        pg_ctl.args(["start", "--wait", "--silent", "--log"]).arg(&log).arg("--pgdata").arg(&data);
        // Not `process::output`, which reads stdout to its end: the server keeps the pipe open while it runs.
        pg_ctl.stdout(Stdio::null()).stderr(Stdio::null());
        if pg_ctl.status().is_ok_and(|status| status.success()) {
            return Ok(port);
        }
        failure = fs::read_to_string(&log).unwrap_or_default();
    }
    Err(format!("the server does not start; it says:\n{}", failure.trim_end()))
}

/// The settings that differ from the defaults. No setting trades durability for speed, unless the caller asks for it.
fn configuration(port: u16, folder: &Path, options: &Options) -> String {
    let mut lines = vec![
        format!("listen_addresses = '{HOST}'"),
        format!("port = {port}"),
        format!("unix_socket_directories = '{}'", folder.display()),
        "max_connections = 300".to_string(),
        "fsync = on".to_string(),
        "synchronous_commit = on".to_string(),
        "full_page_writes = on".to_string(),
    ];
    if options.tls {
        lines.push("ssl = on".to_string());
        for (setting, name) in [("ssl_cert_file", "server.crt"), ("ssl_key_file", "server.key")] {
            lines.push(format!("{setting} = '{}'", folder.join(name).display()));
        }
    }
    // The server takes the last line of a setting.
    lines.extend(options.settings.iter().map(|(setting, value)| format!("{setting} = '{value}'")));
    lines.join("\n") + "\n"
}

/// A port of the loopback that no process uses now.
pub(super) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((HOST, 0))?.local_addr()?.port())
}

/// 128 random bits in hexadecimal digits.
fn secret() -> Result<String, String> {
    let mut bytes = [0; 16];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| format!("/dev/urandom: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_listens_on_the_loopback_only_and_syncs_its_commits() {
        let options = |tls, settings| Options { tls, settings, ..Options::default() };
        let text = configuration(5433, Path::new("/x/folder"), &options(false, Vec::new()));
        for line in [
            "listen_addresses = '127.0.0.1'",
            "port = 5433",
            "unix_socket_directories = '/x/folder'",
            "fsync = on",
            "synchronous_commit = on",
            "max_connections = 300",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert!(!text.contains("ssl"), "{text}");
        let text = configuration(5433, Path::new("/x/folder"), &options(true, vec![("fsync", "off")]));
        assert!(text.contains("ssl = on\nssl_cert_file = '/x/folder/server.crt'\n"), "{text}");
        assert!(text.ends_with("\nfsync = 'off'\n"), "the caller's setting is last, so it wins: {text}");
    }

    #[test]
    fn two_secrets_differ() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
    }
}
