//! A certificate for the server, the authority that signed it, and an authority that signed nothing.
//! Tests use the second authority to check that a client refuses the server.

use std::path::Path;

use super::server_user::ServerUser;
use crate::{installed, process};

const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
/// Clients connect by the name and by the address of the server.
const SERVER: &str = "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n";
const AUTHORITY: &str = "basicConstraints=critical,CA:TRUE";

/// Writes `ca.crt`, `server.crt`, `server.key` and `other-ca.crt` into the folder.
pub(super) fn write(user: ServerUser, folder: &Path) -> Result<(), String> {
    installed::find_or_install("openssl", "openssl", "try again", || {
        installed::succeeds("openssl", &["version"]).then_some(())
    })?;
    let openssl = |args: &[&str]| {
        let mut command = user.command("openssl");
        process::output(command.args(args).current_dir(folder)).map(drop)
    };
    let authority = |name: &str| {
        let (key, certificate) = (format!("{name}.key"), format!("{name}.crt"));
        let subject = format!("/CN=Outlast tests: {name}");
        let asked = ["req", "-x509", "-days", "7", "-subj", &subject, "-addext", AUTHORITY];
        openssl(&[&asked, &KEY[..], &["-keyout", &key, "-out", &certificate]].concat())
    };
    authority("ca")?;
    authority("other-ca")?;
    let request = ["req", "-new", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr"];
    openssl(&[&request, &KEY[..]].concat())?;
    user.write(&folder.join("server.ext"), SERVER)?;
    let signed = ["x509", "-req", "-days", "7", "-in", "server.csr", "-extfile", "server.ext"];
    let by = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", "server.crt"];
    openssl(&[&signed[..], &by].concat())
}
