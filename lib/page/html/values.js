// Values: a line for each kind of tensor, with one number of it over the layers; a click shows the histogram of every layer.
const CELLS = { layer: 0, tensors: 1, numbers: 2, finite: 3, zeros: 4, nans: 5, infinities: 6, min: 7, max: 8, mean: 9, deviation: 10,
    l2: 11, histogram: 12 };
const MEASURES = [
  ["deviation", "standard deviation", (c) => c[CELLS.deviation]],
  ["largest", "largest magnitude", (c) => Math.max(Math.abs(c[CELLS.min]), Math.abs(c[CELLS.max]))],
  ["mean", "mean", (c) => c[CELLS.mean]],
  ["rms", "root of the mean square", (c) => (c[CELLS.finite] ? c[CELLS.l2] / Math.sqrt(c[CELLS.finite]) : 0)],
  ["zeros", "part of zeros", (c) => (c[CELLS.finite] ? c[CELLS.zeros] / c[CELLS.finite] : 0)],
];

function valueTables(values) {
  const body = section("values", "Values by layer",
      "What the numbers of each kind of tensor are like, from the first layer to the last. All experts of a layer are one point. A line opens to its histograms.");
  const broken = values.kinds.reduce((sum, k) => sum + k.cells.reduce((n, c) => n + c[CELLS.nans] + c[CELLS.infinities], 0), 0);
  body.append(el("p", { class: broken ? "loud" : "about" }, broken ? counted(broken, "number") + (broken === 1 ? " is" : " are")
      + " NaN or infinite: red points and counts show where." : "No NaN and no infinity among the numbers that were read."));
  const buttons = MEASURES.map(([name, words], i) => el("button",
      { "aria-pressed": String(i === 0), title: words, on: { click: () => choose(i) } }, words));
  const holder = el("div", {});
  body.append(el("div", { class: "choices", role: "group", "aria-label": "What is drawn" }, buttons), holder);
  if (values.kinds_left_out) body.append(el("p", { class: "empty" }, counted(values.kinds_left_out, "kind")
      + " of tensors more are not shown; mckpt stats prints all."));
  let lines = [];
  function choose(measure) {
    buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(i === measure)));
    lines = [];
    holder.replaceChildren(...[...new Set(values.kinds.map((k) => k.section))].sort((a,
        b) => (a === "") - (b === "")).map((name) => {
      const kinds = values.kinds.filter((k) => k.section === name), several = kinds.some((k) => k.cells.length > 1);
      return el("div", { class: "scroll" }, el("table", { class: "list values" }, el("thead", {},
          el("tr", {}, el("th", { class: "name" }, shown(name || "outside layers")), el("th", {}, several ? "over the layers" : "histogram"),
          el("th", { class: "right" }, MEASURES[measure][1]), el("th", { class: "right" }, "min to max"),
          el("th", { class: "right" }, "NaN, inf"))),
        el("tbody", {}, kinds.flatMap((kind) => lineOfKind(kind, measure, several)))));
    }));
  }
  // `several`: the section has several layers, so that one number over them says something.
  function lineOfKind(kind, measure, several) {
    const of = MEASURES[measure][2], points = kind.cells.map(of),
        bad = kind.cells.reduce((n, c) => n + c[CELLS.nans] + c[CELLS.infinities], 0);
    const low = Math.min(...points), high = Math.max(...points), tensors = kind.cells.reduce((n, c) => n + c[CELLS.tensors], 0);
    const detail = el("tr", { hidden: true }, el("td", { colspan: 5 }));
    const line = el("tr", { class: "pick", tabindex: "0", style: colour(kind.part), "aria-expanded": "false", on: {
      click: () => toggle(), keydown: (event) => { if (event.key === "Enter" || event.key === " ") event.preventDefault(), toggle(); } } },
      el("td", { class: "name" }, shown(kind.kind),
          el("div", { class: "soft" }, kind.dtype + (tensors > 1 ? ", " + counted(tensors, "tensor") : ""))),
      el("td", {}, several ? spark(kind, points) : histogram(kind.cells[0], kind.cells[0][CELLS.min], kind.cells[0][CELLS.max])),
      el("td", { class: "right" }, low === high ? short(low) : short(low) + " to " + short(high)),
      el("td", { class: "right" }, short(Math.min(...kind.cells.map((c) => c[CELLS.min]))) + " to "
          + short(Math.max(...kind.cells.map((c) => c[CELLS.max])))),
      el("td", { class: "right" + (bad ? " loud" : "") }, bad ? commas(bad) : "0"));
    function toggle() {
      const open = line.getAttribute("aria-expanded") === "true";
      line.setAttribute("aria-expanded", String(!open));
      line.classList.toggle("open", !open);
      detail.hidden = open;
      if (!open && !detail.firstChild.firstChild) detail.firstChild.append(ridges(kind));
    }
    lines.push({ kind, line, detail });
    return [line, detail];
  }
  choose(0);
  onSearch((test) => { for (const { kind, line, detail } of lines) { const hit = !test || test(kind.section + "." + kind.kind)
      || kind.cells.some((c) => test(kind.section + "." + c[CELLS.layer] + "." + kind.kind)); line.hidden = !hit;
      if (!hit) detail.hidden = true; } });
}

