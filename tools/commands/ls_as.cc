#include "tools/commands/ls_as.h"

#include <algorithm>

#include "convert/jobs/holding_reader.h"
#include "io/file/parallel.h"
#include "io/file/sha256.h"
#include "io/file/source_stamps.h"
#include "tools/render/answer_json.h"
#include "tools/render/text_table.h"

namespace mckpt {
namespace {

// One line: a tensor as the rank holds it, whole or as a box of a larger one.
struct Held {
  std::string name;
  const ModelParameter* parameter;
  Shape shape;                      // of the whole, as far as it is known by that name
  std::vector<i64> offsets, sizes;  // the rank's box in it
  ItemRange items;                  // of the parameter's local order
  DType dtype = DType::kBF16;

  i64 local_bytes() const { return dtype_bytes(dtype, items.items()); }
};

Held whole(const ModelParameter& p, DType dtype) {
  const Shape& shape = p.shape();
  std::vector<i64> sizes(shape.dims().begin(), shape.dims().end());
  return {p.name, &p, shape, std::vector<i64>(sizes.size(), 0), sizes, {0, shape.items()}, dtype};
}

// What the flags say of types, read once.
struct StoredTypes {
  DtypeRules rules;
  std::optional<DType> asked;

  // Main weights have the type that was asked for; what has none (frozen parameters, buffers) stays as it is.
  DType of(std::string_view name, const ModelParameter& p) const {
    return rules.of(name).value_or(asked && p.trainable && !p.buffer() ? *asked : p.dtype);
  }
};

std::vector<Held> held_as_fsdp(const std::vector<ModelParameter>& parameters, const FsdpLayout& layout,
                               const Cell& cell, const StoredTypes& types) {
  std::vector<Held> out;
  for (FsdpTensor& t : layout.tensors(cell)) {
    const ModelParameter& p = parameters[static_cast<std::size_t>(t.parameter)];
    DType dtype = types.of(t.key, p);
    out.push_back({std::move(t.key), &p, t.global, std::move(t.offsets), std::move(t.sizes), t.items, dtype});
  }
  return out;
}

std::vector<std::string> digests_of(const HfModel& model, std::span<const Held> held, int threads) {
  if (!model.has_data())
    throw Error(Code::kNotFound, "there are no weights to digest")
        .file(model.path)
        .help("leave out --digest");
  StoreFiles files(*model.store);
  std::vector<std::unique_ptr<HoldingReader>> readers;
  for (int i = 0; i < threads; i++) readers.push_back(std::make_unique<HoldingReader>(*model.store, files));
  std::vector<std::string> digests(held.size());
  parallel_for(std::ssize(held), threads, [&](int worker, i64 i) {
    const Held& h = held[static_cast<std::size_t>(i)];
    Sha256 sha;
    readers[static_cast<std::size_t>(worker)]->read(*h.parameter, h.items, h.dtype,
                                                    [&](std::span<const u8> bytes) { sha.update(bytes); });
    digests[static_cast<std::size_t>(i)] = sha.hex_digest();
  });
  check_sources_unchanged();
  return digests;
}

void write_held(JsonWriter& json, const Held& h, i64 rank, const std::string* sha256) {
  json.begin_object()
      .field("name", h.name)
      .field("dtype", dtype_name(h.dtype))
      .field("shape", h.shape.dims());
  json.field("bytes", dtype_bytes(h.dtype, h.shape.items())).null_field("file").null_field("offset");
  json.key("chunks").begin_array();
  if (!h.items.empty()) {
    json.begin_object().field("rank", rank).field("offsets", std::span<const i64>(h.offsets));
    json.field("sizes", std::span<const i64>(h.sizes)).null_field("file").null_field("offset");
    json.field("bytes", h.local_bytes()).end_object();
  }
  json.end_array();
  if (sha256) json.field("sha256", *sha256);
  json.end_object();
}

void write_json(Output& out, bool lines, std::span<const Held> held, i64 rank,
                std::span<const std::string> digests) {
  AnswerJson json(out);
  if (!lines) json.begin_answer("ls", true).key("tensors").begin_array();
  for (std::size_t i = 0; i < held.size(); i++) {
    write_held(json, held[i], rank, digests.empty() ? nullptr : &digests[i]);
    if (lines) out.write("\n");
  }
  if (lines) return;
  json.end_array().key("problems").begin_array().end_array();  // they were refused before
  json.end_answer();
}

std::string box_text(const Held& h) {
  if (h.items.empty()) return "nothing";
  if (h.items.items() == h.shape.items()) return "all";
  return cat(dims_to_string(h.sizes), " at ", dims_to_string(h.offsets));
}

void write_text(Output& out, std::span<const Held> held, bool boxes, std::span<const std::string> digests) {
  using enum Align;
  std::vector<TextTable::Column> columns = {
      {"name", kLeft}, {"dtype", kLeft}, {"shape", kLeft}, {"bytes", kRight}};
  if (!digests.empty()) columns.push_back({"sha256", kLeft});
  if (boxes) columns.push_back({"held", kLeft});
  TextTable table(std::move(columns));
  for (std::size_t i = 0; i < held.size(); i++) {
    const Held& h = held[i];
    std::vector<std::string> cells = {escaped(h.name), std::string(dtype_name(h.dtype)), to_string(h.shape),
                                      with_commas(h.local_bytes())};
    if (!digests.empty()) cells.push_back(digests[i]);
    if (boxes) cells.push_back(box_text(h));
    table.row(std::move(cells));
  }
  table.write(out);
}

void choose(const TensorChoice& choice, std::vector<Held>& held) {
  std::vector<std::string_view> names;
  for (const Held& h : held) names.push_back(h.name);
  std::vector<i64> chosen = choice.choose(names);
  std::vector<Held> kept;
  for (i64 i : chosen) kept.push_back(std::move(held[static_cast<std::size_t>(i)]));
  held = std::move(kept);
}

}  // namespace

void LsAs::declare(CommandLine& line) {
  line.heading("As a rank would hold it");
  line.option("--as WHOM", as_,
              "for a Hugging Face model: list what one rank holds, megatron (at run time) or fsdp (as saved)")
      .choices({"megatron", "fsdp"});
  line.only_with("--as");
  line.option("--rank", rank_, "the rank whose tensors are listed; tp varies fastest, then cp, dp, pp");
  model_.declare(line);
  grid_.declare(line);
  fsdp_.declare(line);
  values_.declare(line);
}

// What no rank of any grid has, which is more than this rank lacks.
void LsAs::refuse_unmatched(const ModelMap& map, const RunSetup& setup) const {
  DtypeRules rules = values_.dtype_rules();
  if (!fsdp_.names_frozen() && rules.empty()) return;
  std::vector<ModelParameter> all = map.parameters(Grid{}, Cell{}, setup);
  fsdp_.refuse_unmatched(all);
  std::vector<std::string> names;
  if (as_ == "fsdp")
    for (FsdpTensor& t : FsdpLayout(all, map.model(), Grid{}, fsdp_.setup(Grid{})).tensors(Cell{}))
      names.push_back(std::move(t.key));
  else
    for (const ModelParameter& p : all) names.push_back(p.name);
  rules.refuse_unmatched(std::ssize(names),
                         [&](i64 i) -> std::string_view { return names[static_cast<std::size_t>(i)]; });
}

Exit LsAs::run(const GlobalFlags& flags, const std::string& path, const TensorChoice& choice, bool digest,
               int threads) {
  Grid grid = grid_.grid();
  Cell cell = cell_of(grid, rank_);
  HfModel model = open_hf_model(path, model_);
  const ModelMap& map = *model.map;
  if (std::string text = grid_.note(); !text.empty()) note(flags, text);
  tell_notes(flags, model);

  RunSetup setup{vocab_rows(map.model(), map.family(), grid.tp, values_.vocab()),
                 values_.params_dtype(map.model())};
  std::vector<ModelParameter> parameters = map.parameters(grid, cell, setup);
  fsdp_.freeze(parameters);
  StoredTypes types{values_.dtype_rules(), values_.dtype()};
  std::vector<Held> held;
  bool fsdp = as_ == "fsdp";
  if (fsdp)
    held =
        held_as_fsdp(parameters, FsdpLayout(parameters, map.model(), grid, fsdp_.setup(grid)), cell, types);
  else
    for (const ModelParameter& p : parameters) held.push_back(whole(p, types.of(p.name, p)));
  refuse_unmatched(map, setup);
  choose(choice, held);

  std::vector<std::string> digests;
  if (digest) {
    warn_of_unlike_copies(flags, model, threads);
    digests = digests_of(model, held, threads);
  }
  Output out(flags);
  if (out.json())
    write_json(out, flags.jsonl, held, rank_, digests);
  else if (flags.quiet)
    for (const Held& h : held) out.line(escaped(h.name));
  else
    write_text(out, held, fsdp, digests);
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt
