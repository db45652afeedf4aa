// Keeps the contents in sight and marks the current part; on narrow screens they are folded.
(() => {
  "use strict";
  const root = document.documentElement;
  const nav = document.querySelector("nav");
  const here = nav.querySelector(".here");
  const open = (isOpen) => {
    nav.classList.toggle("open", isOpen);
    here.setAttribute("aria-expanded", String(isOpen));
  };
  here.addEventListener("click", () => open(!nav.classList.contains("open")));
  nav.addEventListener("click", (event) => { if (event.target.closest("a")) open(false); });
  nav.addEventListener("keydown", (event) => { if (event.key === "Escape") open(false); });

  // Reserves space, so that the contents don't hide what is below them.
  new ResizeObserver(() => {
    if (!nav.classList.contains("open")) root.style.setProperty("--nav", `${nav.offsetHeight}px`);
  }).observe(nav);

  const lists = [...nav.querySelectorAll("ul")].map((list) => [...list.querySelectorAll("a")].map((link) => ({ list, link, part: document.getElementById(link.hash.slice(1)) })));
  const last = (parts) => {
    const edge = nav.getBoundingClientRect().bottom + 24;
    return parts.findLast(({ part }) => part.checkVisibility() && part.getBoundingClientRect().top <= edge);
  };
  const mark = () => {
    const [section, step] = lists.map(last);
    const isStep = section && section.part.id === "steps" && step;
    const seen = [section, isStep && step].filter(Boolean);
    for (const { link } of lists.flat()) {
      if (seen.some((it) => it.link === link)) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
    here.textContent = seen.map(({ link }) => link.textContent).join(" \u203a ") || "Contents";
    if (isStep) step.list.scrollLeft = step.link.offsetLeft - step.list.clientWidth / 2;
  };
  let isDue = false;
  const soon = () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      mark();
    });
  };
  addEventListener("scroll", soon, { passive: true });
  addEventListener("resize", soon);
  document.addEventListener("toggle", soon, true);
  mark();
  if (view.anchor()) view.arrive();
})();
