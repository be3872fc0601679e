// The page: which form the data asks for, and the live form that asks for new data.

// An id names one thing on the page: figures of later runs have the run's number after theirs.
function unique(nodes, run) {
  if (run) for (const node of nodes) for (const named of [node, ...node.querySelectorAll("[id]")]) if (named.id) named.id += `-${run}`;
  return nodes;
}

const forms = {run: data => runPage(data.runs[0], data.live), compare: comparePage, seeds: seedsPage, sweep: sweepPage, folder: folderPage};

// Links to the sections of a long page, for the keyboard and for phones.
function contents(page) {
  const links = [];
  for (const section of page.querySelectorAll("section")) {
    const heading = section.querySelector("h2");
    if (!heading || section.closest("details.run, .two")) continue;
    if (!section.id) section.id = `part-${links.length}`;
    links.push(el("a", {href: `#${section.id}`}, heading.textContent.replace(/:.*/, "")));
  }
  return links.length > 3 ? el("nav", {"aria-label": "sections"}, ...links) : null;
}

function draw(data) {
  const page = document.getElementById("page"), opened = new Set([...page.querySelectorAll("details")].map((d, i) => d.open ? i : -1)), focused = document.activeElement && page.contains(document.activeElement) ? document.activeElement.id : "";
  const name = data.title || (data.sides || data.runs).map(r => r.name).join(" and ");
  const parts = forms[data.page](data).filter(Boolean);
  page.replaceChildren();
  const back = data.back ? el("p", {}, el("a", {href: "/"}, "all runs")) : null;
  page.append(...[back, el("h1", {}, `Fairway: ${name}`)].filter(Boolean), ...parts, el("p", {class: "muted"}, data.live ? "live: updates while the run goes on" : `made ${data.made}`));
  const nav = contents(page);
  if (nav) page.querySelector("h1").after(nav);
  [...page.querySelectorAll("details")].forEach((d, i) => { d.open = opened.has(i); });
  for (const wide of page.querySelectorAll("section")) if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;  // scrolls by keyboard too
  if (focused && document.getElementById(focused)) document.getElementById(focused).focus({preventScroll: true});
  document.title = `Fairway: ${name}`;
  tellSeconds();
}

function tellSeconds() {
  for (const node of document.querySelectorAll("[data-since]")) {
    const seconds = Math.max(0, Math.round(Date.now() / 1000 - Number(node.dataset.since)));
    node.textContent = `last record ${time(seconds)} ago`;
  }
}

let data = JSON.parse(document.getElementById("data").textContent);
draw(data);
let drawn = full();
addEventListener("resize", () => { if (full() !== drawn) { drawn = full(); draw(data); } });
if (data.live) {
  let seen = JSON.stringify(data);
  setInterval(tellSeconds, 1000);
  setInterval(async () => {
    try {
      const answer = await fetch("data.json" + location.search);
      if (!answer.ok) return;
      const text = await answer.text();
      if (text !== seen) { seen = text; const at = scrollY; data = JSON.parse(text); draw(data); scrollTo(0, at); document.body.dataset.updates = +(document.body.dataset.updates || 0) + 1; }
    } catch { /* the server has gone: the page keeps what it has */ }
  }, 2000);
}
