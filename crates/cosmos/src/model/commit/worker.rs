//! A worker: the requests that it sends, and how it reads their answers.

use super::service::{Document, Id, Instance, Kind, Request};
use super::{Bug, Commits, MESSAGES, MISREPORTED, PARTS, SELF_INFLICTED, State};
use crate::doubt::{Answer, InstanceWrite, Resolved, StoredInstance, Verdict, resolve_staged, with_write};
use crate::ids::Uid;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Step {
    #[default]
    Idle,
    Locking,
    /// Documents of dead revs and dropped documents are removed before the turn is handed out.
    Clean,
    Turn,
    Committing,
    Reserving,
    Staging,
    Flipping,
    /// After a flip: the lease is over, and the dropped documents are removed.
    Removing,
}

/// A request of a worker that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sent {
    pub(super) request: Request,
    /// The attempts that were sent, over all repetitions.
    pub(super) attempts: u32,
    pub(super) is_in_doubt: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Worker {
    pub(super) step: Step,
    pub(super) token: Option<u8>,
    /// The instance as the worker last read or wrote it, and whether it is still so.
    pub(super) instance: Instance,
    pub(super) is_current: bool,
    takes: BTreeSet<u8>,
    pub(super) sent: Vec<Sent>,
}

impl Worker {
    fn send(&mut self, step: Step, request: Request) {
        self.step = step;
        self.sent.push(Sent { request, attempts: 1, is_in_doubt: false });
    }

    /// A write of the instance with this content.
    fn replace(&self, kind: Kind, write: u8, mut instance: Instance) -> Request {
        instance.writes = with_write(instance.writes, Uid(write.into()));
        Request { replaces: Some(instance), ..self.guarded(kind, write) }
    }

    /// A request that is executed if the instance is unchanged.
    fn guarded(&self, kind: Kind, write: u8) -> Request {
        Request {
            kind,
            write,
            is_current: Some(self.is_current),
            replaces: None,
            creates: vec![],
            removes: vec![],
            takes: BTreeSet::new(),
        }
    }

    fn events(&self, rev: u64, write: u8) -> impl Iterator<Item = (Id, Document)> {
        let turn = self.instance.turn;
        (0..PARTS).map(move |part| (Id::Events { turn, part }, Document { rev: Some(rev), write }))
    }
}

impl Commits {
    /// Reads the instance, and sends the write that locks it.
    pub(super) fn take(&self, state: &mut State, worker: usize) -> Option<()> {
        let is_wanted = (0..MESSAGES).any(|message| state.service.is_visible(Id::Message(message)));
        if !is_wanted {
            return None;
        }
        let write = state.next_write(worker);
        let own = &mut state.workers[worker];
        (own.is_current, own.instance) = (true, state.service.instance.clone());
        let mut instance = own.instance.clone();
        instance.token = Some(write);
        let rev = instance.marks.rev;
        instance.marks.give_up_staged();
        if self.has(Bug::RevReused) {
            instance.marks.rev = rev;
        }
        if self.has(Bug::DeadClearedBeforeSweep) {
            instance.marks.dead.clear();
        }
        let mut request = own.replace(Kind::Lock, write, instance);
        if self.has(Bug::LockWithoutIfMatch) {
            request.is_current = None;
        }
        own.send(Step::Locking, request);
        Some(())
    }

