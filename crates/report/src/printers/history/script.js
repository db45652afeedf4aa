// Filters the series, and draws the details of one when it is opened. All texts are set as text, never as markup.
(() => {
  "use strict";
  // Without scripts, the filter stays hidden.
  document.documentElement.classList.add("js");
  const data = JSON.parse(document.getElementById("data").textContent);
  const rows = [...document.querySelectorAll("details.series")];
  const form = document.querySelector("form.filter");
  const [box, onlyChanged] = form.querySelectorAll("input");
  const output = form.querySelector("output");
  const [NAME, STARTED, MACHINE, ASSAY] = [0, 1, 2, 3];
  const [RUN, MEAN, LOW, HIGH, REPEATS, VERSION] = [0, 1, 2, 3, 4, 5];
  // The size of a chart, and the places of its axes.
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [1000, 300, 80, 10, 10, 30];
  const POINTS_LISTED = 500;

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const drawn = (name, attributes = {}, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  };
  const number = (value) => value.toLocaleString("en", value >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 });
  const percent = (share) => `${(share * 100).toLocaleString("en", { maximumSignificantDigits: 2 })}%`;

  const texts = new Map(rows.map((row) => {
    const { versions } = data.series[row.id];
    return [row, `${row.querySelector("summary").textContent} ${versions.join(" ")}`.toLowerCase()];
  }));
  const apply = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const isShown = words.every((word) => texts.get(row).includes(word)) && (!onlyChanged.checked || row.dataset.changed !== "0");
      row.hidden = !isShown;
      shown += isShown;
    }
    output.textContent = shown === rows.length ? `${rows.length} series` : `${shown} of ${rows.length} series`;
  };
  box.addEventListener("input", () => { view.set("filter", box.value.trim()); apply(); });
  onlyChanged.addEventListener("change", () => { view.set("changed", onlyChanged.checked ? "1" : ""); apply(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  view.keep("filter", (value) => { box.value = value || ""; apply(); });
  view.keep("changed", (value) => { onlyChanged.checked = value === "1"; apply(); });

  // The pages of `assay serve`; a file has none.
  const page = (path, query) => `./${path}?${new URLSearchParams(query)}`;
  const runName = (name) => data.served ? element("a", { href: page("run", { name }) }, name) : name;
  const comparison = (series, at) => {
    const [before, run] = [at - 1, at].map((place) => data.runs[series.points[place][RUN]][NAME]);
    const sides = { base: before, base_target: series.target, other: run, other_target: series.target };
    return element("a", { href: page("compare", sides) }, "compare with it");
  };

  const titled = (series, at) => {
    const point = series.points[at];
    const run = data.runs[point[RUN]];
    const version = series.versions[point[VERSION]];
    return `${run[STARTED]} ${version}: ${number(point[MEAN])} ${series.unit} (${number(point[LOW])} to ${number(point[HIGH])}, ${point[REPEATS]} repeats)\n${run[NAME]}`;
  };
  const chart = (series) => {
    const { points, levels, changes } = series;
    const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img", "aria-label": "the points; the table below has them" });
    const low = Math.min(...points.map((point) => point[LOW]));
    const high = Math.max(...points.map((point) => point[HIGH]));
    // The axis begins at zero unless all lies within a small part of it.
    const floor = low > high * 0.6 ? low - (high - low) * 0.2 : 0;
    const span = high - floor || 1;
    const last = Math.max(points.length - 1, 1);
    const x = (at) => LEFT + 8 + (WIDTH - LEFT - RIGHT - 16) * (at / last);
    const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ((value - floor) / span);
    for (let part = 0; part <= 4; part += 1) {
      const value = floor + (span * part) / 4;
      svg.append(drawn("line", { class: "rule", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }));
      svg.append(drawn("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, number(value)));
    }
    for (const change of changes) {
      const [from, to] = [x(change.earliest - 0.5), x(change.latest - 0.5)];
      if (to > from) svg.prepend(drawn("rect", { class: "place", x: from, width: to - from, y: TOP, height: HEIGHT - TOP - BOTTOM }));
      svg.append(drawn("line", { class: `mark ${change.class}`, x1: x(change.at - 0.5), x2: x(change.at - 0.5), y1: TOP, y2: HEIGHT - BOTTOM }));
    }
    svg.append(drawn("polyline", { points: points.map((point, at) => `${x(at).toFixed(1)},${y(point[MEAN]).toFixed(1)}`).join(" ") }));
    for (const [start, end, mean] of levels) svg.append(drawn("line", { class: "level", x1: x(start), x2: x(end - 1), y1: y(mean), y2: y(mean) }));
    points.forEach((point, at) => {
      const name = data.runs[point[RUN]][NAME];
      const group = data.served ? drawn("a", { href: page("run", { name }) }) : drawn("g");
      group.append(drawn("title", {}, titled(series, at)));
      if (point[HIGH] > point[LOW]) group.append(drawn("line", { class: "range", x1: x(at), x2: x(at), y1: y(point[LOW]), y2: y(point[HIGH]) }));
      group.append(drawn("circle", { class: "dot", cx: x(at), cy: y(point[MEAN]), r: points.length > 300 ? 1.5 : 3 }));
      svg.append(group);
    });
    const started = (at) => data.runs[points[at][RUN]][STARTED];
    svg.append(drawn("text", { x: LEFT, y: HEIGHT - 6 }, started(0)));
    svg.append(drawn("text", { x: WIDTH - RIGHT, y: HEIGHT - 6, "text-anchor": "end" }, started(points.length - 1)));
    return svg;
  };
  const told = (series) => series.changes.map((change) => {
    const name = (at) => data.runs[series.points[at][RUN]][NAME];
    const item = element("li", {}, element("b", { class: change.class }, change.text));
    item.append(` since ${name(change.at)}, p ${change.p < 0.001 ? "<0.001" : change.p.toFixed(3)}, attributed to ${change.cause}`);
    if (change.latest > change.earliest) item.append(`. It may have begun in any run from ${name(change.earliest)} to ${name(change.latest)}`);
    const details = change.details.length ? change.details : ["nothing that is recorded changed with it"];
    item.append(element("ul", {}, ...details.map((text) => element("li", {}, text))));
    return item;
  });
  const table = (series) => {
    const heads = ["run", "started (UTC)", "version", "machine", "repeats", "mean", "least", "greatest", "assay"];
    if (data.served) heads.push("the run before");
    const body = element("tbody");
    const first = Math.max(series.points.length - POINTS_LISTED, 0);
    for (let at = series.points.length - 1; at >= first; at -= 1) {
      const point = series.points[at];
      const run = data.runs[point[RUN]];
      const cells = [run[STARTED], series.versions[point[VERSION]], run[MACHINE], point[REPEATS], number(point[MEAN]), number(point[LOW]), number(point[HIGH]), run[ASSAY]];
      const row = element("tr", {}, element("th", { class: "text", scope: "row" }, runName(run[NAME])), ...cells.map((cell) => element("td", {}, String(cell))));
      if (data.served) row.append(element("td", {}, ...(at > 0 ? [comparison(series, at)] : [])));
      body.append(row);
    }
    const head = element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text))));
    return element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "points" }, element("table", { class: "figures bare" }, head, body));
  };
  const open = (row) => {
    const place = row.querySelector(".detail");
    if (place.childElementCount) return;
    const series = data.series[row.id];
    const noise = series.spread === null
      ? "Too few runs to find changes."
      : `Within a level, a run varies by ${percent(series.spread)}. ${series.confirming === null ? "" : `${series.confirming} new runs show a change of ${percent(series.visible)} or more.`}`;
    place.append(chart(series), element("ul", {}, ...told(series)), element("p", { class: "note" }, noise), table(series));
  };
  for (const row of rows) {
    row.addEventListener("toggle", () => {
      if (row.open) open(row);
      if (row.open && view.anchor() !== row.id) view.go(row.id);
    });
  }
  view.onArrival((anchor) => {
    const row = rows.find(({ id }) => id === anchor);
    if (!row) return;
    row.hidden = false;
    row.open = true;
    open(row);
    row.scrollIntoView();
  });
  view.arrive();
})();
