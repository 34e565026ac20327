//! Where requests and answers end in the protocol of PostgreSQL, version 3.

/// The messages that end what a client sends in one go: those that the server answers with "ready", and those that it
/// acts on at once.
const ASKS: &[u8] = b"QS";
const ENDS: &[u8] = b"QSHXpcdf";
/// The server can be asked again.
const READY: u8 = b'Z';

/// Takes what a client sends, and gives it back request by request.
#[derive(Default)]
pub(super) struct Requests {
    bytes: Vec<u8>,
    has_begun: bool,
    asked: u64,
}

impl Requests {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next request that is complete. The first message has no letter.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let end = if self.has_begun { self.end_of_request()? } else { self.end_of_beginning()? };
        Some(self.bytes.drain(..end).collect())
    }

    /// How many times the server will be ready again, for what was given back so far. It is once after the first message.
    pub(super) fn asked(&self) -> u64 {
        self.asked
    }

    fn end_of_beginning(&mut self) -> Option<usize> {
        let end = message(&self.bytes, 0)?;
        self.has_begun = true;
        self.asked = 1;
        Some(end)
    }

    fn end_of_request(&mut self) -> Option<usize> {
        let mut at = 0;
        loop {
            let letter = *self.bytes.get(at)?;
            at = message(&self.bytes, at + 1)?;
            if ENDS.contains(&letter) {
                self.asked += u64::from(ASKS.contains(&letter));
                return Some(at);
            }
        }
    }
}

/// Reads what a server sends, and counts the answers that are complete.
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

/// Where the message ends whose length is told here, if all of it is there. The length counts itself.
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
    fn a_request_ends_where_the_server_is_asked() {
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
                    found.push((request, requests.asked()));
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
