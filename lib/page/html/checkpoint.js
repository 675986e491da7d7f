// The page of a checkpoint, or of a planned one.
(function () {
  const s = DATA.summary, map = DATA.map, bad = DATA.findings.some((f) => !f.warning) || map.faulty_tensors > 0;
  document.getElementById("main").replaceChildren();
  head(DATA.title, [[DATA.format, "plain"], DATA.planned ? ["a plan: nothing is written", "warn"] : bad ? ["damaged", "bad"]
      : ["every item is stored once", "good"],
    DATA.choice ? ["chosen: " + shown(DATA.choice), "plain"] : null].filter(Boolean));
  if (map.faulty_tensors && !DATA.findings.some((f) => !f.warning)) alarm("", counted(map.faulty_tensors, "tensor")
      + (map.faulty_tensors === 1 ? " is" : " are") + " not stored exactly once",
    map.rows.flatMap((row) => (row.faults || []).slice(0, 2).map((f) => kindOf(row) + ": " + faultText(row, f, map.columns))).slice(0, 8));
  findings(DATA.findings, DATA.findings_in_all);
  const model = s.parts.find((p) => p.name === "model");
  document.getElementById("main").append(cards([
    [amount(model ? model.items : s.items), model ? "parameters" : "items"], [bytes(s.bytes), "in tensors"], [commas(s.tensors), "tensors"],
    s.ranks > 1 ? [commas(s.ranks), "ranks"] : null, [commas(s.files), s.files === 1 ? "file" : "files"],
    ...s.parts.filter((p) => p.name !== "model").slice(0, 1).map((p) => [bytes(p.bytes), p.name]),
    [s.dtypes.length ? s.dtypes[0].name : "none", s.dtypes.length > 1 ? "and "
        + s.dtypes.slice(1, 3).map((d) => d.name + " (" + percent(d.bytes, s.bytes) + ")").join(", ") + (s.dtypes.length > 3 ? " ..." : "")
        : "type"]]));
  if (DATA.facts.length) document.getElementById("main").append(el("p", { class: "facts" },
      DATA.facts.map(([name, value]) => shown(name + " " + value)).join("  \u00b7  ")));
  const sizes = () => { if (DATA.sizes.nodes.length > 1) sizesMap(DATA.sizes, DATA.choice ? "chosen tensors" : "all"); };
  if (isWhole(map)) sizes(), shardMap(map); else shardMap(map), sizes();
  if (DATA.values) valueTables(DATA.values);
  footer(DATA.values ? "Values are those of all numbers that were read." : DATA.planned
      ? "Computed from config.json and headers; no data were read."
      : "Drawn from headers alone; mckpt plot --stats also reads the values. mckpt verify checks every byte.");
})();