    /// Searches for documents that are dead or dropped. If there are none, the next write of the instance forgets the marks.
    pub(super) fn clean(&self, state: &mut State, worker: usize) {
        let own = &state.workers[worker];
        let marks = &own.instance.marks;
        let is_leftover = |(id, document): &(&Id, &Document)| {
            let is_dead = document.rev.is_some_and(|rev| marks.dead.contains(&rev));
            let is_skipped = match is_dead {
                true => self.has(Bug::HandedOutBeforeSweep),
                false => self.has(Bug::DroppedClearedBeforeRemoval) && own.step == Step::Clean,
            };
            (is_dead || marks.dropped.contains(&id.text())) && !is_skipped
        };
        // One document at a time: a removal is several requests.
        let leftover = state.service.documents.iter().find(is_leftover).map(|(id, _)| *id);
        let write = leftover.map(|_| state.next_write(worker));
        let own = &mut state.workers[worker];
        match (leftover, write) {
            (Some(id), Some(write)) => {
                let mut request = Request { removes: vec![id], ..own.guarded(Kind::Remove, write) };
                if self.has(Bug::SweepWithoutGuard) {
                    request.is_current = None;
                }
                own.send(own.step, request);
            }
            _ if own.step == Step::Removing => *own = Worker::default(),
            _ => {
                own.instance.marks.dropped.clear();
                if !self.has(Bug::HandedOutBeforeSweep) {
                    own.instance.marks.dead.clear();
                }
                own.step = Step::Turn;
                own.takes =
                    (0..MESSAGES).filter(|message| state.service.is_visible(Id::Message(*message))).collect();
            }
        }
    }

    pub(super) fn commit(&self, state: &mut State, worker: usize, is_staged: bool) -> Option<()> {
        let write = state.next_write(worker);
        let own = &mut state.workers[worker];
        if own.takes.is_empty() {
            return None;
        }
        let mut instance = own.instance.clone();
        if is_staged {
            instance.marks.reserve();
            let request = own.replace(Kind::Reserve, write, instance);
            own.send(Step::Reserving, request);
            return Some(());
        }
        let rev = instance.marks.next_rev();
        instance.marks.commit(rev, []);
        (instance.token, instance.turn) = (None, instance.turn + 1);
        let mut request = Request {
            creates: own.events(rev, write).collect(),
            removes: own.takes.iter().map(|message| Id::Message(*message)).collect(),
            takes: own.takes.clone(),
            ..own.replace(Kind::Commit, write, instance)
        };
        if self.has(Bug::CommitWithoutIfMatch) {
            // The documents of the turn are written as if there were no other writer.
            request.is_current = None;
            request.removes.retain(|id| state.service.documents.contains_key(id));
        }
        own.send(Step::Committing, request);
        Some(())
    }

    pub(super) fn renew(&self, state: &mut State, worker: usize) {
        let write = state.next_write(worker);
        let own = &mut state.workers[worker];
        let request = own.replace(Kind::Renew, write, own.instance.clone());
        own.send(own.step, request);
    }

    /// Executes a request for which a worker waits.
    pub(super) fn execute(&self, state: &mut State, worker: usize, nth: usize) {
        let sent = state.workers[worker].sent[nth].clone();
        let status = state.run(&sent.request);
        self.judge(state, &sent.request, status, true);
        let verdict = Answer { status: Some(status), sent: sent.attempts }.verdict();
        // An absent document needs no removal.
        let is_gone = sent.request.kind == Kind::Remove && status == 404;
        match if is_gone { Verdict::Applied } else { verdict } {
            Verdict::Applied => {
                self.applied(state, worker, nth, sent.request.replaces.clone());
            }
            Verdict::InDoubt if !self.has(Bug::ConflictIsFailure) => {
                state.workers[worker].sent[nth].is_in_doubt = true;
            }
            Verdict::InDoubt | Verdict::Refused(_) => self.lost(state, worker, nth),
        }
    }

    /// A refused write whose sender still holds the lease was refused because of another write of the same worker.
    pub(super) fn judge(&self, state: &mut State, request: &Request, status: u16, is_awaited: bool) {
        let holder = state.workers.iter().find(|own| own.sent.iter().any(|sent| sent.request == *request));
        let Some(holder) = holder.filter(|_| is_awaited && status == 412) else { return };
        let is_first = holder.sent.iter().any(|sent| sent.request == *request && sent.attempts == 1);
        let holds = holder.token.is_some() && holder.token == state.service.instance.token;
        if is_first && holds && request.kind == Kind::Stage {
            state.forbidden.insert(SELF_INFLICTED);
        }
    }

