//! The partition of an instance: documents, and requests that are executed atomically under their condition.

use super::{COLLISION, ForbiddenEvents, LATE, MESSAGES, PARTS, REV_REUSED};
use crate::ids::Uid;
use crate::visible::{Marks, Visibility};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Id {
    Message(u8),
    /// A part of the events of a turn. The ids of two attempts at a turn are equal.
    Events {
        turn: u8,
        part: u8,
    },
}

impl Id {
    pub(super) fn text(self) -> String {
        format!("{self:?}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Document {
    pub(super) rev: Option<u64>,
    pub(super) write: u8,
}

/// The content of the document of the instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Instance {
    pub(super) marks: Marks,
    /// The write that locked the instance.
    pub(super) token: Option<u8>,
    /// The number of committed turns.
    pub(super) turn: u8,
    pub(super) writes: Vec<Uid>,
}

/// One request: conditions and changes of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Request {
    pub(super) kind: Kind,
    pub(super) write: u8,
    /// Whether the instance still has the version under which the request is executed; `None`: under any. A version never
    /// returns, so all earlier ones are alike.
    pub(super) is_current: Option<bool>,
    pub(super) replaces: Option<Instance>,
    pub(super) creates: Vec<(Id, Document)>,
    pub(super) removes: Vec<Id>,
    /// Messages that the turn took.
    pub(super) takes: BTreeSet<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Lock,
    Renew,
    Reserve,
    Stage,
    Commit,
    Flip,
    Remove,
}

impl PartialOrd for Request {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Write ids are unique but for the parts of a stage.
impl Ord for Request {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.write, self.kind, &self.creates).cmp(&(other.write, other.kind, &other.creates))
    }
}

impl Instance {
    /// Forgets write ids that no request has.
    pub(super) fn normalise(&mut self, used: &BTreeSet<u8>) {
        self.writes.retain(|write| used.iter().any(|used| Uid(u128::from(*used)) == *write));
        self.token = self.token.filter(|token| used.contains(token));
    }
}

impl Request {
    pub(super) fn commits(&self) -> bool {
        matches!(self.kind, Kind::Commit | Kind::Flip)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Committed {
    pub(super) rev: u64,
    pub(super) turn: u8,
    pub(super) is_staged: bool,
    write: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Service {
    pub(super) instance: Instance,
    pub(super) documents: BTreeMap<Id, Document>,
    /// Messages that arrived.
    pub(super) arrived: u8,
    /// For the properties: how often each message was recorded, the commits, and the revs that were used.
    pub(super) recorded: [u8; MESSAGES as usize],
    pub(super) committed: Vec<Committed>,
    revs: BTreeSet<u64>,
}

impl Service {
    pub(super) fn with_message(message: u8) -> Self {
        let mut service = Self {
            instance: Instance::default(),
            documents: BTreeMap::new(),
            arrived: 0,
            recorded: [0; MESSAGES as usize],
            committed: vec![],
            revs: BTreeSet::new(),
        };
        service.arrive(message);
        service
    }

    pub(super) fn arrive(&mut self, message: u8) {
        self.documents.insert(Id::Message(message), Document { rev: None, write: 0 });
        self.arrived += 1;
    }

    /// Executes a request: the status of its answer.
    pub(super) fn execute(&mut self, request: &Request, forbidden: &mut ForbiddenEvents) -> u16 {
        if request.is_current == Some(false) {
            return 412;
        }
        if let Some(found) = request.creates.iter().find_map(|(id, _)| self.documents.get(id)) {
            if found.write != request.write {
                forbidden.insert(COLLISION);
            }
            return 409;
        }
        if request.removes.iter().any(|id| !self.documents.contains_key(id)) {
            return 404;
        }
        self.note(request, forbidden);
        if let Some(instance) = &request.replaces {
            self.instance = instance.clone();
        }
        self.documents.extend(request.creates.iter().copied());
        self.documents.retain(|id, _| !request.removes.contains(id));
        200
    }

    /// Notes the effects of an accepted request, for the properties.
    fn note(&mut self, request: &Request, forbidden: &mut ForbiddenEvents) {
        let rev = match (request.kind, &request.replaces) {
            (Kind::Reserve, Some(instance)) => instance.marks.staged,
            (Kind::Commit, Some(instance)) => Some(instance.marks.rev),
            _ => None,
        };
        if let Some(rev) = rev
            && !self.revs.insert(rev)
        {
            forbidden.insert(REV_REUSED);
        }
        let is_late = |(_, document): &(Id, Document)| self.instance.marks.staged != document.rev;
        if request.kind == Kind::Stage && request.creates.iter().any(is_late) {
            forbidden.insert(LATE);
        }
        if let Some(instance) = request.replaces.as_ref().filter(|_| request.commits()) {
            self.committed.push(Committed {
                rev: instance.marks.rev,
                turn: instance.turn - 1,
                is_staged: request.kind == Kind::Flip,
                write: request.write,
            });
            for message in &request.takes {
                self.recorded[usize::from(*message)] += 1;
            }
        }
    }

    pub(super) fn is_visible(&self, id: Id) -> bool {
        let document = self.documents.get(&id);
        document.is_some_and(|document| {
            self.instance.marks.visibility(&id.text(), document.rev) == Visibility::Visible
        })
    }

    /// Whether a reader that reads the instance and the documents at one time sees each committed turn whole, and nothing else.
    pub(super) fn is_atomic(&self) -> bool {
        let is_whole = |commit: &Committed| {
            (0..PARTS).all(|part| {
                let id = Id::Events { turn: commit.turn, part };
                self.is_visible(id) && self.documents[&id].rev == Some(commit.rev)
            })
        };
        let is_committed = |(id, document): (&Id, &Document)| {
            let Some(rev) = document.rev else { return true };
            match self.instance.marks.visibility(&id.text(), Some(rev)) {
                Visibility::Hidden => true,
                Visibility::Visible => self.committed.iter().any(|commit| commit.rev == rev),
                Visibility::MarksAreStale => false,
            }
        };
        self.committed.iter().all(is_whole) && self.documents.iter().all(is_committed)
    }

    /// Forgets write ids that no request has.
    pub(super) fn normalise(&mut self, used: &BTreeSet<u8>) {
        self.instance.normalise(used);
        let documents = self.documents.values_mut().map(|document| &mut document.write);
        let commits = self.committed.iter_mut().map(|commit| &mut commit.write);
        documents.chain(commits).filter(|write| !used.contains(write)).for_each(|write| *write = 0);
    }

    /// Whether a write is among those that committed a turn.
    pub(super) fn has_committed(&self, write: u8) -> bool {
        self.committed.iter().any(|commit| commit.write == write)
    }
}
