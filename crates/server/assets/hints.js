// Hints of the server that data has changed. All tabs of a browser share one stream: a browser opens at most six connections to a server,
// and a seventh tab would wait for ever. A visible tab that holds the lock has the stream, and passes the hints on to the others.

const NAMES = ["resync", "instance", "instances", "system"];
const MOST_INSTANCES = 16;
const BEAT_MS = 5000;
const SILENCE_MS = 12000;
const RETRY_MS = 5000;
const GATHER_MS = 100;

/**
 * Listens while the tab is visible and its page is live.
 * @param {(name: string, instance: string) => void} onHint
 * @param {() => void} onChange called when the stream begins or breaks
 * @returns {{ isUp: () => boolean, update: () => void }}
 */
export function startHints(onHint, onChange) {
  // Browsers have locks on secure origins and on the loopback only. Other pages poll.
  if (!navigator.locks || !window.BroadcastChannel || !window.EventSource) return { isUp: () => false, update: () => {} };
  const base = document.body.dataset.base;
  const name = `outlast:${base}`;
  const tab = `${Date.now()}-${Math.random()}`;
  const channel = new BroadcastChannel(name);
  const wanted = () => document.body.dataset.instance ?? "";

  // The request for the lock, while the tab is visible and its page is live.
  let waiting = null;
  let said = null;
  let heard = 0;
  let up = false;
  const setUp = (value) => {
    heard = Date.now();
    if (up === value) return;
    up = value;
    onChange();
  };

  // The state of the tab that has the stream.
  let release = null;
  let source = null;
  let address = "";
  let retryAt = 0;
  let timers = [];
  const wants = new Map();
  const report = (value) => {
    setUp(value);
    channel.postMessage({ up: value });
  };
  const open = () => {
    const instances = [...new Set([...wants.values()].reverse())].filter((id) => id).slice(0, MOST_INSTANCES);
    const next = `${base}/api/v1/stream?store=true${instances.map((id) => `&instance=${encodeURIComponent(id)}`).join("")}`;
    if (source ? next === address : Date.now() < retryAt) return;
    source?.close();
    address = next;
    const opened = new EventSource(next);
    source = opened;
    opened.onopen = () => report(true);
    opened.onerror = () => {
      if (source !== opened) return;
      report(false);
      // The browser repeats a broken connection itself, and gives up after an error of the server.
      if (opened.readyState === EventSource.CLOSED) {
        source = null;
        retryAt = Date.now() + RETRY_MS;
        timers.push(setTimeout(() => release && open(), RETRY_MS));
      }
    };
    for (const hint of NAMES) {
      opened.addEventListener(hint, (event) => {
        const instance = JSON.parse(event.data).instance ?? "";
        report(true);
        channel.postMessage({ hint, instance });
        onHint(hint, instance);
      });
    }
  };
  // Several tabs may say at the same time which instances they show.
  const gather = () => timers.push(setTimeout(() => release && open(), GATHER_MS));
  const note = (from, want) => {
    if (wants.get(from) === want) return;
    wants.delete(from);
    wants.set(from, want);
    gather();
  };
  const lead = (done) => {
    release = done;
    retryAt = 0;
    wants.clear();
    channel.postMessage({ who: true });
    timers = [setInterval(() => channel.postMessage({ up }), BEAT_MS)];
    note(tab, wanted());
  };
  const resign = () => {
    source?.close();
    source = null;
    timers.forEach(clearTimeout);
    timers = [];
    release?.();
    release = null;
  };

  const enter = () => {
    if (said !== wanted()) {
      said = wanted();
      channel.postMessage({ want: said, tab });
      if (release) note(tab, said);
    }
    if (waiting) return;
    const mine = new AbortController();
    waiting = mine;
    const held = () => (waiting === mine ? new Promise(lead) : undefined);
    navigator.locks.request(name, { signal: mine.signal }, held).catch(() => {});
  };
  const leave = () => {
    if (!waiting) return;
    waiting.abort();
    waiting = null;
    said = null;
    resign();
    setUp(false);
    channel.postMessage({ gone: tab });
  };
  // After a logout the server refuses the stream. A page that is read meanwhile is live again, and must not open it.
  let ended = false;
  const update = () => (!ended && !document.hidden && document.body.hasAttribute("data-live") ? enter() : leave());

  channel.onmessage = ({ data }) => {
    if ("up" in data && !release) setUp(data.up);
    if ("hint" in data && waiting) onHint(data.hint, data.instance);
    if ("who" in data && waiting) channel.postMessage({ want: wanted(), tab });
    if (release && "want" in data) note(data.tab, data.want);
    if (release && "gone" in data && wants.delete(data.gone)) gather();
  };
  document.addEventListener("visibilitychange", update);
  document.addEventListener("outlast:logout", () => {
    ended = true;
    update();
  });
  window.addEventListener("pageshow", update);
  window.addEventListener("pagehide", leave);
  update();
  return { isUp: () => up && (release !== null || Date.now() - heard < SILENCE_MS), update };
}
