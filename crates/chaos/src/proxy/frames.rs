//! Splits requests and answers in the protocol of PostgreSQL, version 3.

/// Messages that the server answers with "ready", and messages that end a request because the server acts on them at once.
const ENDS_WITH_READY: &[u8] = b"QS";
const ENDS_REQUEST: &[u8] = b"QSHXpcdf";
/// The server is ready for the next request.
const READY: u8 = b'Z';

/// Collects the bytes of a client and splits them into requests.
#[derive(Default)]
pub(super) struct Requests {
    bytes: Vec<u8>,
    has_started: bool,
    expected_ready: u64,
}

impl Requests {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete request. The first message of a connection has no letter.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let end = if self.has_started { self.end_of_request()? } else { self.end_of_startup()? };
        Some(self.bytes.drain(..end).collect())
    }

    /// Number of "ready" answers that the server will send for the requests so far. The startup message counts as one.
    pub(super) fn expected_ready(&self) -> u64 {
        self.expected_ready
    }

    fn end_of_startup(&mut self) -> Option<usize> {
        let end = message(&self.bytes, 0)?;
        self.has_started = true;
        self.expected_ready = 1;
        Some(end)
    }

    fn end_of_request(&mut self) -> Option<usize> {
        let mut at = 0;
        loop {
            let letter = *self.bytes.get(at)?;
            at = message(&self.bytes, at + 1)?;
            if ENDS_REQUEST.contains(&letter) {
                self.expected_ready += u64::from(ENDS_WITH_READY.contains(&letter));
                return Some(at);
            }
        }
    }
}

/// Reads the bytes of a server and counts its complete answers.
#[derive(Default)]
pub(super) struct Answers {
    bytes: Vec<u8>,
    complete: u64,
}

impl Answers {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        while let (Some(letter), Some(end)) = (self.bytes.get(at), message(&self.bytes, at + 1)) {
            self.complete += u64::from(*letter == READY);
            at = end;
        }
        self.bytes.drain(..at);
    }

    pub(super) fn complete(&self) -> u64 {
        self.complete
    }
}

/// The end of the message whose length is at this position, if the message is complete. The length includes itself.
fn message(bytes: &[u8], at: usize) -> Option<usize> {
    let length = u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
    let end = at + usize::try_from(length).ok()?.max(4);
    (bytes.len() >= end).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(letter: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![letter];
        bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
        bytes.extend(body);
        bytes
    }

    fn startup() -> Vec<u8> {
        sent(0, &[0, 3, 0, 0])[1..].to_vec()
    }

    #[test]
    fn requests_end_at_sync_and_query_messages() {
        let bound = [sent(b'B', b"one"), sent(b'E', b""), sent(b'S', b"")].concat();
        let query = sent(b'Q', b"COMMIT\0");
        let all = [startup(), sent(b'p', b"secret"), bound.clone(), query.clone()].concat();
        // In one piece, and byte by byte.
        for size in [all.len(), 1] {
            let mut requests = Requests::default();
            let mut found = Vec::new();
            for piece in all.chunks(size) {
                requests.take(piece);
                while let Some(request) = requests.next() {
                    found.push((request, requests.expected_ready()));
                }
            }
            let expected =
                [(startup(), 1), (sent(b'p', b"secret"), 1), (bound.clone(), 2), (query.clone(), 3)];
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_answer_is_complete_when_the_server_is_ready() {
        let all =
            [sent(b'D', b"Z"), sent(b'C', b"INSERT 0 1"), sent(READY, b"I"), sent(READY, b"T")].concat();
        for size in [all.len(), 1] {
            let mut answers = Answers::default();
            all.chunks(size).for_each(|piece| answers.take(piece));
            assert_eq!(answers.complete(), 2);
        }
        let mut answers = Answers::default();
        answers.take(&all[..all.len() - 1]);
        assert_eq!(answers.complete(), 1);
    }
}
