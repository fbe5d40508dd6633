// Which of the two is seen: the overview, or the page of a class, by the address after the #.
"use strict";

(() => {
  const overview = document.querySelectorAll("[data-overview]"), page = byId("class-page"), title = document.title;
  let from = null; // where the reader was in the overview, and on which link

  function show(one) {
    if (one && page.hidden) from = { y: scrollY, link: document.activeElement };
    page.hidden = !one;
    overview.forEach((part) => { part.hidden = Boolean(one); });
    document.title = one ? `${one.name} · ${title}` : title;
  }

  function go() {
    const wanted = /^#\/class\/(\d+|junk)$/.exec(location.hash);
    const one = wanted && data.classes.find((each) => (wanted[1] === "junk" ? each.kind === "junk" : each.kind !== "junk" && each.number === Number(wanted[1])));
    if (one) {
      show(one);
      classPage.open(one);
      scrollTo({ top: 0, behavior: "instant" });
      byId("class-title").focus({ preventScroll: true });
    } else if (!page.hidden) {
      show(null);
      const back = location.hash === byId("class-back").hash || !location.hash;
      if (back && from) {
        scrollTo({ top: from.y, behavior: "instant" });
        from.link?.focus({ preventScroll: true });
      } else {
        document.getElementById(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" });
      }
    }
  }

  addEventListener("hashchange", go);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !page.hidden && !looking && !event.defaultPrevented) location.hash = byId("class-back").hash;
  });
  go();
})();
