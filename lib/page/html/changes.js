// The picture of a change: a line for each kind of tensor, a square for each layer. The shade is the relative L2 distance on a
// scale of powers of ten.
const AT = { layer: 0, tensors: 1, differ: 2, within: 3, only_a: 4, only_b: 5, header: 6, not_finite: 7, moved: 8, largest: 9, casts: 10 };

const oddOf = (c) => (c[AT.not_finite] ? "N" : c[AT.only_a] && c[AT.only_b] ? "?" : c[AT.only_a] ? "A" : c[AT.only_b] ? "B" : c[AT.header]
    ? "#" : c[AT.moved] ? "\u21c4" : c[AT.differ] && c[AT.largest] === null ? "!" : "");
const changedIn = (c) => c[AT.differ] + c[AT.only_a] + c[AT.only_b] + c[AT.header];

// Shades between the smallest and the largest change that were measured, whole powers of ten.
function scaleOf(kinds) {
  const all = kinds.flatMap((k) => k.cells.map((c) => c[AT.largest])).filter((x) => x > 0);
  let low = all.length ? Math.floor(Math.log10(Math.min(...all))) : -3, high = all.length ? Math.ceil(Math.log10(Math.max(...all))) : 0;
  if (high <= low) high = low + 1;
  return { low, high, of: (x) => (x > 0 ? Math.max(0, Math.min(1, (Math.log10(x) - low) / (high - low))) : 0) };
}
const shade = (part) => `background: color-mix(in srgb, var(--experts) ${Math.round(18 + 82 * part)}%, var(--cell))`;

function cellSaid(kind, c) {
  const name = kind.section ? kind.section + "." + c[AT.layer] + "." + kind.kind : kind.kind, many = c[AT.tensors] > 1;
  return [name, [
    changedIn(c) === 0 && !c[AT.within] ? c[AT.casts] ? "all values are equal" : (many ? `all ${c[AT.tensors]} tensors are bit-equal` : "bit-equal") : many
        ? `${commas(changedIn(c))} of ${commas(c[AT.tensors])} tensors differ` : changedIn(c) ? "differs" : "differs within the tolerance",
    c[AT.largest] > 0 ? (many ? "the largest relative L2: " : "relative L2: ") + short(c[AT.largest]) : "",
    c[AT.within] ? counted(c[AT.within], "tensor") + " within the tolerance" : "", c[AT.only_a] ? counted(c[AT.only_a], "tensor")
        + " only in A" : "", c[AT.only_b] ? counted(c[AT.only_b], "tensor") + " only in B" : "",
    c[AT.header] ? counted(c[AT.header], "tensor") + " of another shape or type" : "", c[AT.casts] ? counted(c[AT.casts], "tensor") + " of another type, "
        + "compared by value" : "", c[AT.not_finite] ? counted(c[AT.not_finite], "tensor") + " with NaN or infinities on one side" : "", c[AT.moved] ? "values are found elsewhere"
        : ""]];
}

// `pick(test, text)`: shows the tensors of a square in the list below.
function changeGrid(changes, pick) {
  const scale = scaleOf(changes.kinds);
  const body = section("changes", "Change by layer and module",
      "A square is a kind of tensor in a layer; of experts, the one that changed most. A click lists its tensors.");
  const steps = Array.from({ length: scale.high - scale.low + 1 }, (_, i) => scale.low + i);
  body.append(legend([["background: var(--cell)", "bit-equal"], ...steps.map((p) => [shade(scale.of(10 ** p)), "1e" + p]),
    ["background: var(--bad-ground); box-shadow: inset 0 0 0 1.5px var(--bad)",
        "A, B: only there; #: shape or type; N: NaN; \u21c4: moved"], ["background: color-mix(in srgb, var(--good) 30%, var(--cell))",
        "within the tolerance, or T: equal values in another type"]]));
  const squares = [], grid = el("table", { class: "grid" });
  body.append(el("div", { class: "scroll" }, grid));
  for (const name of [...new Set(changes.kinds.map((k) => k.section))].sort((a, b) => (a === "") - (b === ""))) {
    const kinds = changes.kinds.filter((k) => k.section === name),
        layers = [...new Set(kinds.flatMap((k) => k.cells.map((c) => c[AT.layer])))].sort((a, b) => a - b);
    const step = layers.length > 24 ? 4 : 1;
    const square = (kind, c) => {
      if (!c) return el("td", {});
      const odd = oddOf(c), is = odd ? "odd" : changedIn(c) ? "changed" : c[AT.within] || c[AT.casts] ? "within" : "equal";
      const look = () => pick((row) => row.place === kind.section && row.layer === c[AT.layer] && row.of === kind.kind,
          cellSaid(kind, c)[0]);
      const node = el("td", { class: is + " is", style: is === "changed" ? shade(scale.of(c[AT.largest])) : null, tabindex: is === "equal"
          ? null : "0", "aria-label": cellSaid(kind, c).flat().filter(Boolean).join(", "),
        on: { click: look, keydown: (event) => { if (event.key === "Enter") look(); } } }, odd || (is === "within" && c[AT.casts] ? "T" : ""));
      tipOn(node, () => cellSaid(kind, c));
      squares.push({ node, name: cellSaid(kind, c)[0] });
      return node;
    };
    const titled = (text, scope) => el("th", { class: "kind", scope }, el("div", {}, shown(text)));
    grid.append(el("tbody", {},
      el("tr", { class: "layers" }, titled(name || "outside layers"), name ? layers.map((l, i) => el("th", {}, i % step ? "" : l)) : null),
      kinds.map((kind) => { const by = new Map(kind.cells.map((c) => [c[AT.layer], c]));
          return el("tr", {}, titled(kind.kind, "row"), layers.map((l) => square(kind, by.get(l)))); })));
  }
  if (changes.kinds_left_out) body.append(el("p", { class: "empty" }, counted(changes.kinds_left_out, "kind")
      + " of tensors more did not change."));
  onSearch((test) => { for (const s of squares) s.node.style.opacity = !test || test(s.name) ? "" : "0.15"; });
}
