// Boxes of tensors as pictures. A cell is the whole tensor, seen from the front: what a column holds of it is filled, at its
// place. Down goes the first axis that is cut (or the number of the expert), to the right goes the second one:
//
//   rank 0   rank 1   rank 2   rank 3           rows [0, 12), [12, 28), none, [28, 32) of a tensor of 32 rows
//   ######   .        .        .
//   .        ######   .        .
//   .        ######   .        .
//   .        .        .        ######
const CELL = 10, GAP = 1, HIGH = 100;  // in units of the drawing

// The row with what drawing needs: which axes go down and to the right, and how far the numbers of members go.
function frameOf(row) {
  if (row.frame) return row.frame;
  const axes = row.axes || [], at = row.stack ? 4 : 2;
  const frame = { axes, at, down: null, right: null, first: 0, span: 1, numbers: null };
  const whole = (box) => axes.every((a, i) => box[at + 2 * i] === 0 && box[at + 2 * i + 1] === row.dims[a]);
  if (row.stack) {
    frame.numbers = numbersIn(row.members);
    const absent = (row.faults || []).filter((f) => f.kind === "absent").map((f) => f.member);
    frame.first = Math.min(frame.numbers[0], ...absent);
    frame.span = Math.max(frame.numbers[frame.numbers.length - 1], ...absent) - frame.first + 1;
    // A part that many experts have alike is a cut of each of them, to the right; a part of one is where a buffer was cut.
    const wide = axes.length > 1 || (row.boxes || []).some((b) => b[3] > 1 && !whole(b));
    if (wide) frame.right = axes.length ? axes[0] : null; else frame.down = axes.length ? axes[0] : null;
  } else {
    frame.down = axes.length ? axes[0] : null;
    frame.right = axes.length > 1 ? axes[1] : null;
  }
  return (row.frame = frame);
}
// A box as [x, y, width, height] in parts of the cell, from its numbers along an axis.
function placeIn(row, member, count, along) {
  const f = frameOf(row);
  const part = (axis) => { if (axis === null || !row.dims[axis]) return [0, 1]; const [o, s] = along(axis);
      return [o / row.dims[axis], s / row.dims[axis]]; };
  const [x, width] = part(f.right), [top, height] = part(f.down);
  if (!row.stack) return [x, top, width, height];
  const number = f.numbers[member] - f.first;
  return count > 1 ? [x, number / f.span, width, (f.numbers[member + count - 1] - f.numbers[member] + 1) / f.span]
      : [x, (number + top) / f.span, width, height / f.span];
}
const alongBox = (row, box) => (axis) => { const f = frameOf(row), i = f.axes.indexOf(axis); return i < 0 ? [0, row.dims[axis]]
    : [box[f.at + 2 * i], box[f.at + 2 * i + 1]]; };
const placeOfBox = (row, box) => placeIn(row, row.stack ? box[2] : 0, row.stack ? box[3] : 1, alongBox(row, box));
function placeOfFault(row, fault) {
  if (fault.kind === "absent") { const f = frameOf(row); return [0, (fault.member - f.first) / f.span, 1, 1 / f.span]; }
  return placeIn(row, row.stack ? fault.member : 0, 1, (axis) => [fault.offsets[axis], fault.sizes[axis]]);
}
const itemsOf = (row, box) => { const along = alongBox(row, box);
    return row.dims.reduce((n, _, axis) => n * along(axis)[1], row.stack ? box[3] : 1); };
const isCopy = (box) => (box[1] & 1) !== 0, isLost = (box) => (box[1] & 2) !== 0;

// Never thinner than can be seen. Many columns are close together.
let gap = GAP;
const widest = (columns) => (columns <= 4 ? 150 : 84);  // pixels of a column
const setColumns = (n) => { gap = n > 48 ? 0.4 * GAP : GAP; };
function rect(column, [x, y, width, height], least = 5) {
  const w = CELL - gap, left = column * CELL + x * w, wide = Math.max(width * w, 0.4);
  const top = Math.min(y * HIGH, HIGH - least), high = Math.max(height * HIGH, least);
  return `M${left.toFixed(2)} ${top.toFixed(2)}h${wide.toFixed(2)}v${high.toFixed(2)}h${(-wide).toFixed(2)}z`;
}
function drawing(columns, paths, attributes) {
  return svg("svg", { viewBox: `0 0 ${Math.max(columns, 1) * CELL - gap} ${HIGH}`, preserveAspectRatio: "none", class: "cells",
      "aria-hidden": "true", ...attributes },
    paths.filter(([, d]) => d).map(([kind, d]) => svg("path", { class: kind, d })));
}
const grounds = (columns) => Array.from({ length: columns }, (_, c) => rect(c, [0, 0, 1, 1])).join("");

