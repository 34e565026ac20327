// Times in the zone of the browser. The tooltip has the time in UTC.

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false, fractionalSecondDigits: 3 });

/** @param {number} ms */
function ago(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 5) return "now";
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

export function showTimes() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const text = "ago" in time.dataset ? ago(now - at.getTime()) : "clock" in time.dataset ? clock.format(at) : day.format(at);
    if (time.textContent !== text) time.textContent = text;
    const title = `${time.dateTime} (UTC)`;
    if (time.title !== title) time.title = title;
  }
}
