// Polls the state of the run once a second, and draws the running step: two charts for each kind of operation. When cells have ended, it
// shows them, and each target relative to the base.
(() => {
  "use strict";
  const EVERY_MS = 1000;
  const SECONDS_MAX = 3600;
  // The number of last seconds that are fetched again: connections that had to wait report late.
  const SECONDS_REPEATED = 15;
  const HEIGHT = 240;
  // Rows have their own axis on the right.
  const CHARTS = [
    { title: "per second", log: false, curves: [["operations", "ok", 1], ["rows (right)", "rows", 1], ["failed", "failed", 1]] },
    { title: "latency, ms", log: true, curves: [["p50", "p50_ns", 1e-6], ["p99", "p99_ns", 1e-6], ["longest", "max_ns", 1e-6]] },
  ];
  const COLUMNS = ["ok", "rows", "failed", "p50_ns", "p99_ns", "max_ns"];
  const byId = (name) => document.getElementById(name);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // The drawn step, with its seconds from `first` to before `next`.
  let step = { number: 0, first: 0, next: 0, kinds: new Map() };
  // The number of the update of ended cells that is shown.
  let seen = 0;

  document.documentElement.classList.add("js");

  const count = (value) => Math.round(value).toLocaleString("en-US");
  const span = (seconds) => {
    if (seconds < 100) return `${Math.round(seconds)} s`;
    const minutes = Math.round(seconds / 60);
    return minutes < 100 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  };
  const time = (ns) => {
    if (!ns) return "";
    const [unit, size] = [["s", 1e9], ["ms", 1e6], ["\u00b5s", 1e3], ["ns", 1]].find(([, size]) => ns >= size);
    return `${+(ns / size).toPrecision(3)} ${unit}`;
  };
  const append = (name, text, of) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (of) of.append(element);
    return element;
  };

  const showState = (text, mark) => {
    byId("state").className = `status ${mark}`;
    if (byId("state").textContent !== text) byId("state").textContent = text;
  };

  const head = ({ name, assay, directory, cells, step: now }) => {
    document.title = `${now ? `${now.name}, ` : ""}${name} - Assay`;
    byId("run").textContent = name;
    byId("directory").textContent = `${directory}, Assay ${assay}`;
    const failed = cells.failed ? `, ${cells.failed} failed` : "";
    byId("cells").textContent = `${cells.complete} of ${cells.count} cells complete${failed}; about ${span(cells.left_s)} left`;
    if (!now) return showState("no step has begun", "");
    const { target, variant, clients, repeat } = now.cell;
    const place = [target, variant, `${clients} ${clients === 1 ? "client" : "clients"}`, `repeat ${repeat}`, now.name].filter(Boolean).join(", ");
    const left = now.left_s === null ? "" : `, about ${span(now.left_s)} left`;
    const lag = now.lag_s === null ? "" : `, replica lags ${time(now.lag_s * 1e9) || "0 s"}`;
    const mark = { valid: "good", failed: "bad", invalid: "bad", interrupted: "doubt" }[now.state] || "";
    showState(`${place}: ${now.state}, ${span(now.elapsed_s)}${left}${lag}`, mark);
  };

  const row = (kind) => {
    const last = (column) => kind[column][kind[column].length - 1] || 0;
    const { total } = kind;
    const cells = [kind.role, count(last("ok")), count(last("rows")), time(last("p50_ns")), time(last("p99_ns")), time(last("max_ns")),
      count(total.ok), count(total.failed), count(total.retried)];
    const line = document.createElement("tr");
    append("th", kind.kind, line).scope = "row";
    cells.forEach((text) => append("td", text, line));
    if (total.failed) line.cells[8].className = "failed";
    return line;
  };

  const decades = (_, least, most) => {
    if (least == null) return [0.1, 1];
    const [low, high] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most))];
    return [10 ** low, 10 ** Math.max(high, low + 1)];
  };

  const chart = (plot, { log, curves }, data) => {
    const style = getComputedStyle(document.documentElement);
    const [ink, grid] = ["--soft", "--grid"].map((name) => style.getPropertyValue(name).trim());
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
    const lines = curves.map(([label, column], at) => ({
      label, scale: column === "rows" ? "rows" : "y", stroke: style.getPropertyValue(`--c${at}`).trim(), width: 1.5, dash: column === "rows" ? [7, 3] : [],
    }));
    const upwards = { range: (_, least, most) => [0, most > 0 ? most * 1.06 : 1] };
    return new uPlot({
      width: Math.max(plot.clientWidth, 200), height: HEIGHT, cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false }, y: log ? { distr: 3, range: decades } : upwards, ...(log ? {} : { rows: upwards }) },
      axes: [axis, { ...axis, size: 64 }, ...(log ? [] : [{ ...axis, scale: "rows", side: 1, size: 64, grid: { show: false } }])],
      series: [{ label: "second" }, ...lines],
    }, data, plot);
  };

  const columns = (kind, { log, curves }) => {
    const at = Array.from(kind.ok, (_, index) => step.first + index);
    // A logarithmic scale has no zero.
    return [at, ...curves.map(([, column, unit]) => kind[column].map((value) => (log && !value ? null : value * unit)))];
  };

  const figures = (kind) => CHARTS.map((what) => {
    const figure = append("figure", undefined, byId("charts"));
    figure.hidden = true;
    append("figcaption", `${kind.kind}: ${what.title}`, figure);
    const plot = append("div", undefined, figure);
    return { what, figure, plot, drawn: null };
  });

  const draw = () => {
    byId("kinds").replaceChildren(...Array.from(step.kinds.values(), row));
    byId("running").hidden = step.kinds.size === 0;
    for (const kind of step.kinds.values()) {
      for (const one of kind.figures) {
        const data = columns(kind, one.what);
        if (one.drawn) one.drawn.setData(data);
        else if (data[0].length) {
          one.figure.hidden = false;
          one.drawn = chart(one.plot, one.what, data);
        }
      }
    }
  };

  // Redraws all charts, for another width or other colors.
  const redraw = () => {
    for (const { figures } of step.kinds.values()) {
      for (const one of figures) {
        if (one.drawn) one.drawn.destroy();
        one.drawn = null;
      }
    }
    draw();
  };

  const receive = (now) => {
    if (now.number !== step.number || now.from < step.first || now.from > step.next) {
      step = { number: now.number, first: now.from, next: now.from, kinds: new Map() };
      byId("charts").replaceChildren();
    }
    const seen = now.from - step.first;
    for (const { kind: name, ...update } of now.kinds) {
      const known = step.kinds.get(name) || { kind: name };
      for (const column of COLUMNS) {
        const before = known[column] || new Array(seen).fill(0);
        known[column] = before.slice(0, seen).concat(update[column]).slice(-SECONDS_MAX);
      }
      Object.assign(known, { role: update.role, total: update.total });
      if (!known.figures) known.figures = figures(known);
      step.kinds.set(name, known);
      step.next = Math.max(step.next, now.from + update.ok.length);
    }
    step.first = Math.max(step.first, step.next - SECONDS_MAX);
    draw();
  };

  const cellName = ({ target, variant, clients }) => [target, variant, `${clients} ${clients === 1 ? "client" : "clients"}`].filter(Boolean).join(", ");
  const rate = (perSecond) => (perSecond >= 100 ? count(perSecond) : String(+perSecond.toPrecision(3)));
  const ratio = (value) => (value === undefined ? "" : value.toPrecision(3));
  // The names of all steps, in the order in which cells run them.
  const stepsOf = (lists) => {
    const names = [];
    for (const list of lists) list.forEach((name, at) => { if (!names.includes(name)) names.splice(at > 0 ? names.indexOf(list[at - 1]) + 1 : 0, 0, name); });
    return names;
  };
  // Fills a table: heads, and rows of a name and figures.
  const fill = (section, heads, rows) => {
    const [thead, tbody] = ["thead", "tbody"].map((name) => section.querySelector(name));
    const line = document.createElement("tr");
    heads.forEach((text, at) => {
      const cell = append("th", text, line);
      cell.scope = "col";
      if (at > 0) cell.className = "n";
    });
    thead.replaceChildren(line);
    tbody.replaceChildren(...rows.map(({ name, cells }) => {
      const row = document.createElement("tr");
      append("th", name, row).scope = "row";
      for (const { text, mark } of cells) append("td", text, row).className = mark || "";
      return row;
    }));
    section.hidden = rows.length === 0;
  };
  const showSoFar = ({ number, base, relative, cells, left_out: leftOut }, directory) => {
    seen = number;
    const compared = stepsOf(relative.map(({ steps }) => steps.map(([name]) => name)));
    fill(byId("compared"), [`relative to ${base}`, "repeats", "mean", ...compared], relative.map(({ cell, repeats, mean, steps }) => {
      const ratios = new Map(steps);
      return { name: cellName(cell), cells: [String(repeats), ratio(mean), ...compared.map((name) => ratio(ratios.get(name)))].map((text) => ({ text })) };
    }));
    byId("compared").querySelector(".note").textContent =
      `Ratios of throughput, as geometric means of the repeats that both have completed. They have no verdict: run "assay compare ${directory}" for intervals.`;

    const measured = stepsOf(cells.map(({ steps }) => steps.map(({ name }) => name)));
    fill(byId("ended"), ["cell", "repeat", "", ...measured], cells.toReversed().map(({ cell, status, steps }) => {
      const rates = new Map(steps.map((one) => [one.name, one]));
      const figures = measured.map((name) => {
        const one = rates.get(name);
        return one ? { text: rate(one.per_second), mark: one.is_valid ? "" : "invalid" } : { text: "" };
      });
      return { name: cellName(cell), cells: [{ text: String(cell.repeat) }, { text: status, mark: status === "complete" ? "" : "failed" }, ...figures] };
    }));
    const earlier = leftOut ? ` ${leftOut} earlier cells are left out.` : "";
    byId("ended").querySelector(".note").textContent = `Rows or operations per second, the last cell first; invalid steps are gray.${earlier}`;
  };

  const poll = async () => {
    try {
      const answer = await fetch(`live.json?step=${step.number}&from=${Math.max(step.first, step.next - SECONDS_REPEATED)}&seen=${seen}`, { cache: "no-store" });
      const now = await answer.json();
      head(now);
      if (now.so_far) showSoFar(now.so_far, now.directory);
      if (now.step) receive(now.step);
    } catch (error) {
      showState(error instanceof TypeError ? "no answer: the run has ended, or cannot be reached" : String(error), "doubt");
    }
    setTimeout(poll, EVERY_MS);
  };

  dark.addEventListener("change", redraw);
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width !== width) redraw();
    width = contentRect.width;
  }).observe(byId("charts"));
  poll();
})();
