// Draws the flame graph of the chosen target and step when it comes near to view. Frames are elements: so they can have the
// focus and a name, and they follow the width of the page and its colors.
(() => {
  "use strict";
  const section = document.getElementById("functions");
  const pick = section && section.querySelector(".pick");
  if (!pick) return;
  const profiles = [...section.querySelectorAll(".profile")];
  const [targets, steps] = [".target", ".step"].map((name) => pick.querySelector(`select${name}`));
  const [byChange, ofBase, reset] = [".change", ".widths", ".reset"].map((name) => pick.querySelector(name));
  const box = pick.querySelector("input");
  const output = pick.querySelector("output");
  const ROW = 20;
  // In percent of the graph: narrower frames are not drawn, have no gap, or have no text.
  const [DRAWN_MIN, GAP_MIN, TEXT_MIN] = [0.02, 0.25, 1.2];
  // The share of the whole CPU time at which the color of a change is strongest.
  const STRONGEST = 0.2;
  const first = profiles.findIndex((profile) => profile.classList.contains("chosen"));
  let chosen = profiles[first];
  let zoom = 0;
  let current = 0;
  let pattern = null;
  let names = null;

  // The format is described in `flame.rs`.
  const trees = new WeakMap();
  const treeOf = (profile) => {
    if (!trees.has(profile)) {
      names = names || JSON.parse(section.querySelector("script.frames").textContent);
      trees.set(profile, read(JSON.parse(profile.querySelector("script").textContent)));
    }
    return trees.get(profile);
  };
  const read = ({ us, enough, n }) => {
    const sides = us.length;
    const node = (caller, name, own) => ({ caller, name, own, all: [...own], callees: [], depth: caller ? caller.depth + 1 : 0 });
    const nodes = [node(null, "all", n.slice(0, sides))];
    for (let at = sides, last = nodes[0]; at < n.length; at += 2 + sides) {
      for (let levels = n[at]; levels > 0; levels--) last = last.caller;
      const callee = node(last, names[n[at + 1]], n.slice(at + 2, at + 2 + sides));
      last.callees.push(callee);
      nodes.push(last = callee);
    }
    nodes.forEach((it, id) => { it.id = id; });
    for (const { all, caller } of nodes.slice(1).reverse()) all.forEach((count, side) => { caller.all[side] += count; });
    if (sides > 1) pair(nodes);
    return { nodes, us, enough, totals: nodes[0].all };
  };
  // Pairs the calls of a target with those of its base. A function that only one of them has may have been renamed or inlined, or
  // it lacks a symbol: it counts for its caller, as in `compare_profiles`.
  const pair = (nodes) => {
    const [own, others] = [0, 1].map((at) => new Set(nodes.filter(({ all }) => all[at]).map(({ name }) => name)));
    const calls = [];
    for (const node of nodes) {
      const { name, caller } = node;
      node.isPaired = !caller || (own.has(name) && others.has(name) && !name.startsWith("["));
      const around = caller && caller.call;
      if (!node.isPaired) node.call = around;
      else if (around && around.callees.has(name)) node.call = around.callees.get(name);
      else {
        node.call = { around, all: [0, 0], callees: new Map() };
        calls.push(node.call);
        if (around) around.callees.set(name, node.call);
      }
      node.own.forEach((count, at) => { node.call.all[at] += count; });
    }
    for (const { all, around } of calls.slice(1).reverse()) all.forEach((count, at) => { around.all[at] += count; });
  };

  const hasBase = () => treeOf(chosen).us.length > 1;
  const isOn = (button) => button && hasBase() && button.getAttribute("aria-pressed") === "true";
  const side = () => (isOn(ofBase) ? 1 : 0);
  const cost = ({ us, totals }, count, at) => (totals[at] ? (us[at][0] * count) / totals[at] : 0);
  // The variance of a cost: that of counting samples, and that of the CPU time per operation.
  const variance = ({ us, totals }, count, at) => {
    const [whole, error, dispersion] = us[at];
    const share = totals[at] ? count / totals[at] : 0;
    return totals[at] ? (dispersion * whole ** 2 * share * (1 - share)) / totals[at] + (share * error) ** 2 : 0;
  };
  const change = (tree, { call: { all } }) => {
    const us = cost(tree, all[0], 0) - cost(tree, all[1], 1);
    const error = 2 * Math.sqrt(variance(tree, all[0], 0) + variance(tree, all[1], 1));
    return { us, error, isSeen: tree.enough && Math.abs(us) > error };
  };

  const number = (value) => (value === 0 ? "0" : String(+value.toPrecision(3)));
  const micros = (value) => `${number(value)} \u00b5s`;
  const signed = (value) => (value < 0 ? `\u2212${micros(-value)}` : `+${micros(value)}`);
  const percent = (share) => `${number(100 * share)}%`;
  const rows = (tree, node) => {
    const at = side();
    const each = chosen.querySelector(".flame").dataset.operation;
    const costs = (counts, at) => `${micros(cost(tree, counts[at], at))} per ${each}, ${percent(counts[at] / (tree.totals[at] || 1))}`;
    const told = [["with callees", costs(node.all, at)], ["own", costs(node.own, at)]];
    if (node.isPaired) {
      const { us, error } = change(tree, node);
      told.push([at ? "target" : "base", costs(node.call.all, 1 - at)], ["change", `${signed(us)} (\u00b1${micros(error)})`]);
    } else if (tree.us.length > 1) told.push(["change", "counts for the caller"]);
    told.push(["samples", node.all[at].toLocaleString("en")]);
    return told;
  };
  const kind = ({ name, depth }) => {
    if (depth < 2) return "whole";
    return name.endsWith("_[k]") ? "kernel" : name.startsWith("[") ? "unknown" : "engine";
  };
  // A shade that a function has in every graph.
  const turn = (name) => [...name].reduce((hash, letter) => (hash * 31 + letter.codePointAt(0)) % 9973, 7) % 40 - 5;

  // The frames in sight with their places: those around the zoomed one, and those below it.
  const placed = (tree) => {
    const all = [];
    const at = side();
    const place = (node, left, width) => {
      all.push({ node, left, width });
      for (const callee of node.callees) {
        const part = (width * callee.all[at]) / node.all[at];
        if (part >= DRAWN_MIN) place(callee, left, part);
        left += part || 0;
      }
    };
    const around = [];
    for (let node = tree.nodes[zoom].caller; node; node = node.caller) around.unshift({ node, left: 0, width: 100, isOuter: true });
    place(tree.nodes[zoom], 0, 100);
    return [...around, ...all];
  };
  let shown = [];
  const elementOf = (id) => shown.find(({ node }) => node.id === id)?.element;
  const element = (tree, { node, left, width, isOuter }) => {
    const made = document.createElement("div");
    made.className = `frame ${kind(node)}`;
    made.classList.toggle("outer", Boolean(isOuter));
    made.classList.toggle("thin", width < GAP_MIN);
    made.classList.toggle("match", Boolean(pattern) && node.depth > 0 && pattern.test(node.name));
    made.style.cssText = `left:${left.toFixed(3)}%;width:${width.toFixed(3)}%;top:${node.depth * ROW}px;--turn:${turn(node.name)}`;
    made.classList.toggle("alone", node.isPaired === false);
    if (node.isPaired) {
      const { us, isSeen } = change(tree, node);
      const strength = Math.sqrt(Math.abs(us) / (STRONGEST * Math.max(...tree.us.map(([all]) => all))));
      if (isSeen) made.classList.add(us > 0 ? "grew" : "shrank");
      if (isSeen) made.style.setProperty("--much", String(Math.round(100 * Math.min(1, strength))));
    }
    if (width >= TEXT_MIN) made.textContent = node.name;
    made.setAttribute("role", "treeitem");
    made.setAttribute("aria-level", String(node.depth + 1));
    made.setAttribute("aria-label", `${node.name}: ${rows(tree, node).map((row) => row.join(" ")).join("; ")}`);
    made.dataset.id = node.id;
    made.tabIndex = node.id === current ? 0 : -1;
    return made;
  };
  const draw = () => {
    const tree = treeOf(chosen);
    const graph = chosen.querySelector(".flame");
    const hadFocus = graph.contains(document.activeElement);
    if (!tree.nodes[zoom] || !tree.nodes[zoom].all[side()]) zoom = 0;
    shown = placed(tree);
    if (!shown.some(({ node }) => node.id === current)) current = zoom;
    for (const it of shown) it.element = element(tree, it);
    graph.replaceChildren(...shown.map((it) => it.element));
    graph.style.height = `${ROW * (1 + Math.max(...shown.map(({ node }) => node.depth)))}px`;
    graph.classList.toggle("by-change", Boolean(isOn(byChange)));
    graph.classList.toggle("searched", Boolean(pattern));
    section.querySelector(".of-change").hidden = !isOn(byChange);
    section.querySelector(".of-origin").hidden = Boolean(isOn(byChange));
    for (const button of [byChange, ofBase]) if (button) button.hidden = !hasBase();
    reset.hidden = zoom === 0;
    tally(tree);
    if (hadFocus) elementOf(current).focus({ preventScroll: true });
  };

  // A frame within another match is part of it.
  const tally = (tree) => {
    output.textContent = box.getAttribute("aria-invalid") === "true" ? "not a regular expression" : "";
    if (!pattern) return;
    const at = side();
    const isMatch = ({ name, depth, all }) => depth > 0 && all[at] > 0 && pattern.test(name);
    const sum = (node) => (isMatch(node) ? node.all[at] : node.callees.reduce((total, callee) => total + sum(callee), 0));
    const found = sum(tree.nodes[0]);
    const count = tree.nodes.filter(isMatch).length;
    const frames = `${count} frame${count === 1 ? "" : "s"}`;
    output.textContent = `${frames}, ${micros(cost(tree, found, at))}, ${percent(found / (tree.totals[at] || 1))} of the CPU time`;
  };
  const search = (text) => {
    let isValid = true;
    try { pattern = text ? new RegExp(text, "i") : null; } catch { pattern = null; isValid = false; }
    box.setAttribute("aria-invalid", String(!isValid));
  };

  const tip = document.createElement("div");
  tip.className = "tip of-frame";
  tip.setAttribute("aria-hidden", "true");
  tip.hidden = true;
  section.append(tip);
  const show = (frame) => {
    tip.hidden = !frame;
    if (!frame) return;
    const tree = treeOf(chosen);
    const node = tree.nodes[frame.dataset.id];
    const head = document.createElement("b");
    head.textContent = node.name;
    tip.replaceChildren(head, ...rows(tree, node).map(([what, value]) => {
      const row = document.createElement("div");
      const text = document.createElement("span");
      text.textContent = value;
      row.append(what, text);
      return row;
    }));
    const { left, right, top, bottom } = frame.getBoundingClientRect();
    const middle = (Math.max(left, 0) + Math.min(right, innerWidth)) / 2 - tip.offsetWidth / 2;
    tip.style.left = `${Math.max(4, Math.min(middle, innerWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${bottom + 4 + tip.offsetHeight < innerHeight ? bottom + 4 : Math.max(0, top - 4 - tip.offsetHeight)}px`;
  };

  const focus = (id) => {
    const [before, now] = [elementOf(current), elementOf(id)];
    if (!now) return;
    if (before) before.tabIndex = -1;
    current = id;
    now.tabIndex = 0;
    now.focus({ preventScroll: true });
    now.scrollIntoView({ block: "nearest" });
  };
  const zoomTo = (id) => {
    zoom = current = id;
    view.set("flame.zoom", id ? String(id) : null);
    draw();
  };
  // The frame that an arrow key leads to.
  const MOVES = {
    ArrowUp: (node) => node.caller,
    ArrowDown: (node) => shown.filter((it) => it.node.caller === node).reduce((a, b) => (a && a.width >= b.width ? a : b), null)?.node,
    ArrowLeft: (node) => beside(node, -1),
    ArrowRight: (node) => beside(node, 1),
    Home: () => shown[0].node,
  };
  const beside = (node, way) => {
    const level = shown.filter((it) => it.node.depth === node.depth);
    return level[level.findIndex((it) => it.node === node) + way]?.node;
  };
  section.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const frame = event.target.closest(".frame");
    if (event.key === "/" && event.target !== box) box.focus();
    else if (event.key === "Escape" && event.target === box) {
      box.value = "";
      box.dispatchEvent(new Event("input"));
    } else if (event.key === "Escape" && zoom) zoomTo(0);
    else if (!frame) return;
    else if (event.key === "Enter" || event.key === " ") zoomTo(+frame.dataset.id);
    else if (event.key in MOVES) {
      const next = MOVES[event.key](treeOf(chosen).nodes[frame.dataset.id]);
      if (next) focus(next.id);
    } else return;
    event.preventDefault();
  });
  section.addEventListener("click", ({ target }) => {
    const frame = target.closest(".frame");
    if (frame) zoomTo(+frame.dataset.id);
  });
  section.addEventListener("pointerover", ({ target }) => show(target.closest(".frame")));
  section.addEventListener("pointerleave", () => show(null));
  section.addEventListener("focusin", ({ target }) => show(target.matches(".frame:focus-visible") ? target : null));
  section.addEventListener("focusout", () => show(null));
  addEventListener("scroll", () => show(null), { passive: true });

  // A graph is drawn when it comes near to view, and dropped when another one is chosen.
  const sight = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting && chosen.contains(target) && !target.hasChildNodes()) draw();
    }
  }, { rootMargin: "800px" });
  const redraw = () => { if (chosen.querySelector(".flame").hasChildNodes()) draw(); };
  const choose = (profile) => {
    if (profile !== chosen) {
      chosen.querySelector(".flame").replaceChildren();
      chosen.classList.remove("chosen");
      zoom = current = 0;
      chosen = profile;
      chosen.classList.add("chosen");
    }
    targets.value = chosen.dataset.target;
    steps.value = chosen.dataset.step;
    show(null);
  };
  const pickUp = (isTarget) => {
    const fits = (profile, name) => profile.dataset[name] === { target: targets, step: steps }[name].value;
    const both = profiles.find((profile) => fits(profile, "target") && fits(profile, "step"));
    const next = both || profiles.find((profile) => fits(profile, isTarget ? "target" : "step"));
    choose(next);
    // Another tree has other frames.
    view.set("flame.zoom", null);
    const at = profiles.indexOf(next);
    view.set("flame", at === first ? null : String(at));
  };
  targets.addEventListener("change", () => pickUp(true));
  steps.addEventListener("change", () => pickUp(false));
  document.addEventListener("filtered", () => [targets, steps].forEach((list) => {
    const left = [...list.options].filter((option) => !option.classList.contains("filtered"));
    if (!left.length || left.includes(list.selectedOptions[0])) return;
    list.value = left[0].value;
    pickUp(list === targets);
  }));
  const keptAs = { change: "flame.origin", widths: "flame.base" };
  for (const button of [byChange, ofBase]) if (button) button.addEventListener("click", () => {
    const isPressed = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(isPressed));
    view.set(keptAs[button.className], isPressed === (button === ofBase) ? "1" : null);
    redraw();
  });
  reset.addEventListener("click", () => zoomTo(0));
  box.addEventListener("input", () => {
    search(box.value);
    view.set("flame.find", box.value);
    redraw();
  });

  view.keep("flame", (value) => choose(profiles[value === null ? first : +value] || profiles[first]));
  view.keep("flame.zoom", (value) => { zoom = +(value || 0); redraw(); });
  view.keep("flame.find", (value) => { box.value = value || ""; search(box.value); redraw(); });
  if (byChange) view.keep("flame.origin", (value) => { byChange.setAttribute("aria-pressed", String(value === null)); redraw(); });
  if (ofBase) view.keep("flame.base", (value) => { ofBase.setAttribute("aria-pressed", String(value !== null)); redraw(); });
  // A link to a table shows its profile.
  view.onArrival((anchor) => {
    const target = document.getElementById(anchor);
    const profile = target && target.closest(".profile");
    if (profile) choose(profile);
  });
  for (const profile of profiles) sight.observe(profile.querySelector(".flame"));
  addEventListener("beforeprint", draw);
})();
