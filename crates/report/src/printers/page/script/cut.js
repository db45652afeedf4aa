// Marks boxes whose content continues to the right of what is seen.
(() => {
  "use strict";
  const mark = (box) => box.classList.toggle("cut", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) mark(target.matches(".scroll, .steps") ? target : target.parentElement);
  });
  for (const box of document.querySelectorAll(".scroll, nav .steps")) {
    box.addEventListener("scroll", () => mark(box), { passive: true });
    sizes.observe(box);
    // A filter or a fold changes the content alone.
    if (box.firstElementChild) sizes.observe(box.firstElementChild);
  }
})();
