// Shows only targets and steps whose names match one of the patterns: rows, columns, lines of charts, and steps. Patterns
// that match no target leave the targets alone, and patterns that match no step leave the steps alone.
(() => {
  "use strict";
  const box = document.querySelector(".filter input");
  const output = document.querySelector(".filter output");
  const withNames = [...document.querySelectorAll("[data-of]")];
  const targets = [...new Set(JSON.parse(document.getElementById("lines").textContent).map(([, target]) => target))];
  const steps = [...document.querySelectorAll("nav .steps li")].map((item) => item.dataset.of);

  // `*` and `?` work as in file names. A pattern without them matches any part of a name.
  const pattern = (text) => {
    const source = text.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
    return new RegExp(/[*?]/.test(text) ? `^(.*\\.)?${source}$` : source, "i");
  };
  const tally = (names, shown, noun) => `${shown.length} of ${names.length} ${noun}${names.length === 1 ? "" : "s"}`;
  const apply = (text) => {
    const words = text.split(/\s+/).filter(Boolean);
    const patterns = words.map(pattern);
    const like = (names) => names.filter((name) => patterns.some((it) => it.test(name)));
    const found = [targets, steps].map(like);
    const [someTargets, someSteps] = [targets, steps].map((names, at) => (found[at].length ? found[at] : names));
    const shown = new Set([...someTargets, ...someSteps]);
    const unmatched = words.filter((_, at) => ![...targets, ...steps].some((name) => patterns[at].test(name)));
    hide((name) => !shown.has(name));
    const counts = [tally(targets, someTargets, "target"), tally(steps, someSteps, "step")].join(", ");
    if (!words.length) output.textContent = "";
    else if (unmatched.length === words.length) output.textContent = "nothing matches: all is shown";
    else output.textContent = counts + (unmatched.length ? `; nothing matches ${unmatched.join(" ")}` : "");
  };

  const hide = (isHidden) => {
    const rows = new Map();
    const tables = new Set();
    for (const it of withNames) {
      const hidden = isHidden(it.dataset.of);
      const table = it.tagName === "TH" && it.closest("table");
      if (!table) it.classList.toggle("filtered", hidden);
      else if (it.closest("thead")) for (const row of table.rows) row.cells[it.cellIndex].classList.toggle("filtered", hidden);
      else rows.set(it.parentElement, rows.get(it.parentElement) || hidden);
      if (table) tables.add(table);
    }
    for (const [row, hidden] of rows) row.classList.toggle("filtered", hidden);
    for (const table of tables) {
      const isEmpty = [...table.tBodies[0].rows].every((row) => row.classList.contains("filtered"));
      table.closest(".block").classList.toggle("filtered", isEmpty);
    }
    document.dispatchEvent(new Event("filtered"));
  };

  let now = "";
  const filter = (text) => {
    if (text === now) return;
    now = text;
    apply(text);
    view.set("filter", text);
  };
  box.addEventListener("input", () => filter(box.value.trim()));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    box.value = "";
    filter("");
  });
  view.keep("filter", (value) => {
    box.value = value || "";
    filter(box.value);
  });
})();
