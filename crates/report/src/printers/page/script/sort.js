// Sorts a table by a click on the head of a column, or Enter: numbers from the largest, texts from the first; then in
// reverse, and then as before. Arrow keys move between heads.
(() => {
  "use strict";
  const UNITS = {
    ns: 1e-9, "\u00b5s": 1e-6, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600,
    B: 1, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, k: 1e3, M: 1e6, G: 1e9, "%": 1, x: 1, "": 1,
  };
  const texts = new Intl.Collator("en", { numeric: true });
  // Returns the text without its mark, or the value that the cell states.
  const textOf = (cell) => {
    if (cell.dataset.value) return cell.dataset.value;
    const mark = cell.querySelector(".m");
    const text = cell.textContent.trim();
    return mark && mark.textContent ? text.slice(0, -mark.textContent.length).trim() : text;
  };
  // Parses a number with its unit, or several that add up (`4 min 5 s`), possibly followed by an interval in parentheses.
  const numberOf = (text) => {
    if (text === "nonzero") return Number.MIN_VALUE;
    const plain = text.replace(/\u2212/g, "-").replace(/,(?=\d{3})/g, "").replace(/^[<>~]/, "").replace(/\s*\(.*$/, "");
    const parts = [...plain.matchAll(/(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-z\u00b5%]*)\s*/gi)];
    const isWhole = parts.length > 0 && parts.map(([part]) => part).join("") === plain;
    if (!isWhole || parts.some(([, , unit]) => !(unit in UNITS))) return null;
    return parts.reduce((sum, [, number, unit]) => sum + number * UNITS[unit], 0);
  };

  const orders = new WeakMap();
  const sort = (head) => {
    const table = head.closest("table");
    const body = table.tBodies[0];
    if (!orders.has(body)) orders.set(body, [...body.rows]);
    const order = orders.get(body);
    const cells = order.map((row) => {
      const text = textOf(row.cells[head.cellIndex]);
      return { row, text, number: numberOf(text), isLast: row.classList.contains("target") };
    });
    const withFigures = cells.filter(({ text, isLast }) => !isLast && !["", "n/a", "-"].includes(text));
    const isOfNumbers = withFigures.filter(({ number }) => number !== null).length > withFigures.length / 2;
    const turns = isOfNumbers ? ["descending", "ascending", null] : ["ascending", "descending", null];
    const now = turns[(turns.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    table.classList.toggle("sorted", now !== null);
    if (now !== null) {
      head.setAttribute("aria-sort", now);
      const sign = now === "ascending" ? 1 : -1;
      // Cells without a figure come last in either direction, after them requested rates.
      const rank = (cell) => (cell.isLast ? 2 : !withFigures.includes(cell) || (isOfNumbers && cell.number === null) ? 1 : 0);
      const ranks = new Map(cells.map((cell) => [cell, rank(cell)]));
      cells.sort((a, b) => ranks.get(a) - ranks.get(b) || (ranks.get(a) ? 0 : sign * (isOfNumbers ? a.number - b.number : texts.compare(a.text, b.text))));
    }
    body.append(...cells.map(({ row }) => row));
  };

  for (const { rows: [row] } of document.querySelectorAll("main thead")) [...row.cells].forEach((head, at) => { head.tabIndex = at ? -1 : 0; });
  const headOf = (event) => event.target.closest("main thead tr:first-child th");
  document.addEventListener("click", (event) => { if (headOf(event)) sort(headOf(event)); });
  const move = (from, to) => {
    if (!to || to.tagName !== "TH") return false;
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
    return true;
  };
  const seen = (it, towards) => {
    let next = it[towards];
    while (next && next.classList.contains("filtered")) next = next[towards];
    return next;
  };
  document.addEventListener("keydown", (event) => {
    const head = event.target.closest("main th[tabindex]");
    if (!head || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = head.parentElement;
    const isAbove = row.parentElement.tagName === "THEAD";
    const first = (row) => row && row.cells[0];
    const body = head.closest("table").tBodies[0];
    const next = {
      ArrowLeft: () => seen(head, "previousElementSibling"),
      ArrowRight: () => seen(head, "nextElementSibling"),
      ArrowUp: () => first(seen(row, "previousElementSibling") || (isAbove ? null : head.closest("table").tHead.rows[0])),
      ArrowDown: () => (isAbove ? first([...body.rows].find((it) => !it.classList.contains("filtered"))) : first(seen(row, "nextElementSibling"))),
    }[event.key];
    if (next ? move(head, next()) : (event.key === "Enter" || event.key === " ") && isAbove) event.preventDefault();
    if (!next && event.key !== "Tab" && isAbove && (event.key === "Enter" || event.key === " ")) sort(head);
  });
})();
