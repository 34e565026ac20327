// A long history as one list that scrolls. A few rows are moved over the events, so that the page has some hundred nodes for any number
// of events. Events are read page by page when they come into view.

const PAGE = 500;
const KEPT_PAGES = 12;
const SPARE_ROWS = 3;

/** Shows the history of the tab "Events", or reads the events that are new. Called for a new page, and after each update. */
export function showEvents() {
  const place = document.getElementById("history");
  if (!place) return;
  if (!place.list) place.list = new List(place);
  else place.list.grow();
}

/** An element with a class, and a role for readers of screens. */
function make(name, className, role) {
  const element = document.createElement(name);
  element.className = className;
  if (role) element.setAttribute("role", role);
  return element;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false, fractionalSecondDigits: 3 });

/** The fields of an event as texts. */
function fields(details) {
  return Object.entries(details).map(([field, value]) => {
    if (field === "fire_at_ms") return `due ${new Date(value).toISOString()}`;
    return `${field}: ${typeof value === "string" ? value : JSON.stringify(value)}`;
  });
}

class List {
  constructor(place) {
    this.address = place.dataset.events;
    this.state = place.dataset.state;
    this.total = Number(place.dataset.total);
    this.pages = new Map();
    this.rows = [];
    this.drawn = false;
    this.view = make("div", "flow", "table");
    this.view.tabIndex = 0;
    this.view.setAttribute("aria-label", "Events");
    this.space = make("div", "space");
    this.view.append(this.space);
    this.whole = make("pre", "whole");
    this.whole.hidden = true;
    place.replaceChildren(this.view, this.whole);
    this.view.addEventListener("scroll", () => this.plan(), { passive: true });
    new ResizeObserver(() => this.plan()).observe(this.view);
    this.view.addEventListener("click", (event) => this.choose(event.target));
    this.draw();
  }

  /** Draws once before the next frame. */
  plan() {
    if (this.drawn) return;
    this.drawn = true;
    requestAnimationFrame(() => {
      this.drawn = false;
      this.draw();
    });
  }

  draw() {
    const height = this.height();
    const space = `${this.total * height}px`;
    if (this.space.style.height !== space) {
      this.space.style.height = space;
      this.view.setAttribute("aria-rowcount", String(this.total));
    }
    const visible = Math.ceil(this.view.clientHeight / height) + SPARE_ROWS;
    const count = Math.min(visible, this.total);
    while (this.rows.length < count) this.rows.push(this.row());
    while (this.rows.length > count) this.rows.pop().element.remove();
    const first = Math.min(Math.floor(this.view.scrollTop / height), this.total - count);
    // An event has the same row while it is visible, so a small scroll changes few rows.
    for (let at = first; at < first + count; at++) this.fill(this.rows[at % count], at, height);
  }

  /** The height of a row, which the style sheet sets. */
  height() {
    if (!this.rowHeight) this.rowHeight = parseFloat(getComputedStyle(this.view).getPropertyValue("--row")) || 28;
    return this.rowHeight;
  }

  row() {
    const element = make("div", "event", "row");
    const [id, time, kind, of, name, details] = ["id", "time", "type", "of", "name", "details"].map((part) => make("span", part, "cell"));
    const link = document.createElement("a");
    id.append(link);
    element.append(id, time, kind, of, name, details);
    this.space.append(element);
    return { element, link, time, kind, of, name, details, at: -1, event: null };
  }

  fill(row, at, height) {
    const event = this.event(at);
    if (row.at === at && row.event === event) return;
    if (row.at !== at) {
      row.element.style.transform = `translateY(${at * height}px)`;
      row.element.setAttribute("aria-rowindex", String(at + 1));
      row.element.dataset.at = String(at);
    }
    [row.at, row.event] = [at, event];
    row.link.textContent = String(at + 1);
    row.link.href = `${this.state}&at=${at + 1}`;
    row.time.textContent = event ? clock.format(event.at_ms) : "";
    row.kind.textContent = event?.kind ?? "…";
    row.of.textContent = event?.of ?? "";
    row.name.textContent = event?.name ?? "";
    row.details.textContent = event ? fields(event.details).join(" · ") : "";
  }

  /** The event, or undefined while it is read. */
  event(at) {
    const number = Math.floor(at / PAGE);
    const page = this.pages.get(number);
    if (!page) this.read(number);
    else if (this.pages.size > 1) {
      // The page that was used last is the last one of the map.
      this.pages.delete(number);
      this.pages.set(number, page);
    }
    return page?.items[at - number * PAGE];
  }

  async read(number) {
    const page = { items: this.pages.get(number)?.items ?? [] };
    this.pages.set(number, page);
    try {
      const answer = await fetch(`${this.address}&after=${number * PAGE}&limit=${PAGE}`);
      if (!answer.ok) throw new Error(answer.statusText);
      const { items, total } = await answer.json();
      page.items = items;
      this.total = Math.max(this.total, total);
    } catch {
      // The badge says that the server does not answer. The page is read again when it is drawn again.
      this.pages.delete(number);
      return;
    }
    for (const oldest of this.pages.keys()) {
      if (this.pages.size <= KEPT_PAGES) break;
      this.pages.delete(oldest);
    }
    this.plan();
  }

  /** Reads the last page again: events are only added at the end. */
  grow() {
    this.read(Math.floor(Math.max(0, this.total - 1) / PAGE));
  }

  /** Shows the whole event of a row. */
  choose(target) {
    const row = target instanceof Element && !target.closest("a") ? target.closest(".event") : null;
    const event = row ? this.event(Number(row.dataset.at)) : null;
    if (!event) return;
    const title = `event ${event.id}  ${event.kind}${event.name ? `  ${event.name}` : ""}  ${event.at}`;
    this.whole.textContent = [title, ...fields(event.details)].join("\n");
    this.whole.hidden = false;
    this.whole.scrollIntoView({ block: "nearest" });
  }
}
