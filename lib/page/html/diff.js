// The page of a diff.
(function () {
  const main = document.getElementById("main"), tensor = DATA.rows.filter((r) => r.kind !== "object" && r.kind !== "file"),
      others = DATA.rows.filter((r) => r.kind === "object" || r.kind === "file");
  main.replaceChildren();
  head(DATA.a + "  |  " + DATA.b, [DATA.equal ? ["equal", "good"] : DATA.alike ? ["alike, within the tolerance", "good"]
      : ["different", "bad"]]);
  main.append(el("p", { class: "verdict" }, shown(DATA.verdict)),
      el("p", { class: "facts" }, "A is " + shown(DATA.a), "  \u00b7  B is " + shown(DATA.b), "  \u00b7  compared "
      + (DATA.compared === "tensors of the same names" ? "by name" : "as: " + shown(DATA.compared))));
  findings(DATA.findings, DATA.findings_in_all);
  main.append(cards([[commas(DATA.tensors), "tensors"], [commas(DATA.bit_equal), "bit-equal"], DATA.equal_values
      ? [commas(DATA.equal_values), "equal in another type"] : null, [commas(DATA.differ), "differ"], DATA.within
      ? [commas(DATA.within), "within the tolerance"] : null, DATA.casts ? [commas(DATA.casts), "of another type"] : null]));
  let list = null;
  if (DATA.changes.kinds.length) changeGrid(DATA.changes, (test, text) => list.only(test, text));
  list = tensorList(tensor, DATA.rows_in_all - others.length);
  if (others.length) {
    const body = section("others", "Objects and files", "What is not a tensor: values at their places, and files beside the tensors.");
    body.append(el("div", { class: "scroll" }, el("table", { class: "list" },
        el("thead", {}, el("tr", {}, ["what", "name", "A", "B"].map((t) => el("th", {}, t)))),
      el("tbody", {}, others.map((r) => el("tr", {}, el("td", {}, r.kind),
          el("td", { class: "name" }, shown(r.name + (r.at.startsWith("byte ") ? "  from " + r.at + " on" : r.a || r.b ? r.at : "  " + r.at))),
          el("td", { class: "mono clip" }, shown(r.a || "")), el("td", { class: "mono clip" }, shown(r.b || ""))))))));
  }
  const notes = [...DATA.not_compared, ...(DATA.unread.length
      ? ["not read: " + DATA.unread.slice(0, 12).join(", ") + (DATA.unread.length > 12 ? " ..." : "")] : [])];
  if (notes.length) section("notes", "Not compared").append(el("ul", {}, notes.map((n) => el("li", {}, shown(n)))));
  footer("Relative L2 is the length of the difference by the length of B.");

  function tensorList(rows, all) {
    const body = section("tensors", "Tensors that differ", "Weights before states, the most different first.");
    if (rows.length === 0) return body.append(el("p", { class: "empty" }, "There are none.")), { only() {} };
    const most = Math.max(...rows.map((r) => r.relative_l2 || 0), 1e-300),
        least = Math.min(...rows.map((r) => r.relative_l2 || 1).filter((x) => x > 0), most);
    const span = Math.max(Math.log10(most) - Math.log10(least), 1e-9);
    const bar = (x) => (x > 0 ? el("span", { class: "bar-in",
        style: `width:${Math.round(8 + 72 * ((Math.log10(x) - Math.log10(least)) / span))}px; background: var(--experts); margin-right: 8px` }) : null);
    const words = { only_a: "only in A", only_b: "only in B", shape: "another shape", dtype: "another type, values not compared",
        cast: "another type" };
    const lines = rows.map((r) => {
      const what = r.kind === "values" ? el("td", { class: "right" }, bar(r.relative_l2), r.not_finite
          ? el("span", { class: "loud" }, counted(r.not_finite, "NaN or infinity").replace("infinitys", "infinities"))
          : r.relative_l2 === undefined || r.relative_l2 === null ? el("span", { class: "loud" }, "not measured") : short(r.relative_l2))
        : el("td", { class: "right " + (r.kind === "cast" ? "soft" : "loud") }, words[r.kind]);
      return el("tr", {}, what, el("td", { class: "name" }, shown(r.name), r.hint ? el("div", { class: "loud" }, shown(r.hint)) : null,
          r.beyond === 0 ? el("div", { class: "soft" }, "within the tolerance") : null),
        el("td", { class: "right" }, short(r.largest)),
            el("td", { class: "right" }, typeof r.cosine === "number" ? r.cosine.toFixed(6) : ""),
            el("td", { class: "right" }, r.ulps ? commas(r.ulps) : ""), el("td", { class: "right" }, r.items >= 0 ? commas(r.items) : ""),
        el("td", { class: "mono" }, shown(r.at || "")),
            el("td", { class: "mono", style: "white-space: nowrap" }, shown((r.a || "") + (r.a || r.b ? " | " : "") + (r.b || ""))));
    });
    const told = el("p", { class: "facts", "aria-live": "polite" }),
        clear = el("button", { hidden: true, on: { click: () => only(null) } }, "show all"), table = el("tbody", {});
    body.append(el("div", { class: "choices" }, clear), told, el("div", { class: "scroll" }, el("table", { class: "list" },
      el("thead", {}, el("tr", {}, ["relative L2", "tensor", "largest", "cosine", "ulps", "items", "first",
          "A | B"].map((t, i) => el("th", { class: i < 6 && i !== 1 ? "right" : "" }, t)))), table)));
    let picked = null, found = null, limit = 200;
    const more = el("button", { on: { click: () => { limit += 1000; draw(); } } }, "show more");
    body.append(more);
    function draw(text) {
      const hits = rows.map((r, i) => i).filter((i) => (!picked || picked(rows[i])) && (!found || found(rows[i].name)));
      table.replaceChildren(...hits.slice(0, limit).map((i) => lines[i]));
      more.hidden = hits.length <= limit;
      told.textContent = (text ? "of " + shown(text) + ": " : "") + counted(hits.length, "row")
          + (all > rows.length ? ` of the ${commas(rows.length)} most different; ${commas(all)} in all, mckpt diff lists them` : "");
      clear.hidden = !picked;
    }
    function only(test, text) { picked = test; draw(text); if (test) body.scrollIntoView({ behavior: "smooth", block: "start" }); }
    onSearch((test) => { found = test; draw(); });
    draw();
    return { only };
  }
})();