    /// Reads the instance and the document to learn whether a request was applied.
    pub(super) fn resolve(&self, state: &mut State, worker: usize, nth: usize) {
        let (service, own) = (&state.service, &state.workers[worker]);
        let request = &own.sent[nth].request;
        let is_unchanged = request.is_current == Some(true);
        let resolved = match request.kind {
            Kind::Stage => {
                let (id, _) = request.creates[0];
                let stored = service.documents.get(&id).map(|document| Uid(document.write.into()));
                resolve_staged(Uid(request.write.into()), stored, is_unchanged)
            }
            // A removal is looked up again. A lease that was lost refuses it.
            Kind::Remove => Resolved::Applied,
            _ => {
                let write = InstanceWrite { write: Uid(request.write.into()), etag: "read" };
                let stored = StoredInstance {
                    etag: if is_unchanged { "read" } else { "another" },
                    writes: &service.instance.writes,
                };
                let has_events = service.documents.values().any(|document| document.write == request.write);
                let token = if request.kind == Kind::Lock { Some(request.write) } else { own.token };
                match request.commits() {
                    true => write.resolve(Some(stored), has_events),
                    false => write.resolve_kept(Some(stored), service.instance.token == token),
                }
            }
        };
        match resolved {
            Resolved::Applied => {
                let read = request.replaces.as_ref().map(|_| service.instance.clone());
                self.applied(state, worker, nth, read);
            }
            Resolved::Repeat => {
                let sent = &mut state.workers[worker].sent[nth];
                *sent = Sent { attempts: sent.attempts + 1, is_in_doubt: false, ..sent.clone() };
            }
            Resolved::Lost => self.lost(state, worker, nth),
        }
    }

    /// A request was applied: the worker continues.
    fn applied(&self, state: &mut State, worker: usize, nth: usize, stored: Option<Instance>) {
        let own = &mut state.workers[worker];
        let request = own.sent.remove(nth).request;
        if let Some(instance) = stored {
            own.is_current = true;
            // The worker's own copy may have forgotten marks that the stored one still has.
            let marks = own.instance.marks.clone();
            own.instance = instance;
            if request.kind == Kind::Renew {
                own.instance.marks.dead = marks.dead;
                own.instance.marks.dropped = marks.dropped;
            }
        }
        match request.kind {
            Kind::Lock => {
                own.token = Some(request.write);
                own.step = Step::Clean;
            }
            Kind::Reserve => {
                own.step = Step::Staging;
                let rev = own.instance.marks.staged.unwrap_or_default();
                for event in own.events(rev, request.write).collect::<Vec<_>>() {
                    let mut stage =
                        Request { creates: vec![event], ..own.guarded(Kind::Stage, request.write) };
                    if self.has(Bug::StageWithoutGuard) {
                        stage.is_current = None;
                    }
                    own.send(Step::Staging, stage);
                }
            }
            Kind::Flip => {
                own.token = None;
                own.step = Step::Removing;
            }
            Kind::Commit => *own = Worker::default(),
            Kind::Stage | Kind::Renew | Kind::Remove => {}
        }
    }

    pub(super) fn flip(&self, state: &mut State, worker: usize) {
        let write = state.next_write(worker);
        let own = &mut state.workers[worker];
        let mut instance = own.instance.clone();
        let rev = instance.marks.staged.unwrap_or_default();
        instance.marks.commit(rev, own.takes.iter().map(|message| Id::Message(*message).text()));
        (instance.token, instance.turn) = (None, instance.turn + 1);
        let mut request = Request { takes: own.takes.clone(), ..own.replace(Kind::Flip, write, instance) };
        if self.has(Bug::CommitWithoutIfMatch) {
            request.is_current = None;
        }
        own.send(Step::Flipping, request);
    }

    /// The worker reports to its caller that the lease is lost, and forgets the turn.
    fn lost(&self, state: &mut State, worker: usize, nth: usize) {
        let own = std::mem::take(&mut state.workers[worker]);
        let request = &own.sent[nth].request;
        if request.commits() && state.service.has_committed(request.write) {
            state.forbidden.insert(MISREPORTED);
        }
        let others = own.sent.iter().enumerate().filter(|(other, sent)| *other != nth && !sent.is_in_doubt);
        state.strays.extend(others.map(|(_, sent)| sent.request.clone()));
    }
}
