// Draws charts when they come near to view, drops them when they are far away, and draws all before the page is printed.
// Hiding targets and zooming apply to all charts of a step.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const { lines, legend, BUCKETS } = chartData;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
  const COLOR_COUNT = 10;
  // The opacity of repeats beside their median.
  const REPEAT_OPACITY = "66";
  const TIP_ROWS = 12;
  const TIP_MARKS = 4;
  // Up to this number of marks, each has a line over the whole height.
  const LINED_MARKS_MAX = 40;
  // Up to this number, all entries have colors, as in the page.
  const COLORED_MAX = 8;
  // With fewer points than this, lines have a mark at each of them.
  const MARKED_POINTS = 10;
  // The height of a row of events above a chart, and of the bars in it.
  const EVENT_ROW = 5;
  const EVENT_BAR = 4;
  // The share of ratios at either end that a scale may cut off.
  const RATIOS_CUT = 0.05;
  // The maximum distance of a click from a line, in pixels.
  const NEAR = 24;
  let printing = false;

  const palette = () => {
    const style = getComputedStyle(root);
    const of = (name) => style.getPropertyValue(name).trim();
    return { lines: Array.from({ length: COLOR_COUNT }, (_, at) => of(`--c${at}`)), ink: of("--soft"), grid: of("--grid"), faint: of("--faint") };
  };

  const short = (value) => {
    const size = Math.abs(value);
    const trim = (number, unit) => String(+number.toPrecision(3)) + unit;
    if (size >= 1e9) return trim(value / 1e9, "G");
    if (size >= 1e6) return trim(value / 1e6, "M");
    if (size >= 1e4) return trim(value / 1e3, "k");
    if (size >= 1e3) return String(Math.round(value));
    return size > 0 && size < 1e-4 ? value.toExponential(1) : String(+value.toPrecision(3));
  };

  const percentile = (nines) => {
    const share = 100 * (1 - 10 ** -nines);
    return `${+share.toFixed(Math.max(1, Math.ceil(nines) - 1))}%`;
  };
  const AXIS = {
    seconds: { head: (value, { w }) => (w ? `${value.toFixed(2)} s` : `second ${Math.floor(value)}`), mark: (value) => `${value} s`, range: (least, most, { at, end }) => (least <= at[0] && most >= at[at.length - 1] ? [0, end] : [least, most]) },
    nines: { head: percentile, mark: (value) => (value % 1 === 0 ? percentile(value) : ""), range: (least, most) => [0, Math.max(most, 1)] },
    buckets: { head: (value) => (value < 9 ? `up to ${BUCKETS[value]}` : "more than 16s"), mark: (value) => BUCKETS[value] || "", range: (least, most) => [least - 0.3, most + 0.3] },
  };

  // Ticks on an axis of seconds.
  const SECONDS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6].flatMap((unit) => [unit, 2 * unit, 5 * unit]);

  // A value between two gaps is drawn as a point.
  const isolatedPoints = (chart, index, all) => {
    if (all) return null;
    // Lines span places that only other curves have.
    const own = [...chart.data[index].entries()].filter(([, value]) => value !== undefined);
    const has = (at) => own[at] && own[at][1] !== null;
    const points = own.flatMap(([place], at) => (has(at) && !has(at - 1) && !has(at + 1) ? [place] : []));
    return points.length ? points : null;
  };

  // The next of 1, 2, 5, 10 below or above: the ends of a logarithmic scale.
  const below = (value) => [5, 2, 1].map((digit) => digit * 10 ** Math.floor(Math.log10(value))).find((mark) => mark <= value * 1.0001);
  const above = (value) => [1, 2, 5, 10].map((digit) => digit * 10 ** Math.floor(Math.log10(value))).find((mark) => mark >= value * 0.9999);

  // A scale over many powers of ten has only their grid lines.
  const decades = (log, marks) => (log && marks[marks.length - 1] > 1000 * marks[0] ? marks.map((mark) => (Math.abs(Math.log10(mark) - Math.round(Math.log10(mark))) < 1e-9 ? mark : null)) : marks);

  // The state of each step's section.
  const steps = new Map();
  const stepOf = (figure) => steps.get(figure.closest("section.step"));

  // `colored` is null if all entries have colors. Otherwise it contains those that stand out or were clicked.
  const isShown = (step, entry) => !step.hidden.has(entry) && !step.filtered.has(entry);
  // If a filter leaves only a few entries and none stands out, these have colors.
  const isFew = (step) => {
    const left = step.filtered.size ? step.buttons.map(entryOf).filter((entry) => !step.filtered.has(entry)) : [];
    return step.colored && left.length > 0 && left.length <= COLORED_MAX && !left.some((entry) => step.colored.has(entry));
  };
  const hasColor = (step, entry) => !step.colored || step.colored.has(entry) || isFew(step);
  const entryOf = (button) => +button.dataset.entry;

  const height = () => (innerWidth < 640 ? 200 : 240);
  const widthOf = (plot) => Math.max(plot.clientWidth, 200);

  // The look of a curve: a repeat is thin, and a curve without a color is gray.
  const seriesOf = (step, { entry, dash, label, isRepeat, isMedian }, isMarked, color) => {
    const isColored = hasColor(step, entry);
    const full = isColored ? color.lines[legend[entry].color] : color.faint;
    const bold = isMedian ? 2.25 : step.colored ? 1.75 : 1.25;
    return {
      label, show: isShown(step, entry), dash: DASHES[dash % DASHES.length],
      width: isRepeat || !isColored ? 0.75 : bold, stroke: isRepeat ? full + REPEAT_OPACITY : full,
      points: { show: isMarked, size: isRepeat ? 3 : 5, fill: isRepeat ? full + REPEAT_OPACITY : full, filter: isMarked ? undefined : isolatedPoints },
    };
  };

  // The end of a step's seconds, so that its charts have the same axis: that of the first chart by second.
  const endOf = (step) => {
    if (step.end === undefined) {
      const texts = step.figures.map((figure) => figure.querySelector("script").textContent);
      const text = texts.find((other) => other.startsWith('{"k"'));
      step.end = text ? chartData.of(JSON.parse(text)).end : 0;
    }
    return step.end;
  };
  const draw = (figure) => {
    const step = stepOf(figure);
    const plot = figure.querySelector(".plot");
    forget(figure);
    const views = figure.querySelectorAll("script");
    const inParts = figure.dataset.view === "parts" && views.length > 1;
    const data = JSON.parse(views[inParts ? 1 : 0].textContent);
    const kind = data.x || "seconds";
    const log = "log" in figure.dataset;
    const made = chartData.of(data);
    if (kind === "seconds") made.end = Math.max(made.end, endOf(step));
    // Colored lines are drawn above the others, and medians above repeats. Repeats without a color would only be clutter.
    const rank = ({ entry, isRepeat }) => 2 * hasColor(step, entry) + !isRepeat;
    const order = made.curves.map((_, index) => index)
      .filter((index) => !made.curves[index].isRepeat || hasColor(step, made.curves[index].entry))
      .sort((a, b) => rank(made.curves[a]) - rank(made.curves[b]));
    const { at } = made;
    const [columns, curves] = [made.columns, made.curves].map((all) => order.map((index) => all[index]));
    // A logarithmic scale has no zero.
    if (log) columns.forEach((column) => column.forEach((value, at) => { if (value <= 0 && value !== null && value !== undefined) column[at] = null; }));
    const color = palette();
    const few = kind === "buckets" || (kind === "seconds" && at.length < MARKED_POINTS);
    const eventRows = kind === "seconds" && step.marks ? step.marks.kinds.length : 0;
    const axis = { stroke: color.ink, grid: { stroke: color.grid, width: 1 }, ticks: { stroke: color.grid, width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
    const { mark, range } = AXIS[kind];
    const wholes = chartData.wholeRatios(data.h || []);
    const limits = (_, least, most) => {
      if (data.h && !log) return ratioLimits(columns, [...wholes.values()]);
      if (least == null) return log ? [0.1, 1] : [0, 1];
      if (log) return [below(least), Math.max(above(most), below(least) * 10)];
      return [Math.min(0, least), most > 0 ? most * 1.06 : most < 0 ? 0 : 1];
    };
    const options = {
      width: widthOf(plot), height: height(), legend: { show: false },
      // Events are above the chart, and half of the last tick is beside it.
      padding: [eventRows ? eventRows * EVENT_ROW + 4 : null, kind === "nines" ? 34 : 26, null, null],
      cursor: {
        focus: { prox: NEAR }, points: { size: 6 },
        sync: kind === "seconds" ? { key: step.key, setSeries: false, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } } : undefined,
        drag: { x: kind !== "buckets", y: false },
      },
      focus: { alpha: curves.length > 1 ? 0.25 : 1 },
      scales: { x: { time: false, range: (_, least, most) => range(least, most, made) }, y: { distr: log ? 3 : 1, range: limits } },
      axes: [
        { ...axis, size: 30, values: (_, marks) => marks.map(mark), ...(kind === "buckets" && { splits: () => at }), ...(kind !== "buckets" && { incrs: kind === "nines" ? [1] : SECONDS }) },
        { ...axis, size: 52, grid: { ...axis.grid, filter: (_, marks) => decades(log, marks) }, values: (_, marks) => marks.map((value) => (value == null ? "" : short(value))) },
      ],
      series: [{}, ...curves.map((curve) => ({ ...seriesOf(step, curve, few, color), spanGaps: data.w !== undefined }))],
      hooks: {
        draw: [(chart) => { if (kind === "seconds") drawMarks(step, chart, color); drawWholes(step, chart, wholes, color); }],
        ready: [(chart) => { chart.ready = true; }],
        setScale: [(chart, key) => { if (key === "x" && chart.ready && kind === "seconds") zoomed(step, chart); }],
        setCursor: [(chart) => showTip(figure, chart)],
      },
    };
    const chart = new uPlot(options, [at, ...columns], plot);
    chart.root.setAttribute("aria-hidden", "true");
    chart.curves = curves;
    chart.kind = kind;
    chart.source = data;
    chart.second = made.step;
    chart.end = made.end;
    figure.chart = chart;
    step.drawn.add(figure);
    if (step.zoom && kind === "seconds") chart.setScale("x", { min: step.zoom[0], max: step.zoom[1] });
  };

  // The limits of a scale of ratios: nearly all ratios, those of the whole step, and 1. A single stall does not flatten the rest.
  const ratioLimits = (columns, wholes) => {
    const all = columns.flat().filter((ratio) => ratio != null).sort((a, b) => a - b);
    const at = (share) => all[Math.round(share * (all.length - 1))];
    const ends = all.length ? [at(RATIOS_CUT), at(1 - RATIOS_CUT)] : [];
    const [least, most] = [Math.min(1, ...ends, ...wholes), Math.max(1, ...ends, ...wholes)];
    const room = Math.max(0.1 * (most - least), 0.01);
    return [Math.max(0, least - room), most + room];
  };
  // Draws the base as a line at 1, and the ratio of the whole step of each entry as a dashed line.
  const drawWholes = (step, chart, wholes, color) => {
    if (!wholes.size) return;
    const { ctx, bbox } = chart;
    const pixel = devicePixelRatio || 1;
    const horizontal = (ratio, style, dashes) => {
      const top = chart.valToPos(ratio, "y", true);
      if (top < bbox.top || top > bbox.top + bbox.height) return;
      ctx.beginPath();
      ctx.setLineDash(dashes.map((length) => length * pixel));
      ctx.strokeStyle = style;
      ctx.moveTo(bbox.left, top);
      ctx.lineTo(bbox.left + bbox.width, top);
      ctx.stroke();
    };
    ctx.save();
    ctx.lineWidth = 1.25 * pixel;
    horizontal(1, color.ink, []);
    for (const [entry, ratio] of wholes) if (isShown(step, entry) && hasColor(step, entry)) horizontal(ratio, color.lines[legend[entry].color], [8, 5]);
    ctx.restore();
  };

  // Draws the events of the engines' logs as bars above the chart, a row for each kind. If there are few, each also has a line.
  const drawMarks = (step, chart, color) => {
    if (!step.marks) return;
    const { ctx, bbox } = chart;
    const { kinds, marks } = step.marks;
    const pixel = devicePixelRatio || 1;
    const { min, max } = chart.scales.x;
    ctx.save();
    for (const [line, at, lasted, kind] of marks) {
      const { entry } = lines[line];
      if (!isShown(step, entry) || at > max || at + (lasted || 0) < min) continue;
      const left = chart.valToPos(Math.max(at, min), "x", true);
      const right = chart.valToPos(Math.min(at + (lasted || 0), max), "x", true);
      ctx.fillStyle = hasColor(step, entry) ? color.lines[legend[entry].color] : color.faint;
      ctx.globalAlpha = 0.75;
      ctx.fillRect(left, bbox.top - (kinds.length - kind) * EVENT_ROW * pixel, Math.max(right - left, 2 * pixel), EVENT_BAR * pixel);
      if (marks.length > LINED_MARKS_MAX || at < min) continue;
      ctx.globalAlpha = 0.2;
      ctx.fillRect(left, bbox.top, pixel, bbox.height);
    }
    ctx.restore();
  };
  // Returns the texts of the marks between two positions: first events without a duration, such as errors, then the longest.
  const marksAt = (step, from, to) => {
    const rank = ([, , lasted]) => lasted === null ? Number.MAX_VALUE : lasted;
    const near = (step.marks ? step.marks.marks : []).filter(([line, at, lasted]) => isShown(step, lines[line].entry) && at < to && at + (lasted || 0) >= from);
    return near.sort((a, b) => rank(b) - rank(a)).slice(0, TIP_MARKS).map(([line, , lasted, kind, text]) => {
      const what = [step.marks.kinds[kind], lasted === null ? "" : `${short(lasted)} s`].filter(Boolean).join(" ");
      return { entry: lines[line].entry, text: text ? `${what}: ${text}` : what };
    });
  };

  const forget = (figure) => {
    if (!figure.chart) return;
    stepOf(figure).drawn.delete(figure);
    figure.chart.destroy();
    figure.chart = null;
    const tip = figure.querySelector(".tip");
    if (tip) tip.remove();
  };

  // Zooming a chart zooms the other charts of the step.
  const ends = (chart) => [0, chart.end];
  const zoomed = (step, chart) => {
    const { min, max } = chart.scales.x;
    const [first, last] = ends(chart);
    const whole = min <= first && max >= last;
    const before = step.zoom;
    if (whole ? !before : before && before[0] === min && before[1] === max) return;
    step.zoom = whole ? null : [min, max];
    step.all.hidden = whole;
    view.set(`zoom.${step.key}`, whole ? null : step.zoom.map((end) => +end.toFixed(1)).join("-"));
    for (const figure of step.drawn) if (figure.chart !== chart && figure.chart.kind === "seconds") show(step, figure.chart);
  };
  const show = (step, chart) => {
    const [min, max] = step.zoom || ends(chart);
    chart.setScale("x", { min, max });
  };
  const unzoom = (step) => {
    step.zoom = null;
    step.all.hidden = true;
    view.set(`zoom.${step.key}`, null);
    for (const figure of step.drawn) {
      const [min, max] = ends(figure.chart);
      figure.chart.setScale("x", { min, max });
    }
  };

  // The range of the repeats of a median.
  const spread = (chart, { isMedian, group }, idx) => {
    if (!isMedian) return "";
    const values = chart.curves.flatMap((curve, at) => (curve.isRepeat && curve.group === group ? [chart.data[at + 1][idx]] : [])).filter((value) => value != null);
    return values.length ? ` (${short(Math.min(...values))} to ${short(Math.max(...values))})` : "";
  };
  const tipRow = (figure, entry, text) => {
    const row = document.createElement("div");
    const key = document.createElement("i");
    if (hasColor(stepOf(figure), entry)) key.className = `c${legend[entry].color}`;
    row.append(key, text);
    return row;
  };
  // Shows the values at the cursor; of many lines, the nearest.
  const showTip = (figure, chart) => {
    let tip = figure.querySelector(".tip");
    const { idx, left, top } = chart.cursor;
    if (idx == null || left < 0 || !figure.matches(":hover, :focus-within")) {
      if (tip) tip.hidden = true;
      return;
    }
    if (!tip) {
      tip = document.createElement("div");
      tip.className = "tip";
      tip.setAttribute("role", "status");
      chart.over.append(tip);
    }
    let rows = [];
    chart.series.forEach((series, index) => {
      const value = index > 0 && series.show ? chart.data[index][idx] : null;
      const curve = chart.curves[index - 1];
      if (value == null || curve.isRepeat) return;
      rows.push({ value, curve, text: short(value) + spread(chart, curve, idx), far: Math.abs(chart.valToPos(value, "y") - top) });
    });
    const all = rows.length;
    if (all > TIP_ROWS) rows = rows.sort((a, b) => a.far - b.far).slice(0, TIP_ROWS);
    rows.sort((a, b) => b.value - a.value);
    const head = document.createElement("b");
    head.textContent = AXIS[chart.kind].head(chart.data[0][idx], chart.source) + (all > rows.length ? `, ${rows.length} of ${all} lines` : "");
    const place = chart.data[0][idx];
    const half = chart.second / 2;
    const marks = chart.kind !== "seconds" ? [] : marksAt(stepOf(figure), place - half, place + half).map(({ entry, text }) => tipRow(figure, entry, text));
    tip.replaceChildren(head, ...marks, ...rows.map(({ text, curve }) => {
      const row = tipRow(figure, curve.entry, curve.label);
      const number = document.createElement("span");
      number.textContent = text;
      row.append(number);
      return row;
    }));
    tip.hidden = false;
    const right = left > chart.over.clientWidth / 2;
    tip.style.left = right ? "" : `${left + 14}px`;
    tip.style.right = right ? `${chart.over.clientWidth - left + 14}px` : "";
  };

  const KEYS = {
    ArrowLeft: (at) => at - 1, ArrowRight: (at) => at + 1, PageUp: (at) => at - 10, PageDown: (at) => at + 10,
    Home: () => -Infinity, End: () => Infinity,
  };
  const key = (figure, event) => {
    const { chart } = figure;
    if (!chart || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = stepOf(figure);
    if (event.key === "Escape") {
      unzoom(step);
      chart.setCursor({ left: -10, top: -10 });
    } else if (event.key in KEYS) {
      const { min, max } = chart.scales.x;
      const below = chart.data[0];
      const first = below.findIndex((value) => value >= min);
      const last = below.findLastIndex((value) => value <= max);
      const now = chart.cursor.idx ?? (event.key === "ArrowLeft" ? last + 1 : first - 1);
      const at = Math.min(last, Math.max(first, KEYS[event.key](now)));
      chart.setCursor({ left: chart.valToPos(below[at], "x"), top: chart.over.clientHeight / 2 }, true, true);
    } else if ((event.key === "+" || event.key === "-") && chart.kind === "seconds") {
      const { min, max } = chart.scales.x;
      const [first, last] = ends(chart);
      const middle = chart.cursor.idx == null ? (min + max) / 2 : chart.data[0][chart.cursor.idx];
      const half = ((max - min) / 2) * (event.key === "+" ? 0.5 : 2);
      const least = Math.max(first, Math.min(middle - half, last - 2 * half));
      chart.setScale("x", { min: least, max: Math.min(last, least + 2 * half) });
    } else return;
    event.preventDefault();
  };

  // Updates the buttons above the charts. With many entries, a pressed button means colored lines, otherwise visible ones.
  const refresh = (step) => {
    for (const button of step.buttons) {
      const hidden = step.hidden.has(entryOf(button));
      button.setAttribute("aria-pressed", String(!hidden && hasColor(step, entryOf(button))));
      button.classList.toggle("off", hidden);
    }
    for (const { chart } of step.drawn) chart.batch(() => chart.curves.forEach(({ entry }, at) => {
      if (chart.series[at + 1].show !== isShown(step, entry)) chart.setSeries(at + 1, { show: isShown(step, entry) });
    }));
  };
  const written = (entries) => [...entries].sort((a, b) => a - b).join("_");
  const numbers = (text) => (text ? text.split("_").filter(Boolean).map(Number) : []);
  const hide = (step, hidden) => {
    step.hidden = hidden;
    view.set(`hide.${step.key}`, written(hidden));
    refresh(step);
  };
  const setColored = (step, entries) => {
    step.colored = entries;
    view.set(`color.${step.key}`, written(entries) === step.standingOut ? null : written(entries) || "_");
    refresh(step);
    [...step.drawn].forEach(draw);
  };
  const toggled = (entries, entry) => {
    const others = new Set(entries);
    if (!others.delete(entry)) others.add(entry);
    return others;
  };
  const press = (step, entry, event) => {
    if (event.ctrlKey || event.metaKey) hide(step, new Set(step.buttons.map(entryOf).filter((other) => other !== entry)));
    else if (!step.colored || event.shiftKey) hide(step, toggled(step.hidden, entry));
    else if (step.hidden.has(entry)) hide(step, toggled(step.hidden, entry));
    else setColored(step, toggled(step.colored, entry));
  };
  // Handles a click on a line in a chart.
  const clicked = (figure) => {
    const { chart } = figure;
    const step = stepOf(figure);
    if (!chart || !step.colored || chart.cursor.idx == null) return;
    const far = (index) => {
      const value = chart.series[index].show ? chart.data[index][chart.cursor.idx] : null;
      return value == null ? Infinity : Math.abs(chart.valToPos(value, "y") - chart.cursor.top);
    };
    const [nearest] = chart.curves.map((curve, at) => ({ curve, far: far(at + 1) })).sort((a, b) => a.far - b.far);
    if (nearest && nearest.far <= NEAR) setColored(step, toggled(step.colored, nearest.curve.entry));
  };
  const toolbar = (step, bar) => {
    const entries = step.buttons.map(entryOf);
    const tools = [...bar.querySelectorAll("button")];
    const focus = (button) => {
      for (const tool of tools) tool.tabIndex = tool === button ? 0 : -1;
    };
    focus(tools[0]);
    bar.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      focus(button);
      const isAll = button.classList.contains("all");
      if (button === step.all) { unzoom(step); tools[0].tabIndex = 0; }
      else if ("entry" in button.dataset) press(step, entryOf(button), event);
      else {
        hide(step, new Set(isAll || step.colored ? [] : entries));
        if (step.colored) setColored(step, new Set(isAll ? entries : []));
      }
    });
    bar.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      const shown = tools.filter((tool) => !tool.hidden);
      const at = shown.indexOf(document.activeElement);
      if (event.key === "Escape") unzoom(step);
      if (!move || at < 0) return;
      const next = shown[(at + move + shown.length) % shown.length];
      focus(next);
      next.focus();
      event.preventDefault();
    });
    const point = (entry) => {
      for (const { chart } of step.drawn) {
        const at = chart.curves.findIndex((curve) => curve.entry === entry && !curve.isRepeat);
        chart.setSeries(at < 0 ? null : at + 1, { focus: at >= 0 });
      }
    };
    for (const button of step.buttons) {
      button.addEventListener("pointerenter", () => point(entryOf(button)));
      button.addEventListener("pointerleave", () => point(null));
    }
  };

  // Draws one chart at a time, so that the page stays responsive; charts in view come first.
  const waiting = new Set();
  const far = (figure) => {
    const { top, bottom } = figure.getBoundingClientRect();
    return Math.max(0, top - innerHeight, -bottom);
  };
  const next = () => {
    let [nearest] = waiting;
    if (!nearest) return;
    for (const figure of waiting) if (far(figure) < far(nearest)) nearest = figure;
    waiting.delete(nearest);
    if (!nearest.chart) draw(nearest);
    if (waiting.size) setTimeout(next);
  };
  const sight = new IntersectionObserver((entries) => {
    const idle = waiting.size === 0;
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting && !target.chart) waiting.add(target);
      else if (!isIntersecting) {
        waiting.delete(target);
        if (target.chart && !printing && !target.contains(document.activeElement)) forget(target);
      }
    }
    if (idle && waiting.size) setTimeout(next);
  }, { rootMargin: "800px" });
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const { chart } = target.parentElement;
      if (chart && !printing && target.clientWidth > 0 && widthOf(target) !== chart.width) chart.setSize({ width: widthOf(target), height: height() });
    }
  });

  // The switches in the caption of each chart.
  const SWITCHES = {
    parts: { isOn: (figure) => figure.dataset.view === "parts", set: (figure, on) => { figure.dataset.view = on ? "parts" : "lines"; } },
    log: { isOn: (figure) => "log" in figure.dataset, set: (figure, on) => { if (on) figure.dataset.log = ""; else delete figure.dataset.log; } },
  };
  const first = new WeakMap();
  const atFirst = (figure, name) => first.get(figure)[name];
  for (const [name, kept] of Object.entries(SWITCHES)) kept.turn = (figure, on) => {
    kept.set(figure, on);
    const button = figure.querySelector(`button.${name}`);
    if (button) button.setAttribute("aria-pressed", String(on));
  };

  // Restores the state of a step from the page's address.
  const remember = (section, step) => {
    const all = [...section.querySelectorAll("figure")];
    for (const figure of all) first.set(figure, { parts: false, log: SWITCHES.log.isOn(figure) });
    view.keep(`hide.${step.key}`, (value) => {
      step.hidden = new Set(numbers(value));
      refresh(step);
    });
    if (step.colored) view.keep(`color.${step.key}`, (value) => {
      step.colored = new Set(numbers(value || step.standingOut));
      refresh(step);
      [...step.drawn].forEach(draw);
    });
    view.keep(`zoom.${step.key}`, (value) => {
      const [least, most] = (value || "").split("-").map(Number);
      step.zoom = most > least ? [least, most] : null;
      step.all.hidden = !step.zoom;
      for (const { chart } of step.drawn) if (chart.kind === "seconds") show(step, chart);
    });
    for (const [name, kept] of Object.entries(SWITCHES)) view.keep(`${name}.${step.key}`, (value) => {
      const switched = new Set(numbers(value));
      all.forEach((figure, at) => {
        const on = atFirst(figure, name) !== switched.has(at);
        if (on === kept.isOn(figure)) return;
        kept.turn(figure, on);
        if (figure.chart) draw(figure);
      });
    });
  };
  document.addEventListener("filtered", () => {
    for (const step of steps.values()) {
      const wereFew = isFew(step);
      step.filtered = new Set(step.buttons.filter((button) => button.classList.contains("filtered")).map(entryOf));
      refresh(step);
      if (isFew(step) !== wereFew) [...step.drawn].forEach(draw);
    }
  });

  document.querySelectorAll("section.step").forEach((section) => {
    const bar = section.querySelector(".lines");
    if (!bar) return;
    const buttons = [...bar.querySelectorAll("button[data-entry]")];
    const pressed = buttons.filter((button) => button.getAttribute("aria-pressed") === "true").map(entryOf);
    const standingOut = bar.classList.contains("many") ? written(pressed) : null;
    const marks = section.querySelector("script.marks");
    const step = {
      marks: marks && JSON.parse(marks.textContent), key: section.id, buttons, hidden: new Set(), filtered: new Set(), standingOut, colored: standingOut === null ? null : new Set(pressed),
      zoom: null, end: undefined, figures: [...section.querySelectorAll("figure")], drawn: new Set(), all: bar.querySelector(".whole"),
    };
    steps.set(section, step);
    toolbar(step, bar);
    remember(section, step);
    for (const figure of section.querySelectorAll("figure")) {
      sight.observe(figure);
      const plot = figure.querySelector(".plot");
      sizes.observe(plot);
      plot.addEventListener("keydown", (event) => key(figure, event));
      plot.addEventListener("blur", () => { if (figure.chart) figure.chart.setCursor({ left: -10, top: -10 }); });
      plot.addEventListener("click", () => clicked(figure));
      for (const [name, kept] of Object.entries(SWITCHES)) {
        const button = figure.querySelector(`button.${name}`);
        if (button) button.addEventListener("click", () => {
          kept.turn(figure, button.getAttribute("aria-pressed") !== "true");
          draw(figure);
          const all = [...section.querySelectorAll("figure")];
          view.set(`${name}.${step.key}`, written(all.flatMap((other, at) => (kept.isOn(other) === atFirst(other, name) ? [] : [at]))));
        });
      }
    }
  });

  const figures = [...document.querySelectorAll("section.step figure")];
  const redraw = () => figures.filter((figure) => figure.chart).forEach(draw);
  dark.addEventListener("change", redraw);
  addEventListener("beforeprint", () => {
    printing = true;
    root.dataset.print = "";
    figures.filter((figure) => !figure.closest("details:not([open])")).forEach(draw);
  });
  addEventListener("afterprint", () => {
    printing = false;
    delete root.dataset.print;
    redraw();
  });
})();
