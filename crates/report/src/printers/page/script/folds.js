// Remembers folds, and unfolds the target of a link.
(() => {
  "use strict";
  const folds = [...document.querySelectorAll("details")];
  const atFirst = new Map(folds.map((fold) => [fold, fold.open]));
  // The key of a fold: the nearest identifier around it, and its number there.
  const counts = new Map();
  const keys = new Map(folds.map((fold) => {
    const home = fold.closest("[id]");
    const id = home ? home.id : "";
    const count = counts.get(id) || 0;
    counts.set(id, count + 1);
    return [fold, `${id}.${count}`];
  }));
  const aim = () => document.getElementById(view.anchor());
  // Folds that the anchor opens are not stored in the address.
  const isUsual = (fold, target) => fold.open === (atFirst.get(fold) || leadsTo(fold, target));
  const leadsTo = (fold, target) => target !== null && (fold.contains(target) || fold.parentElement === target);
  const turned = () => {
    const target = aim();
    return folds.filter((fold) => !isUsual(fold, target)).map((fold) => keys.get(fold)).join("_");
  };

  view.keep("fold", (value) => {
    const names = new Set(value ? value.split("_") : []);
    const target = aim();
    for (const fold of folds) fold.open = (atFirst.get(fold) || leadsTo(fold, target)) !== names.has(keys.get(fold));
  });
  document.addEventListener("toggle", (event) => {
    if (atFirst.has(event.target)) view.set("fold", turned());
  }, true);

  view.onArrival(() => {
    const target = aim();
    if (!target) return;
    for (const fold of folds) if (leadsTo(fold, target)) fold.open = true;
    view.correct("fold", turned());
    target.tabIndex = -1;
    target.focus({ preventScroll: true });
    target.scrollIntoView();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    view.go(link.hash.slice(1));
  });
})();
