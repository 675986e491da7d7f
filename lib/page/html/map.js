// Whether one rank or file has everything, so that cells would show nothing.
const isWhole = (map) => map.holders <= 1 && map.faulty_tensors === 0;

// The shard map: a block for each kind of layer, a line for each kind of tensor, a cell for each rank or file.
function shardMap(map) {
  const n = map.columns.length, single = isWhole(map);
  const holders = map.by_rank ? counted(map.holders, "rank") : counted(map.holders, "file");
  const body = section("map", single ? "Tensors" : "Shard map", single
    ? "One file holds every tensor whole. Tensors that are alike in all layers are one line."
    : `Which ${map.by_rank ? "rank" : "file"} holds which items. A cell is the whole tensor; the filled part is what the ${map.by_rank ? "rank" : "file"} holds of it. ` +
      `Layers that are alike, and experts, are drawn as one. ${holders}`
          + (map.per_column > 1 ? `, ${map.per_column} in each column.` : "."));
  setColumns(n);
  if (map.tensors === 0) return body.append(el("p", { class: "empty" }, "There are no tensors."));
  if (!single) {
    body.append(legend([["background: var(--attention)", "held, in the colour of the module"], ["background: var(--cell)", "not held"],
      ["background: var(--attention); opacity: .4", "a copy"], ["background: var(--bad)", "a hole: nobody has it"],
          ["background: var(--twice)", "stored twice"]]));
    body.append(columnHeads(map));
  }
  const all = map.blocks.reduce((sum, b) => sum + b.kinds.length, 0);
  const blocks = map.blocks.map((block) => blockOf(map, block, single ? 0 : n, all <= 90 || block.faulty || map.blocks.length === 1));
  body.append(...blocks.map((b) => b.node));
  const none = el("p", { class: "empty", hidden: true }, "No tensor has such a name.");
  body.append(none);
  if (map.tensors_left_out) body.append(el("p", { class: "empty" }, counted(map.tensors_left_out, "tensor")
      + " more are counted, but have no line: mckpt ls lists all, and a GLOB chooses some."));
  if (map.rows_not_drawn) body.append(el("p", { class: "empty" }, counted(map.rows_not_drawn, "line")
      + " without cells: there are too many boxes for one page. A GLOB chooses fewer tensors."));
  onSearch((test) => {
    let found = 0;
    for (const b of blocks) found += b.filter(test);
    none.hidden = found > 0;
  });
}

// Bytes by column as bars, and numbers below some of them.
function columnHeads(map) {
  const n = map.columns.length, most = Math.max(...map.columns.map((c) => c.bytes), 1),
      least = Math.min(...map.columns.map((c) => c.bytes));
  let bars = "", lost = "";
  map.columns.forEach((c, i) => {
    const d = rect(i, [0, 1 - c.bytes / most, 1, c.bytes / most], c.bytes > 0 ? 3 : 0);
    if (c.lost) lost += rect(i, [0, 0, 1, 1]); else bars += d;
  });
  const chart = drawing(n, [["ground", grounds(n)], ["hold", bars], ["hole", lost]],
      { style: `max-width:${n * widest(n)}px; --part: var(--optimizer)` });
  columnTips(chart, n, (i) => [map.columns[i].label,
      [bytes(map.columns[i].bytes) + ", " + percent(map.columns[i].bytes, map.bytes) + " of all bytes", map.columns[i].lost
      ? "its file is not there" : ""]]);
  const step = [1, 2, 4, 8, 16, 32, 64].find((s) => n / s <= 17) || Math.ceil(n / 16);
  const marks = el("div", { class: "marks" + (n > 8 * step ? " many" : ""), style: `max-width:${n * widest(n)}px` }, map.columns.flatMap((c, i) => i % step ? [] :
    [el("span", { style: `left:${(100 * (i + 0.5)) / n}%` }, map.by_rank ? "r" + i * map.per_column : "f" + (i * map.per_column + 1))]));
  const even = most === least ? "each has " + bytes(most) : bytes(least) + " to " + bytes(most) + " each";
  return el("div", { class: "heads line" }, el("div", { class: "what soft" },
      el("span", { class: "number" }, "bytes of each " + (map.by_rank ? "rank" : "file") + ": "), even),
    el("div", { class: "soft mono", title: "the whole tensor: red is a hole" }, "all"), el("div", {}, chart, marks));
}

// A tip that says what the column under the pointer is.
function columnTips(node, n, text) {
  const at = (event) => { const r = node.getBoundingClientRect(); return Math.floor(((event.clientX - r.left) / r.width) * n); };
  tipOn(node, (event) => { const i = at(event); return i >= 0 && i < n ? text(i) : null; });
}

