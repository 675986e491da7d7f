// Parses what rank is meant, lays its share of the model out, and prints it.
//
//   options -> grid, rank -> cell -> ModelMap::parameters() -> at run time: names and local shapes
//                                                           -> as saved: FsdpLayout, keys and boxes
//
// No checkpoint is made: the share is computed from the model's config and headers, and --digest gathers the
// bytes of each tensor from the Hugging Face files.
#include "tools/commands/ls_as.h"

#include "convert/dialects/fsdp/run.h"
#include "convert/jobs/held_tensors.h"
#include "convert/keys/name_rules.h"
#include "convert/keys/value_options.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "core/base/notes.h"
#include "core/hybrid/pattern.h"
#include "hf/model.h"
#include "hf/model_options.h"
#include "io/choice/tensor_choice.h"
#include "io/file/open_options.h"
#include "mappings/fsdp/fp8.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/respelling.h"
#include "mappings/model/run_setup.h"
#include "tools/answers/tensors/held.h"
#include "tools/options/command_line.h"
#include "tools/render/answer_json.h"
#include "tools/render/notes.h"
#include "tools/render/output.h"
#include "tools/render/progress.h"

namespace mckpt::impl {
namespace {

void write_json(Output& out, bool lines, std::span<const HeldTensor> held, i64 rank,
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

// Keeps the tensors that GLOB chooses, in the order of the choice.
void choose(const TensorChoice& choice, std::vector<HeldTensor>& held) {
  std::vector<std::string_view> names;
  for (const HeldTensor& h : held) names.push_back(h.name);
  std::vector<HeldTensor> kept;
  for (i64 i : choice.choose(names)) kept.push_back(std::move(held[i]));
  held = std::move(kept);
}

std::vector<std::string> digests_of(const GlobalFlags& flags, const HfModel& model,
                                    std::span<const HeldTensor> held, int threads) {
  if (!model.has_data())
    throw Error(Code::kNotFound, "there are no weights to digest")
        .file(model.path)
        .help("leave out --digest");
  i64 total = 0;
  for (const HeldTensor& h : held) total += h.local_bytes();
  Progress progress(flags, "digest", total);
  std::vector<std::string> digests =
      held_digests(*model.store, held, threads, [&](i64 bytes) { progress.add(bytes); });
  check_unchanged(model.opening);
  return digests;
}

}  // namespace

void LsAs::declare(CommandLine& line) {
  line.heading("As a rank would hold it");
  line.option(
          "--as WHOM", as_,
          "list what one rank would have of a Hugging Face model: megatron (at run time) or fsdp (as saved)")
      .choices({"megatron", "fsdp"})
      .common();
  line.only_with("--as");
  line.option("--rank", rank_, "the rank whose tensors are listed; tp varies fastest, then cp, dp, pp");
  run_.declare(line);
}

// Throws if a name in --freeze or --dtype-rule matches no parameter of any rank. A name that only this rank
// lacks is right.
void LsAs::refuse_unmatched(const ModelMap& map, const RunSetup& setup) const {
  const DtypeRules rules = run_.values.options().rules;
  const FrozenNames frozen = run_.fsdp.frozen();
  if (frozen.empty() && rules.empty()) return;
  std::vector<ModelParameter> all = map.parameters(Grid{}, Cell{}, setup);
  frozen.refuse_unmatched(all);
  std::vector<std::string> names;
  if (as_ == "fsdp")
    for (FsdpTensor& t : FsdpLayout(all, map.model(), Grid{}, run_.fsdp.setup(Grid{})).tensors(Cell{}))
      names.push_back(std::move(t.key));
  else
    for (const ModelParameter& p : all) names.push_back(p.name);
  rules.refuse_unmatched(std::ssize(names), [&](i64 i) -> std::string_view { return names[i]; });
}

namespace {

// Weights in 8 bits are bytes at run time, made by Transformer Engine.
void show_fp8(const std::vector<ModelParameter>& parameters, FsdpSetup setup, bool digest,
              std::vector<HeldTensor>& held) {
  if (setup.fp8 == Fp8Recipe::kNone) return;
  setup.saved = false;
  refuse_fp8(parameters, setup);
  if (digest)
    throw Error(Code::kUsage, "the bytes of weights in 8 bits are not known")
        .note("Transformer Engine makes them, with scales of its own")
        .help("leave out --digest, or --fp8-recipe");
  for (HeldTensor& h : held)
    if (is_fp8_weight(*h.parameter, setup)) h.dtype = DType::kU8;
}

}  // namespace

Exit LsAs::run(const GlobalFlags& flags, const std::string& path, const TensorChoice& choice, bool digest,
               int threads) {
  Grid grid = run_.grid.grid();
  Cell cell = cell_of(grid, rank_);
  HfModelOptions reading = run_.model.options();
  reading.shapes_only = !digest;
  reading.bad_numbers = BadNumbers::kShow;
  HfModel model = open_hf_model(digest ? path : folder_with_config(path, reading.files), reading);
  const ModelMap& map = *model.map;

  const ValueOptions values = run_.values.options();
  const FsdpSetup sharding = run_.fsdp.setup(grid);
  const bool fsdp = as_ == "fsdp";
  const std::optional<LayerPattern> pattern = run_.pattern.pattern();
  if (fsdp) refuse_unlike_v2(grid, sharding);
  RunSetup setup{vocab_rows(map.model(), map.family(), grid.tp, values.vocab),
                 values.params_dtype.of(map.model()), pattern ? &*pattern : nullptr,
                 run_.spelling.spelling()};
  StoredTypes types{values.dtype, [&](std::string_view name) { return values.rules.of(name); }};
  if (fsdp) {
    refuse_other_types(sharding, values);
    follow_engine(sharding, setup, types);
  }
  refuse_without_effect(setup.spelling, map, setup);
  std::vector<ModelParameter> parameters = map.parameters(grid, cell, setup);
  if (std::string text = run_.grid.note(); !text.empty()) note(flags, text);
  print_notes(flags, notes_of(model));
  if (std::string text = padding_note(map.model(), setup, grid.tp); !text.empty()) note(flags, text);
  run_.fsdp.frozen().apply(parameters);
  const HolderRank holder{map.model(), grid, cell};
  std::vector<HeldTensor> held =
      fsdp ? held_as_saved(parameters, FsdpLayout(parameters, map.model(), grid, sharding), holder, types)
           : held_at_run_time(parameters, holder, types);
  if (!fsdp) show_fp8(parameters, sharding, digest, held);
  refuse_unmatched(map, setup);
  choose(choice, held);

  std::vector<std::string> digests;
  if (digest) {
    for (const std::string& pair : unlike_copies(model, threads))
      warn(flags, cat(pair, ", but should be a copy of it; the copy is not read"));
    digests = digests_of(flags, model, held, threads);
  }
  Output out(flags);
  if (out.json())
    write_json(out, flags.jsonl, held, rank_, digests);
  else if (flags.quiet)
    for (const HeldTensor& h : held) out.line(escaped(h.name));
  else
    write_held(out, held, fsdp, digests);
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt::impl
