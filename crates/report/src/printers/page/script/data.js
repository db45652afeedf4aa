// The data of charts as columns of curves: what the page has of each repeat, and the medians of repeats.
const chartData = (() => {
  "use strict";
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  // A line is one repeat. All repeats of a target under one load share an entry of the legend, and so a color.
  const lines = read("lines").map(([label, , entry]) => ({ label, entry }));
  const legend = read("legend").map(([label, color, dash]) => ({ label, color, dash }));
  const BUCKETS = ["256\u00b5s", "1ms", "4ms", "16ms", "64ms", "256ms", "1s", "4s", "16s", "more"];

  // A single point represents a constant curve.
  const filled = ([, count, points], length) => Array.from({ length }, (_, at) => at < count ? points[points.length === 1 ? 0 : at] : null);

  // The number of points up to the last one with a value.
  const lengthOf = ([, count, points]) => (points.length === 1 ? count : points.findLastIndex((value) => value !== null) + 1);

  // The data for uPlot: the positions on the x axis, a column for each curve, and the curves themselves. `end` is the end of an axis of
  // seconds. Curves with the same `group` are repeats of each other.
  const KINDS = {
    // A second is drawn at its middle. A bucket of k seconds is two points, half a bucket apart.
    seconds: (data) => {
      const length = Math.max(1, ...data.s.map(lengthOf));
      const step = data.w || (data.k === 1 ? 1 : data.k / 2);
      const at = Array.from({ length }, (_, index) => (index + 0.5) * step);
      const partsOfLine = new Map();
      const curves = data.s.map(([line, , , part]) => {
        const { label, entry } = lines[line];
        if (part === undefined) return { entry, label, dash: legend[entry].dash, group: entry };
        const number = partsOfLine.get(line) || 0;
        partsOfLine.set(line, number + 1);
        return { entry, label: `${label} ${part}`, dash: number };
      });
      return { at, end: length * step, step, isPaired: data.k > 1, columns: data.s.map((curve) => filled(curve, length)), curves };
    },
    // Times are a sixteenth of a nine apart; the last one is that of the slowest operation.
    nines: (data) => {
      const ends = data.s.map(([, , end]) => end);
      const inner = Math.max(0, ...data.s.map(([, , , values]) => values.length - 1));
      const at = [...new Set([...Array.from({ length: inner }, (_, index) => index / 16), ...ends])].sort((a, b) => a - b);
      const place = new Map(at.map((nines, index) => [nines, index]));
      const columns = data.s.map(([, , end, values]) => {
        const column = new Array(at.length).fill(undefined);
        values.forEach((value, index) => { column[place.get(index === values.length - 1 ? end : index / 16)] = value; });
        for (let index = place.get(end) + 1; index < at.length; index++) column[index] = null;
        return column;
      });
      return { at, columns, curves: times(data) };
    },
    buckets: (data) => ({ at: BUCKETS.map((_, at) => at), columns: data.s.map(([, , shares]) => shares), curves: times(data) }),
  };
  // The curves of a chart of times: of response times and, with a rate, of service times.
  const times = (data) => {
    const areTwo = data.s.some(([, time]) => time > 0);
    return data.s.map(([line, time]) => {
      const { label, entry } = lines[line];
      const name = areTwo ? [" response", " service"][time] : "";
      return { entry, label: label + name, name, dash: areTwo ? time : legend[entry].dash, group: `${entry} ${time}` };
    });
  };

  // The median of repeats at one place; without enough of them a gap, or nothing if some have no point there at all.
  const median = (values, enough) => {
    const known = values.filter((value) => value != null).sort((a, b) => a - b);
    if (known.length < enough) return values.includes(undefined) ? undefined : null;
    const middle = known.length >> 1;
    return known.length % 2 ? known[middle] : (known[middle - 1] + known[middle]) / 2;
  };
  const medianCurve = (columns, { end, isPaired }) => {
    // A step may end earlier in some repeats: half of them are enough. Of percentiles, the longest curves are those of the quickest repeats.
    const enough = end === undefined ? columns.length : Math.ceil(columns.length / 2);
    if (!isPaired) return columns[0].map((_, index) => median(columns.map((column) => column[index]), enough));
    // A bucket has its smallest and its largest second, whichever came first: each has its own median.
    const sorted = columns.map((column) => column.map((value, index) => {
      const other = column[index ^ 1];
      if (value == null || other == null) return value;
      return index % 2 ? Math.max(value, other) : Math.min(value, other);
    }));
    return medianCurve(sorted, { end });
  };
  // Adds the median of each group of repeats after them.
  const withMedians = ({ columns, curves, ...axis }) => {
    const groups = new Map();
    curves.forEach(({ group }, index) => { if (group !== undefined) groups.set(group, [...(groups.get(group) || []), index]); });
    const repeated = [...groups.values()].filter((indexes) => indexes.length > 1);
    const areRepeats = new Set(repeated.flat());
    const medians = repeated.map((indexes) => {
      const { entry, name, dash, group } = curves[indexes[0]];
      return { entry, dash, group, isMedian: true, label: legend[entry].label + (name || "") };
    });
    return {
      ...axis,
      columns: [...columns, ...repeated.map((indexes) => medianCurve(indexes.map((index) => columns[index]), axis))],
      curves: [...curves.map((curve, index) => ({ ...curve, isRepeat: areRepeats.has(index) })), ...medians],
    };
  };

  // The ratio of the whole step of each entry: the geometric mean of its repeats.
  const wholeRatios = (ratios) => {
    const logs = new Map();
    for (const [line, ratio] of ratios) if (ratio > 0) logs.set(lines[line].entry, [...(logs.get(lines[line].entry) || []), Math.log(ratio)]);
    return new Map([...logs].map(([entry, all]) => [entry, Math.exp(all.reduce((sum, log) => sum + log, 0) / all.length)]));
  };

  // The axis, the columns and the curves of a chart.
  const of = (data) => withMedians(KINDS[data.x || "seconds"](data));

  return { lines, legend, BUCKETS, of, wholeRatios };
})();
