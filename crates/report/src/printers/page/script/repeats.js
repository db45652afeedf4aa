// Shows the rows of repeats below the medians of a table, or hides them.
(() => {
  "use strict";
  for (const button of document.querySelectorAll("button.repeats")) {
    button.addEventListener("click", () => {
      const isShown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(isShown));
      button.closest(".block").querySelector("table").classList.toggle("each", isShown);
    });
  }
})();