function titleOf(block) {
  return block.title || block.section + "." + (block.layers.length === 1 && block.count === 1 ? block.layers[0][0] : "{"
      + rangeText(block.layers).replace(/\u2013/g, "..") + "}");
}
const kindOf = (row) => row.name.length < 2 ? row.name[0] : row.stack ? row.name[0] + "{"
    + rangeText(row.members, 4).replace(/\u2013/g, "..") + "}" + row.name[1] : row.name[0] + row.members[0][0] + row.name[1];

// The rows that are drawn for a kind of tensor: one where all layers store it alike. Where they do not, the sound layers are one row, in
// which the layers are below each other, and experts in each of them; what is faulty has a row for each way in which it is stored.
function linesOfKind(map, block, variants) {
  const most = 12, all = variants.map(([r, ranges]) => ({ row: map.rows[r], layers: ranges || block.layers }));
  if (all.length < 2) return all.map((v) => v.row);
  const named = ({ row, layers }) => ({ ...row, frame: null, note: "layer " + rangeText(layers) });
  const apart = all.filter((v) => (v.row.faults || []).length || v.row.drawn === false), same = all.filter((v) => !apart.includes(v));
  const rows = same.length === 1 ? [named(same[0])] : same.length ? [layersAsOne(same)] : [];
  rows.push(...apart.slice(0, most).map(named));
  if (apart.length > most) rows[rows.length - 1].note += ` and ${apart.length - most} other ways`;
  return rows;
}

// One row of several variants. Its members are all members of all layers: number 2 * 8 + 5 is member 5 of the third layer, of 8 in each.
function layersAsOne(variants) {
  const first = variants[0].row, inner = first.stack ? numbersIn(first.members) : null, each = inner ? inner.length : 1;
  const layers = variants.flatMap((v) => numbersIn(v.layers)).sort((a, b) => a - b), place = new Map(layers.map((layer, i) => [layer, i]));
  const axes = [...new Set(variants.flatMap((v) => v.row.axes))].sort((a, b) => a - b), boxes = [];
  for (const { row, layers: of } of variants) {
    const at = row.stack ? 4 : 2;
    const along = (box) => axes.flatMap((a) => { const i = row.axes.indexOf(a); return i < 0 ? [0, row.dims[a]]
        : box.slice(at + 2 * i, at + 2 * i + 2); });
    for (const layer of numbersIn(of))
      for (const box of row.boxes)
        boxes.push([box[0], box[1], place.get(layer) * each + (row.stack ? box[2] : 0), row.stack ? box[3] : 1, ...along(box)]);
  }
  const said = (n) => "layer " + layers[Math.floor(n / each)] + (inner ? " number " + inner[n % each] : "");
  return { ...first, frame: null, stack: true, said, members: [[0, layers.length * each - 1]], axes, boxes,
      bytes: first.bytes * layers.length,
    note: inner ? "layers below each other, and experts in them" : "layers below each other", name: [kindOf(first)], searched: first };
}

// How many bytes of the block each column has, as bars.
function heatOf(map, block, n) {
  const sums = new Array(n).fill(0);
  for (const [r, ranges] of block.kinds.flat()) {
    const row = map.rows[r], items = row.dims.reduce((a, b) => a * b, 1) * (row.stack ? frameOf(row).numbers.length : 1);
    const layers = ranges ? numbersIn(ranges).length : block.count;
    for (const box of row.boxes || []) if (box[0] >= 0) sums[box[0]] += items ? (itemsOf(row, box) / items) * row.bytes * layers : 0;
  }
  const most = Math.max(...sums, 1), bars = sums.map((s, i) => (s > 0 ? rect(i, [0, 1 - s / most, 1, s / most]) : "")).join("");
  const chart = drawing(n, [["ground", grounds(n)], ["heat", bars]], { style: `max-width:${n * widest(n)}px` });
  columnTips(chart, n, (i) => [map.columns[i].label,
      [bytes(sums[i]) + " of these " + (block.count > 1 ? block.count + " layers" : "tensors")]]);
  return chart;
}

