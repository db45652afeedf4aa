// Stores the state of the page in its address, after the anchor: `#step-l-i0&filter=pg17.*&zoom.step-l-i0=10-60`. A reload,
// a mailed link and Back restore it.
const view = (() => {
  "use strict";
  const kept = new Map();
  let anchor = "";
  let values = new Map();
  let shown = null;
  // The last value that was changed, and whether the next write adds an entry to the history: continued dragging or typing
  // adds none.
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
  // Browsers limit how often the address may change.
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(write, 200);
  };

  // Stores a value, or removes it if it is the initial one.
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
  // Corrects a value without an entry in the history.
  const correct = (name, value) => {
    if (value) values.set(name, value);
    else values.delete(name);
    soon();
  };
  // Calls `apply` with the stored value, now and whenever the address changes.
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
    // The browser restores the position on Back; a new address determines its own.
    if (event.state !== null || !anchor) return;
    history.replaceState({}, "");
    arrive();
  };
  read();
  history.replaceState({}, "");
  addEventListener("popstate", follow);
  return { keep, set, correct, go, arrive, anchor: () => anchor, onArrival: (guest) => guests.push(guest) };
})();