// One number over the layers.
function spark(kind, points) {
  const n = points.length, w = 220, h = 34, low = Math.min(...points), high = Math.max(...points), room = high - low;
  const x = (i) => (n > 1 ? 3 + (i / (n - 1)) * (w - 6) : w / 2), y = (v) => (room > 0 ? h - 4 - ((v - low) / room) * (h - 8) : h / 2);
  const path = points.map((v, i) => (i ? "L" : "M") + x(i).toFixed(1) + " " + y(v).toFixed(1)).join("");
  const chart = svg("svg", { class: "spark", viewBox: `0 0 ${w} ${h}`, "aria-hidden": "true" }, n > 1
      ? [svg("path", { class: "area", d: path + `L${x(n - 1)} ${h}L${x(0)} ${h}z` }), svg("path", { class: "linepath", d: path })] : [],
    points.map((v, i) => { const bad = kind.cells[i][CELLS.nans] + kind.cells[i][CELLS.infinities]; return bad || n <= 40
        ? svg("circle", { class: bad ? "baddot" : "dot", cx: x(i).toFixed(1), cy: y(v).toFixed(1), r: bad ? 4 : n > 1 ? 1.8 : 3 }) : null; }));
  tipOn(chart, (event) => {
    const r = chart.getBoundingClientRect(), i = Math.max(0, Math.min(n - 1, Math.round(((event.clientX - r.left) / r.width) * (n - 1)))),
        c = kind.cells[i];
    return [kind.section + "." + c[CELLS.layer] + "." + kind.kind, cellText(c)];
  });
  return chart;
}
const cellText = (c) => [`std ${short(c[CELLS.deviation])}, mean ${short(c[CELLS.mean])}, L2 ${short(c[CELLS.l2])}`,
    `min ${short(c[CELLS.min])}, max ${short(c[CELLS.max])}`,
  `${commas(c[CELLS.numbers])} numbers` + (c[CELLS.tensors] > 1 ? ` in ${commas(c[CELLS.tensors])} tensors` : "")
      + `, ${percent(c[CELLS.zeros], c[CELLS.numbers]) || "0 %"} zeros`,
  c[CELLS.nans] ? counted(c[CELLS.nans], "NaN") : "", c[CELLS.infinities]
      ? counted(c[CELLS.infinities], "infinity").replace("infinitys", "infinities") : ""];

// A histogram on the axis from `low` to `high`.
function histogram(cell, low, high) {
  const counts = cell[CELLS.histogram], most = Math.max(...counts, 1), w = 220, h = 15;
  const at = (v) => (high > low ? ((v - low) / (high - low)) * w : w / 2 - 1),
      width = (cell[CELLS.max] - cell[CELLS.min]) / Math.max(counts.length, 1);
  const d = counts.map((count, i) => {
    if (!count) return "";
    const x = at(cell[CELLS.min] + i * width), wide = Math.max(at(cell[CELLS.min] + (i + 1) * width) - x, 1.2),
        tall = Math.max((Math.sqrt(count / most)) * h, 0.8);
    return `M${x.toFixed(1)} ${h}h${wide.toFixed(1)}v${(-tall).toFixed(1)}h${(-wide).toFixed(1)}z`;
  }).join("");
  const chart = svg("svg", { class: "spark", style: "height: 15px", viewBox: `0 0 ${w} ${h}`, preserveAspectRatio: "none",
      "aria-hidden": "true" }, svg("path", { class: "bin", d }));
  tipOn(chart, () => ["min " + short(cell[CELLS.min]) + ", max " + short(cell[CELLS.max]), cellText(cell)]);
  return chart;
}
function ridges(kind) {
  const low = Math.min(...kind.cells.map((c) => c[CELLS.min])), high = Math.max(...kind.cells.map((c) => c[CELLS.max]));
  return el("div", { style: colour(kind.part) }, el("p", { class: "soft", style: "margin: 2px 0 6px" },
      `Histograms from ${short(low)} to ${short(high)}; heights are roots of counts`
      + (kind.cells.some((c) => c[CELLS.tensors] > 1) ? ", put together from those of the experts." : ".")),
    el("div", { class: "ridges" }, kind.cells.flatMap((c) => [el("span", { class: "soft" }, c[CELLS.layer] < 0 ? "" : "layer "
        + c[CELLS.layer]), histogram(c, low, high),
      el("span", { class: c[CELLS.nans] + c[CELLS.infinities] ? "loud" : "" }, "std " + short(c[CELLS.deviation])
          + (c[CELLS.nans] ? "  " + counted(c[CELLS.nans], "NaN") : "")
          + (c[CELLS.infinities] ? "  " + commas(c[CELLS.infinities]) + " inf" : ""))])));
}
