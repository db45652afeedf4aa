// What a reader has made of the page stands in its address, after the anchor: `#step-l-i0&filter=pg17.*&zoom.step-l-i0=10-60`. A reload,
// a mailed link and Back show it again.
const view = (() => {
  "use strict";
  const kept = new Map();
  let anchor = "";
  let values = new Map();
  let shown = null;
  // What was changed last, and whether that has its entry in the history: dragging or typing on makes no further one.
  let changed = null;
  let isNew = false;
  let timer = null;

  const read = () => {
    shown = location.hash;
    const [first, ...rest] = shown.slice(1).split("&");
    try { anchor = decodeURIComponent(first); } catch { anchor = first; }
    values = new Map(new URLSearchParams(rest.join("&")));
  };
  const write = () => {
    clearTimeout(timer);
    timer = null;
    const rest = new URLSearchParams([...values]).toString();
    const address = `#${encodeURIComponent(anchor)}${rest && `&${rest}`}`;
    if (address === (location.hash || "#")) return;
    history[isNew ? "pushState" : "replaceState"]({}, "", address);
    isNew = false;
    shown = location.hash;
  };
  // Browsers refuse too many changes of the address in a short time.
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(write, 200);
  };

  // Keeps a value, or nothing of it where it is what it was at first.
  const set = (name, value) => {
    if ((values.get(name) || "") === (value || "")) return;
    if (changed !== name) {
      if (timer) write();
      changed = name;
      isNew = true;
    }
    if (value) values.set(name, value);
    else values.delete(name);
    soon();
  };
  // Corrects a value, which is no change that Back would take back.
  const correct = (name, value) => {
    if (value) values.set(name, value);
    else values.delete(name);
    soon();
  };
  // `apply` is called with the value of the address, now and whenever that changes.
  const keep = (name, apply) => {
    kept.set(name, apply);
    apply(values.get(name) || null);
  };
  const go = (id) => {
    if (timer) write();
    isNew = id !== anchor;
    anchor = id;
    changed = null;
    write();
    arrive();
  };

  const guests = [];
  const arrive = () => guests.forEach((guest) => guest(anchor));
  const follow = (event) => {
    if (location.hash === shown) return;
    clearTimeout(timer);
    timer = changed = null;
    isNew = false;
    read();
    kept.forEach((apply, name) => apply(values.get(name) || null));
    // Where the reader was on the page before, the browser knows; a new address says where to go.
    if (event.state !== null || !anchor) return;
    history.replaceState({}, "");
    arrive();
  };
  read();
  history.replaceState({}, "");
  addEventListener("popstate", follow);
  return { keep, set, correct, go, arrive, anchor: () => anchor, onArrival: (guest) => guests.push(guest) };
})();
