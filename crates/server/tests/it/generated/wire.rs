//! One connection that sends requests byte for byte.

use super::plan::Request;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;

/// The longest time of an answer.
const LONGEST: Duration = Duration::from_secs(20);

pub(super) struct Wire {
    address: String,
    stream: Option<TcpStream>,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) media: String,
    /// Empty for a stream, whose body has no end.
    pub(super) body: Vec<u8>,
}

impl Wire {
    pub(super) fn new(address: &str) -> Self {
        Self { address: address.to_string(), stream: None }
    }

    /// Sends a request and reads its answer. An error says that the connection was closed without an answer, or that none came.
    pub(super) async fn send(&mut self, request: &Request) -> Result<Answer, String> {
        match tokio::time::timeout(LONGEST, self.exchange(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(format!("no answer: {error}")),
            Err(_) => Err("no answer in time".to_string()),
        }
    }

    async fn exchange(&mut self, request: &Request) -> std::io::Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect(&self.address).await?,
        };
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n",
            request.method,
            request.path,
            self.address,
            request.body.len()
        );
        for (name, value) in &request.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let is_head = request.method == "HEAD";
        let (answer, is_open) = converse(&mut stream, head.as_bytes(), &request.body, is_head).await?;
        if is_open {
            self.stream = Some(stream);
        }
        Ok(answer)
    }
}

/// Writes a request and reads its answer; also returns whether the connection can be used again.
async fn converse(
    stream: &mut TcpStream,
    head: &[u8],
    body: &[u8],
    is_head: bool,
) -> std::io::Result<(Answer, bool)> {
    let (from, mut to) = stream.split();
    let mut from = BufReader::new(from);
    let write = async {
        to.write_all(head).await?;
        to.write_all(body).await
    };
    // A server that refuses a large body does not read it: the answer comes before the end of the write.
    let mut write = std::pin::pin!(write);
    let mut answer = std::pin::pin!(read(&mut from, is_head));
    let mut is_written = false;
    loop {
        tokio::select! {
            read = &mut answer => break read.map(|(answer, is_open)| (answer, is_open && is_written)),
            _ = &mut write, if !is_written => is_written = true,
        }
    }
}

/// Reads an answer; also returns whether the connection can be used again.
async fn read(stream: &mut BufReader<ReadHalf<'_>>, is_head: bool) -> std::io::Result<(Answer, bool)> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let Some(status) = status else {
        return Err(std::io::Error::other(format!("'{line}' is no status line")));
    };
    let (mut length, mut media, mut is_open) = (None, String::new(), true);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let value = value.trim();
        match name.to_lowercase().as_str() {
            "content-length" => length = value.parse().ok(),
            "content-type" => media = value.split(';').next().unwrap_or_default().to_string(),
            "connection" => is_open = value != "close",
            _ => {}
        }
    }
    let Some(length) = length else {
        return Ok((Answer { status, media, body: Vec::new() }, false));
    };
    let mut body = vec![0; if is_head { 0 } else { length }];
    stream.read_exact(&mut body).await?;
    Ok((Answer { status, media, body }, is_open))
}
