// Sizes by module: rectangles whose areas are bytes, in each other as modules are. A click goes into a module, Escape out.
const NODE = { bytes: 0, items: 1, tensors: 2, part: 3, children: 4 };

function sizesMap(sizes, title) {
  const body = section("sizes", "Sizes by module",
      "Areas are bytes. A click or Enter goes into a module, Escape goes back. All experts of a layer are one module.");
  const nodes = sizes.nodes, crumbs = el("div", { class: "crumbs", "aria-label": "The module that is shown" }), holder = el("div", {});
  const parts = [...new Set(nodes.filter((n) => !n[NODE.children]).map((n) => n[NODE.part]))];
  body.append(legend(parts.map((p) => [`background: color-mix(in srgb, var(--${p}) 55%, var(--ground))`, p])), crumbs, holder);
  if (sizes.cut) body.append(el("p", { class: "empty" }, "Modules with few bytes are not divided further."));
  let way = [{ label: title, id: sizes.root }], test = null, width = 0;

  const childrenOf = (id) => { const list = nodes[id][NODE.children] || [], out = [];
      for (let i = 0; i < list.length; i += 2) out.push({ label: list[i], id: list[i + 1] }); return out; };
  // The chart is made anew and takes the focus again, or Escape would go to no part of the page. Keys go on at the tile of the
  // module `from`, or else at the first one.
  function go(next, keys, from) {
    way = next, draw();
    const tiles = [...holder.querySelectorAll("[tabindex='0']")];
    ((keys && (tiles.find((t) => t.dataset.label === from) || tiles[0])) || holder.firstChild).focus({ preventScroll: !keys });
  }
  function draw() {
    const focused = holder.contains(document.activeElement);
    const at = way[way.length - 1], high = Math.round(Math.min(620, Math.max(320, width * 0.5)));
    crumbs.replaceChildren(...way.flatMap((w, i) => [i ? "\u203a" : null, i + 1 < way.length
        ? el("button", { on: { click: (event) => go(way.slice(0, i + 1), !event.detail, way[i + 1].label) } }, shown(w.label))
        : el("span", {}, shown(w.label) + "  " + bytes(nodes[w.id][NODE.bytes]))].filter(Boolean)));
    const chart = svg("svg", { class: "tree", viewBox: `0 0 ${width} ${high}`, height: high, role: "group", tabindex: "-1",
        "aria-label": "Sizes of the modules of " + shown(at.label) });
    place(chart, at.id, [], { x: 0, y: 0, w: width, h: high }, 0, []);
    holder.replaceChildren(chart);
    if (focused) chart.focus({ preventScroll: true });
  }

  // Draws the children of a node in the rectangle, and theirs in them as long as there is room. A module has a line for its name
  // where that takes little of it; the names of others, `unnamed`, are in front of those of what is in them.
  function place(into, id, steps, room, depth, unnamed) {
    for (const [child, r] of squares(childrenOf(id).map((c) => ({ ...c, size: nodes[c.id][NODE.bytes] })), room)) {
      if (r.w < 0.7 || r.h < 0.7) continue;
      const node = nodes[child.id], group = node[NODE.children] && r.w > 16 && r.h > 16 && depth < 8;
      const name = [...way.slice(1), ...steps, child].map((w) => w.label).join(".");
      const dim = test && !group && !test(name);
      const tile = svg("rect", { class: "tile" + (group ? " group" : "") + (dim ? " dim" : ""), x: r.x, y: r.y, width: r.w, height: r.h,
          rx: Math.min(3, r.w / 4),
        style: group ? null : `fill: color-mix(in srgb, var(--${node[NODE.part]}) ${depth % 2 ? 44 : 52}%, var(--ground))` });
      const below = [...steps, child];
      const enter = (event) => { event.stopPropagation(); hideTip(); go([...way, ...below], event.key); };
      const g = svg("g", node[NODE.children] ? { class: "zoom", "data-label": child.label,
          tabindex: depth === 0 ? "0" : null, role: depth === 0 ? "button" : null,
          "aria-label": depth === 0 ? shown(name) + ", " + bytes(node[NODE.bytes]) : null,
        on: { click: enter, keydown: (event) => { if (event.key === "Enter") enter(event); } } } : {}, tile);
      tipOn(g, (event) => { event.stopPropagation();
          return [name, [bytes(node[NODE.bytes]) + ", " + percent(node[NODE.bytes], nodes[sizes.root][NODE.bytes]) + " of all",
          amount(node[NODE.items]) + " items in " + counted(node[NODE.tensors], "tensor")]]; });
      const around = steps.length ? steps[steps.length - 1].label : way[way.length - 1].label;
      const label = (/^\d+$/.test(child.label) && /layer|block|^h$/.test(around) ? "layer " : "") + shown(child.label),
          letters = Math.floor((r.w - 8) / 6.7);
      if (group) {
        const named = r.w > 40 && (depth === 0 || label.startsWith("layer ") ? r.h > 40 : r.h > 150);
        if (named) g.append(svg("text", { class: depth === 0 ? "big" : "", x: r.x + 5, y: r.y + 14 },
            cut(label, depth === 0 ? Math.floor((r.w - 8) / 7.6) : letters)));
        into.append(g);
        place(g, child.id, below, named ? { x: r.x + 2, y: r.y + 19, w: r.w - 4, h: r.h - 21 }
            : { x: r.x + 1, y: r.y + 1, w: r.w - 2, h: r.h - 2 }, depth + 1, named ? [] : [...unnamed, child.label]);
        continue;
      }
      const whole = [...unnamed.map(shown), label].join(".").replace(/\.weight$/, ""), words = whole.length <= letters ? whole : label;
      if (r.h > 15 && (words.length <= letters || letters > 11)) g.append(svg("text", { x: r.x + 4, y: r.y + 12.5 }, cut(words, letters)));
      if (r.h > 29 && bytes(node[NODE.bytes]).length * 6.4 <= r.w - 8) g.append(svg("text", { class: "small", x: r.x + 4, y: r.y + 25.5 },
          bytes(node[NODE.bytes])));
      into.append(g);
    }
  }

  body.addEventListener("keydown", (event) => { if ((event.key === "Escape" || event.key === "Backspace") && way.length > 1)
      go(way.slice(0, -1), true, way[way.length - 1].label); });
  onSearch((t) => { test = t; draw(); });
  const fit = () => { const now = Math.floor(holder.clientWidth); if (now > 0 && now !== width) width = now, draw(); };
  addEventListener("resize", fit);
  fit();
}
const cut = (text, most) => text.length <= most ? text : text.slice(0, Math.max(1, most - 1)) + "\u2026";

