// Draws a chart when it comes into view, and all of them before the page is printed.
(() => {
  "use strict";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let printing = false;
  // Told apart also by those who don't see red and green alike; from the eleventh line on the dashes differ.
  const LIGHT = {
    lines: ["#0b62a4", "#d1600a", "#1d8348", "#9b3fb5", "#b8860b", "#c2185b", "#00838f", "#6d4c41", "#5c6bc0", "#444b52"],
    ink: "#57606a", grid: "#e4e8ec",
  };
  const DARK = {
    lines: ["#6cb4f5", "#ff9a4d", "#5ccb8a", "#d493ea", "#e6c04b", "#ff7fae", "#4dd0da", "#c7a79a", "#a3aef5", "#c3cad2"],
    ink: "#97a1ac", grid: "#2a3037",
  };
  const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
  const colours = () => (dark.matches && !printing ? DARK : LIGHT);
  const drawn = new Map();

  const short = (value) => {
    const size = Math.abs(value);
    const trim = (number, unit) => String(+number.toPrecision(4)) + unit;
    if (size >= 1e9) return trim(value / 1e9, "G");
    if (size >= 1e6) return trim(value / 1e6, "M");
    if (size >= 1e4) return trim(value / 1e3, "k");
    return String(+value.toPrecision(4));
  };

  // Curves share one axis of time. A bucket of k seconds is two points, half a bucket apart.
  const columns = (data) => {
    const length = Math.max(0, ...data.s.map(([, , values]) => values.length));
    const step = data.k === 1 ? 1 : data.k / 2;
    const seconds = Array.from({ length }, (_, index) => index * step);
    const pad = (values) => values.concat(new Array(length - values.length).fill(null));
    return [seconds, ...data.s.map(([, , values]) => pad(values))];
  };

  // A value between two gaps is no part of a line: it is drawn as a point.
  const lonely = (chart, index, all) => {
    if (all) return null;
    const values = chart.data[index];
    const points = [];
    values.forEach((value, at) => {
      if (value != null && values[at - 1] == null && values[at + 1] == null) points.push(at);
    });
    return points.length ? points : null;
  };

  const draw = (figure) => {
    const plot = figure.querySelector(".plot");
    const before = drawn.get(figure);
    const hidden = before ? new Set(before.series.filter((line) => !line.show).map((line) => line.label)) : new Set();
    if (before) before.destroy();
    const view = figure.dataset.view || "targets";
    const data = JSON.parse(figure.querySelector(`script[data-view="${view}"]`).textContent);
    const colour = colours();
    const values = columns(data);
    const few = values[0].length < 3;
    const axis = { stroke: colour.ink, grid: { stroke: colour.grid, width: 1 }, ticks: { stroke: colour.grid, width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
    const seen = new Map();
    const line = ([label, index]) => {
      // Parts of one target have its colour and differ in their dashes.
      const turn = view === "parts" ? seen.get(index) || 0 : Math.floor(index / colour.lines.length);
      seen.set(index, turn + 1);
      return {
        label, show: !hidden.has(label), width: 1.25, dash: DASHES[turn % DASHES.length],
        stroke: colour.lines[index % colour.lines.length], points: { show: few, size: 5, filter: lonely },
        value: (_, value) => (value == null ? "–" : short(value)),
      };
    };
    const options = {
      width: Math.max(plot.clientWidth, 200), height: 220,
      cursor: { sync: { key: figure.dataset.step }, focus: { prox: 24 }, points: { size: 6 } },
      focus: { alpha: data.s.length > 1 ? 0.25 : 1 },
      scales: { x: { time: false, range: (_, least, most) => (most > least ? [least, most] : [least, least + 1]) }, y: { range: (_, least, most) => [0, most > 0 ? most * 1.06 : 1] } },
      axes: [
        { ...axis, size: 30, values: (_, marks) => marks.map(String) },
        { ...axis, size: 52, values: (_, marks) => marks.map(short) },
      ],
      series: [{ label: "second", value: (_, value) => (value == null ? "–" : String(Math.floor(value))) }, ...data.s.map(line)],
    };
    const chart = new uPlot(options, values, plot);
    drawn.set(figure, chart);
    figure.querySelectorAll(".u-series th").forEach((head, index) => {
      if (index === 0) return;
      const entry = head.parentElement;
      head.tabIndex = 0;
      head.setAttribute("role", "button");
      const tell = () => head.setAttribute("aria-pressed", String(!entry.classList.contains("u-off")));
      tell();
      head.addEventListener("click", () => requestAnimationFrame(() => figure.querySelectorAll(".u-series th[role]").forEach((other) =>
        other.setAttribute("aria-pressed", String(!other.parentElement.classList.contains("u-off"))))));
      head.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        head.dispatchEvent(new MouseEvent("click", { bubbles: true, ctrlKey: event.ctrlKey }));
      });
    });
  };

  const figures = [...document.querySelectorAll("figure[data-step]")];
  const sight = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      sight.unobserve(entry.target);
      if (!drawn.has(entry.target)) draw(entry.target);
    }
  }, { rootMargin: "600px" });
  const widths = new ResizeObserver((entries) => {
    for (const entry of entries) {
      const chart = drawn.get(entry.target.parentElement);
      const width = Math.floor(entry.contentRect.width);
      if (chart && width > 0 && width !== chart.width) chart.setSize({ width, height: 220 });
    }
  });
  for (const figure of figures) {
    sight.observe(figure);
    widths.observe(figure.querySelector(".plot"));
    const button = figure.querySelector("button");
    if (button) button.addEventListener("click", () => {
      const parts = figure.dataset.view !== "parts";
      figure.dataset.view = parts ? "parts" : "targets";
      button.setAttribute("aria-pressed", String(parts));
      draw(figure);
    });
  }
  const again = () => [...drawn.keys()].forEach(draw);
  dark.addEventListener("change", again);
  addEventListener("beforeprint", () => { printing = true; figures.forEach(draw); });
  addEventListener("afterprint", () => { printing = false; again(); });
})();