// The cells of all columns, or one cell with everything. Holes go over all cells, because nobody has them.
function cellsOf(row, columns, merged) {
  const d = { hold: "", copy: "", nothing: "", hole: "", twice: "" };
  for (const box of row.boxes || []) {
    if (!merged && box[0] < 0) continue;
    const place = placeOfBox(row, box), column = merged ? 0 : box[0];
    if (itemsOf(row, box) === 0 && row.dims.length > 0) { if (!merged) d.nothing += `M${column * CELL + 3} 50h3`; continue; }
    d[isLost(box) ? "hole" : isCopy(box) ? "copy" : "hold"] += rect(column, place);
  }
  for (const fault of row.faults || []) {
    if (fault.kind === "hole" || fault.kind === "absent")
      for (let c = 0; c < (merged ? 1 : columns); c++) d.hole += rect(c, placeOfFault(row, fault), 9);
    if (fault.kind === "overlap")
      for (const c of merged ? [0] : [fault.first, fault.second]) if (c >= 0) d.twice += rect(c, placeOfFault(row, fault), 9);
  }
  return drawing(merged ? 1 : columns, [["ground", grounds(merged ? 1 : columns)], ["copy", d.copy], ["hold", d.hold],
      ["nothing", d.nothing],
    ["hole", d.hole], ["holeline", d.hole], ["twice", d.twice], ["twiceline", d.twice]],
        { style: merged ? "" : "max-width:" + columns * widest(columns) + "px" });
}
// Which members a box is of, in words.
function membersText(row, box) {
  const f = frameOf(row), a = f.numbers[box[2]], b = f.numbers[box[2] + box[3] - 1], said = row.said || ((n) => n);
  return (row.said ? "" : "number ") + (a === b ? said(a) : said(a) + "\u2013" + said(b));
}

// What a column has of the row, in words.
function heldText(row, boxes) {
  const f = frameOf(row);
  return boxes.slice(0, 6).map((box) => {
    const along = alongBox(row, box), parts = [];
    if (row.stack) parts.push(membersText(row, box));
    for (const axis of f.axes) { const [o, s] = along(axis);
        if (s !== row.dims[axis]) parts.push((axis === 0 ? "rows " : axis === 1 ? "columns " : "axis " + axis + " ")
        + `[${commas(o)}, ${commas(o + s)}) of ${commas(row.dims[axis])}`); }
    return (parts.join(", ") || "all of it") + (itemsOf(row, box) === 0 ? ": no items" : "")
        + (isLost(box) ? "  \u2014 its file is not there" : isCopy(box) ? "  (a copy)" : "");
  }).concat(boxes.length > 6 ? [`and ${boxes.length - 6} more boxes`] : []);
}
function faultText(row, fault, columns) {
  const who = (c) => (c >= 0 && columns[c] ? columns[c].label : "?");
  const box = row.dims.length && fault.offsets.length ? ` at [${fault.offsets.join(", ")}], sizes [${fault.sizes.join(", ")}]` : "";
  const of = row.stack && fault.kind !== "absent" ? ` of number ${frameOf(row).numbers[fault.member]}` : "";
  if (fault.kind === "absent") return `number ${fault.member} is not there, but other layers have it`;
  if (fault.kind === "lost") return `the file of ${who(fault.first)} is not there: items${box}${of} are lost`;
  if (fault.kind === "hole") return `a hole${box}${of}: nobody has these items`;
  if (fault.kind === "overlap") return `stored twice${box}${of}: by ${who(fault.first)} and ${who(fault.second)}`;
  if (fault.kind === "outside") return `a chunk of ${who(fault.first)} reaches out of the tensor${box}${of}`;
  return "so many chunks cross each other that they were not checked";
}
