// Shows tooltips, which a mouse shows on hover, also on focus and on tap: titles of elements, and of parts of drawings.
(() => {
  "use strict";
  const tip = document.createElement("div");
  tip.className = "tooltip";
  tip.setAttribute("aria-hidden", "true");
  tip.hidden = true;
  document.body.append(tip);
  const textOf = (element) => {
    const titled = element.closest("[title], .drawn g:has(> title)");
    return titled && [titled, titled.title || titled.querySelector("title").textContent];
  };
  const show = (element) => {
    const [titled, text] = textOf(element) || [];
    tip.hidden = !titled;
    if (!titled) return;
    tip.textContent = text;
    const { left, right, top, bottom } = titled.getBoundingClientRect();
    const middle = (Math.max(left, 0) + Math.min(right, innerWidth)) / 2 - tip.offsetWidth / 2;
    tip.style.left = `${Math.max(4, Math.min(middle, innerWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${bottom + 6 + tip.offsetHeight < innerHeight ? bottom + 6 : Math.max(0, top - 6 - tip.offsetHeight)}px`;
  };
  const hide = () => { tip.hidden = true; };
  document.addEventListener("focusin", ({ target }) => { if (target.matches(":focus-visible")) show(target); });
  document.addEventListener("focusout", hide);
  document.addEventListener("pointerup", ({ target, pointerType }) => { if (pointerType !== "mouse") show(target); });
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") hide(); });
  addEventListener("scroll", hide, { passive: true });
})();