// Rectangles with areas in proportion, as square as they can be, the largest first: squarified treemaps (Bruls, Huizing, van
// Wijk 2000). Children of one size, such as layers, stay in their order.
function squares(children, room) {
  const out = [], all = children.filter((c) => c.size > 0).sort((a, b) => b.size - a.size);
  let { x, y, w, h } = room, rest = all.reduce((sum, c) => sum + c.size, 0);
  const worst = (line, sum, side, scale) => { const s = sum * scale;
      return Math.max((side * side * line[0].size * scale) / (s * s), (s * s) / (side * side * line[line.length - 1].size * scale)); };
  for (let i = 0; i < all.length && w > 0 && h > 0;) {
    const scale = (w * h) / rest, side = Math.min(w, h), line = [all[i]];
    let sum = all[i].size;
    for (i++; i < all.length && worst([...line.slice(0, 1), all[i]], sum + all[i].size, side, scale) <= worst(line, sum, side, scale);
        i++) line.push(all[i]), sum += all[i].size;
    const thick = (sum * scale) / side;
    let at = 0;
    for (const c of line) { const long = (c.size * scale) / thick;
        out.push([c, w >= h ? { x, y: y + at, w: thick, h: long } : { x: x + at, y, w: long, h: thick }]); at += long; }
    if (w >= h) x += thick, w -= thick; else y += thick, h -= thick;
    rest -= sum;
  }
  return out;
}
