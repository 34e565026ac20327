//! Requests over one connection that stays open. It is small, so that the generator of the load uses little processor time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const LONGEST: Duration = Duration::from_secs(60);

pub(crate) struct Http {
    host: String,
    stream: BufReader<TcpStream>,
}

/// The times from the request to the first byte and to the last one.
pub(crate) struct Took {
    pub(crate) first: Duration,
    pub(crate) last: Duration,
}

impl Http {
    pub(crate) fn open(host: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(host).map_err(|error| format!("{host}: {error}"))?;
        stream.set_read_timeout(Some(LONGEST)).map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(Self { host: host.to_string(), stream: BufReader::new(stream) })
    }

    /// Reads a path; an answer other than 200 is an error.
    pub(crate) fn get(&mut self, path: &str) -> Result<(Took, String), String> {
        self.exchange(path).map_err(|error| format!("GET {path}: {error}"))
    }

    fn exchange(&mut self, path: &str) -> Result<(Took, String), String> {
        let text = |error: std::io::Error| error.to_string();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.host);
        let since = Instant::now();
        self.stream.get_mut().write_all(request.as_bytes()).map_err(text)?;
        let mut line = String::new();
        self.stream.read_line(&mut line).map_err(text)?;
        let first = since.elapsed();
        let status = line.split(' ').nth(1).unwrap_or_default().to_string();
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line).map_err(text)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(|_| format!("the length is '{value}'"))?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).map_err(text)?;
        let body = String::from_utf8(body).map_err(|error| error.to_string())?;
        match status.as_str() {
            "200" => Ok((Took { first, last: since.elapsed() }, body)),
            _ => Err(format!("status {status}: {body}")),
        }
    }
}
