// Puts the targets of a matrix in the order of their ranks, or back in the plan's order.
(() => {
  "use strict";
  for (const button of document.querySelectorAll("button.rank")) {
    const table = button.closest("table");
    [...table.tHead.rows[0].cells].forEach((head, at) => { head.dataset.place = at; });
    const order = (isByRank) => {
      const heads = [...table.tHead.rows[0].cells];
      const keys = heads.map(({ dataset }) => (isByRank && dataset.rank ? 1e6 + Number(dataset.rank) : Number(dataset.place)));
      const from = heads.map((_, at) => at).sort((a, b) => keys[a] - keys[b]);
      for (const row of table.rows) {
        const cells = [...row.cells];
        row.append(...from.map((at) => cells[at]));
      }
      button.setAttribute("aria-pressed", String(isByRank));
    };
    button.addEventListener("click", () => {
      const isByRank = button.getAttribute("aria-pressed") !== "true";
      order(isByRank);
      view.set("rank", isByRank ? "1" : null);
    });
    view.keep("rank", (value) => order(Boolean(value)));
  }
})();