function blockOf(map, block, n, open) {
  const rows = block.kinds.flatMap((variants) => linesOfKind(map, block, variants));
  const size = block.kinds.flat().reduce((sum, [r, ranges]) => sum + map.rows[r].bytes * (ranges ? numbersIn(ranges).length : block.count),
      0);
  const holder = el("div", { class: "rows" });
  let lines = null;
  const fill = () => { if (!lines) lines = rows.map((row) => lineOf(map, row, n)), holder.append(...lines.map((l) => l.node)); };
  const node = el("details", { class: "block", on: { toggle: () => node.open && fill() } },
    el("summary", { class: n ? "line" : "" }, el("div", { class: "what clip" }, el("b", {}, shown(titleOf(block))),
      el("span", { class: "soft" }, (block.count > 1 ? "  \u00d7" + block.count : "") + "  " + bytes(size)), block.faulty
          ? el("span", {}, "  ", el("span", { class: "badge bad" }, "faulty")) : null),
      n ? el("div") : null, n ? el("div", {}, heatOf(map, block, n)) : null), holder);
  if (open) node.open = true, fill();
  // Names are tried with every number of a layer and of an expert, but not with all pairs of them.
  const layers = numbersIn(block.layers);
  const matches = (drawn, test) => {
    const row = drawn.searched || drawn;
    const kinds = row.name.length < 2 ? [row.name[0]] : [kindOf(row), ...numbersIn(row.members).map((n) => row.name[0] + n + row.name[1])];
    if (!block.section) return kinds.some(test);
    return layers.some((layer) => test(block.section + "." + layer + "." + kinds[0]))
        || kinds.some((kind) => test(block.section + "." + layers[0] + "." + kind));
  };
  const filter = (test) => {
    const hits = rows.map((row) => !test || matches(row, test)), some = hits.some(Boolean);
    node.hidden = !some;
    if (test && some) node.open = true, fill();
    if (!test) node.open = open;
    if (lines) lines.forEach((line, i) => { line.node.hidden = !hits[i]; });
    return some ? 1 : 0;
  };
  return { node, filter };
}

// "8 equal parts", "on 4 of 8 ranks, 21.9 to 28.1 %", "whole on rank 7".
function shareText(row, map) {
  if (row.drawn === false) return "not drawn";
  const items = new Map(), whole = row.dims.reduce((a, b) => a * b, 1) * (row.stack ? frameOf(row).numbers.length : 1);
  for (const box of row.boxes) if (!isCopy(box)) items.set(box[0], (items.get(box[0]) || 0) + itemsOf(row, box));
  const shares = [...items].filter(([, x]) => x > 0), n = map.columns.length;
  if (whole === 0) return "no items";
  if (shares.length === 1) return (shares[0][1] < whole ? "a part" : "whole") + (map.by_rank ? " on " : " in ")
      + (shares[0][0] < 0 ? "?" : map.by_rank ? map.columns[shares[0][0]].label : "f" + (shares[0][0] * map.per_column + 1));
  const least = Math.min(...shares.map(([, x]) => x)), most = Math.max(...shares.map(([, x]) => x));
  const who = shares.length === n ? (map.per_column > 1 ? "in all columns" : map.by_rank ? "on all ranks" : "in all files")
      : `on ${shares.length} of ${n} ${map.per_column > 1 ? "columns" : map.by_rank ? "ranks" : "files"}`;
  return who + (least === most ? ", equal parts" : `, ${percent(least, whole)} to ${percent(most, whole)}`);
}

function lineOf(map, row, n) {
  const faults = row.faults || [];
  const said = (row.note ? row.note + "  " : "") + `[${row.dims.join(", ")}] ${row.dtype}  ${bytes(row.bytes)}`;
  const node = el("div", {});
  const button = el("button", { class: "row" + (n ? " line" : "") + (faults.length ? " faulty" : ""), "aria-expanded": "false",
      style: colour(row.part) },
    el("span", { class: "what" }, el("span", { class: "name" }, shown(kindOf(row))),
        el("span", { class: "shape" }, said, n > 1 ? "  " + shareText(row, map) : "",
      faults.length ? el("b", {}, "  " + [...new Set(faults.map((f) => f.kind === "lost" ? "file lost" : f.kind === "overlap"
          ? "stored twice" : f.kind))].join(", ")) : null)));
  if (n) {
    const cells = cellsOf(row, n, false);
    columnTips(cells, n, (i) => {
      const boxes = (row.boxes || []).filter((b) => b[0] === i);
      return [kindOf(row), [map.columns[i].label + ":", ...(boxes.length ? heldText(row, boxes) : ["nothing of it"]),
          ...faults.slice(0, 4).map((f) => faultText(row, f, map.columns))]];
    });
    button.append(cellsOf(row, n, true), el("span", {}, cells));
  }
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    if (open) node.lastChild.remove(); else node.append(detailOf(map, row));
  });
  node.append(button);
  return { node };
}

// Every box of a row in words, and what is wrong with it.
function detailOf(map, row) {
  const most = 80, faults = row.faults || [], boxes = row.boxes || [];
  return el("div", { class: "detail" },
    faults.map((f) => el("p", { class: "loud", style: "margin: 0 0 6px" }, shown(faultText(row, f, map.columns)))),
    el("table", {}, el("thead", {}, el("tr", {}, ["who", "what", "items"].map((t) => el("th", {}, t)))),
      el("tbody", {}, boxes.slice(0, most).map((box) => el("tr", {},
          el("td", {}, shown(box[0] < 0 ? "not known" : map.columns[box[0]].label)), el("td", {}, heldText(row, [box])[0]),
          el("td", {}, commas(itemsOf(row, box))))))),
    boxes.length > most ? el("p", { class: "soft" }, `and ${commas(boxes.length - most)} more`) : null);
}
