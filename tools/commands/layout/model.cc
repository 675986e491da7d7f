// Opens the model, lays it out for one cell of the grid, and prints the answer. A folder with a config.json
// is a Hugging Face model; anything else is a checkpoint, whose model is known by its own assets or by
// --assets.
#include "tools/commands/layout/model.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "convert/dialects/fsdp/packed_by.h"
#include "convert/dialects/fsdp/run.h"
#include "convert/facts/pattern_args.h"
#include "convert/keys/name_rules.h"
#include "convert/keys/value_options.h"
#include "convert/layers/model_layers.h"
#include "convert/open/checkpoint.h"
#include "convert/open/open.h"
#include "convert/open/options.h"
#include "core/base/error.h"
#include "core/base/notes.h"
#include "core/fsdp/strategy.h"
#include "core/hybrid/pattern.h"
#include "hf/model.h"
#include "hf/model_options.h"
#include "io/choice/tensor_choice.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/run/sizes.h"
#include "io/file/hub_cache.h"
#include "io/store/store.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/grouped_names.h"
#include "mappings/model/respelling.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/source_table.h"
#include "tools/answers/layout/model.h"
#include "tools/commands/commands.h"
#include "tools/commands/layout/grid.h"
#include "tools/options/choice.h"
#include "tools/options/command_line.h"
#include "tools/options/of_commands/layout_options.h"
#include "tools/options/parse_number.h"
#include "tools/render/findings.h"
#include "tools/render/notes.h"
#include "tools/render/output.h"
#include "tools/render/setting_names.h"

namespace mckpt::impl {
namespace {

namespace fs = std::filesystem;

// Options that only a checkpoint takes.
constexpr const char* kOfCheckpoints[] = {"--assets", "--source-tp", "--source-etp", "--accept"};

bool is_shape(std::string_view word) {
  return word == "scalar" || word.find_first_not_of("0123456789x") == word.npos;
}

// A model in either form; the map belongs to one of the two.
struct ShownModel {
  std::optional<HfModel> model;
  std::optional<Opened> opened;
  // The pattern of a hybrid checkpoint whose layers are in groups.
  std::optional<LayerPattern> groups;

  const CheckpointModel* checkpoint() const { return opened ? opened->sharded.get() : nullptr; }
  const ModelMap& map() const { return model ? *model->map : *opened->model()->map; }
};

// A view of names of fsdp_dtensor as the model's own names is made where `convert gpt-to-hybrid` or `group`
// renamed the layers. The groups of a hybrid model are known by its args, also in torch_dist, whose names
// `to-fsdp` changes; a run of a GPT model that became a hybrid one, whose layers are units of their own,
// packs them otherwise.
void find_other_layers(ShownModel& shown, const GlobalFlags& flags) {
  const CheckpointModel& checkpoint = *shown.checkpoint();
  const DcpDialect dialect = dcp_dialect(checkpoint.on_disk()).value_or(DcpDialect::kPlain);
  const bool core = dialect == DcpDialect::kTorchDist;
  if (!checkpoint.translated() || (!core && dialect != DcpDialect::kFsdpDtensor)) return;
  if (!hybrid_pattern(shown.map().model()).empty() && has_grouped_layers(checkpoint.on_disk()))
    shown.groups = pattern_of_run(checkpoint.on_disk());
  else if (!core)
    note(
        flags,
        "the layers have the names of another form than those of the model in config.json: shown is how a run of that model packs them");
}

// The checkpoint at the path; null: there is a model. Weights without a config.json count as a model, too,
// and opening the model says what is missing.
std::unique_ptr<Store> open_checkpoint_at(const std::string& path, const OpenOptions& files) {
  std::error_code ec;
  if (fs::is_regular_file(fs::path(path) / "config.json", ec) || hub_snapshot(path)) return nullptr;
  std::unique_ptr<Store> store = open_store(path, files);
  return store->driver().hf_weights ? nullptr : std::move(store);
}

ShownModel open_model(CommandLine& line, const std::string& path, const LayoutFlags& flags) {
  ShownModel out;
  OpenAs how{.source = path, .how = flags.source.options()};
  how.how.accept.push_back(Code::kContradiction);  // a layout is the same, whatever weights the bytes are
  if (std::unique_ptr<Store> store = open_checkpoint_at(path, how.how.model.files)) {
    out.opened.emplace(tell_opened(line.flags(), [&] { return open_sharded(std::move(store), how); }));
    find_other_layers(out, line.flags());
    return out;
  }
  for (const char* name : kOfCheckpoints)
    if (line.given(name))
      throw Error(Code::kUsage, cat(name, " has a meaning only for a checkpoint")).file(path);
  HfModelOptions reading = flags.source.options().model;
  reading.shapes_only = true;
  out.model.emplace(open_hf_model(path, reading));
  print_notes(line.flags(), notes_of(*out.model));
  return out;
}

// The names that the choice has; none if it has none.
std::vector<i64> chosen_or_none(const TensorChoice& choice, std::span<const std::string_view> names) {
  try {
    return choice.choose(names);
  } catch (const Error& e) {
    if (e.code() != Code::kNoSuchTensor) throw;
    return {};
  }
}

// The indices of the parameters that are made of the Hugging Face tensors that the choice names, and a note
// about it; none if it names no such tensor. A tensor that is a copy of another one counts as that one.
std::vector<i64> parameters_made_of(const std::vector<ModelParameter>& parameters, const ModelMap& map,
                                    const TensorChoice& choice, const GlobalFlags& flags) {
  std::vector<std::string_view> names;
  for (i32 t = 0; t < map.sources().size(); t++) names.push_back(map.sources()[t].name);
  const std::vector<i64> named = chosen_or_none(choice, names);
  if (named.empty()) return {};
  std::set<i64> tensors(named.begin(), named.end());
  for (const UnreadTensor& u : map.unread())
    if (tensors.contains(u.tensor) && u.of >= 0) tensors.insert(u.of);
  std::vector<i64> made;
  for (i64 p = 0; p < std::ssize(parameters); p++)
    if (std::ranges::any_of(parameters[p].sources, [&](i32 s) { return s >= 0 && tensors.contains(s); }))
      made.push_back(p);
  if (made.empty())
    throw Error(Code::kNoSuchTensor, cat("'", escaped(choice.pattern),
                                         "' names Hugging Face tensors of which this rank has no part"))
        .found(listed(std::vector<std::string_view>{names[named[0]]}))
        .help("--rank chooses a rank of another expert-parallel cell");
  note(flags, cat("'", escaped(choice.pattern), "' names ", counted(std::ssize(named), "Hugging Face tensor"),
                  "; shown are the parameters made of ", named.size() == 1 ? "it" : "them"));
  return made;
}

// The indices of the parameters that any of the globs names, in the order of registration. A glob that names
// none may name tensors of the Hugging Face model.
std::vector<i64> chosen_parameters(const std::vector<ModelParameter>& parameters, const ModelMap& map,
                                   std::span<const std::string> globs, bool regex, const GlobalFlags& flags) {
  std::vector<std::string_view> names;
  for (const ModelParameter& p : parameters) names.push_back(p.global_name);
  std::set<i64> chosen;
  for (const std::string& glob : globs) {
    refuse_empty_glob(glob);
    const TensorChoice choice{glob, regex};
    std::vector<i64> found = chosen_or_none(choice, names);
    if (found.empty()) found = parameters_made_of(parameters, map, choice, flags);
    if (found.empty()) choice.choose(names);  // throws, and says what is near
    chosen.insert(found.begin(), found.end());
  }
  return {chosen.begin(), chosen.end()};
}

// The rows of the vocabulary of a checkpoint are those that it has, unless others are asked for.
RunSetup run_setup(const ShownModel& opened, const LayoutFlags& flags, i64 tp) {
  const ValueOptions values = flags.values.options();
  const ModelMap& map = opened.map();
  RunSetup setup{0, values.params_dtype.of(map.model())};
  if (!opened.checkpoint()) {
    setup.vocab_rows = vocab_rows(map.model(), map.family(), tp, values.vocab);
    return setup;
  }
  const CheckpointModel& source = *opened.checkpoint();
  setup.spelling = source.setup().spelling;
  setup.groups = source.setup().groups;
  setup.vocab_rows = with_file(source.store().root(), [&] {
    return vocab_rows_from(source.setup().vocab_rows, map.model(), map.family(), tp, values.vocab);
  });
  return setup;
}

// A name that --freeze gives and that only this cell lacks is right.
void refuse_unmatched(const FrozenNames& frozen, const ModelMap& map, const RunSetup& setup) {
  if (!frozen.empty()) frozen.refuse_unmatched(map.parameters(Grid{}, Cell{}, setup));
}

// A run packs the model so when it trains; FsdpLayout::refuse_unsavable() says why a conversion refuses the
// packing.
void note_unsavable(const ModelLayout& l, const GlobalFlags& flags) {
  if (l.fsdp.saves_state_dict()) {
    if (l.grid.tp * l.grid.etp > 1)
      note(
          flags,
          "tp      v2 packs tensor-parallel parts so, but cannot save them, and Megatron's main branch refuses such a run: convert refuses it");
    return;
  }
  if (l.fsdp.strategy != Strategy::kNoShard) return;
  auto parts =
      std::ranges::find_if(l.parameters, [](const ModelParameter& p) { return p.split != KeySplit::kNone; });
  if (parts != l.parameters.end())
    note(flags, cat("no_shard  a run packs the model so, but cannot save it: ", parts->global_name,
                    " is stored in parts, and convert refuses it"));
}

// Says who packed the checkpoint, or where its boxes disagree with the nearest packing.
void note_packing(const Store& store, const PackedBy& by, const GlobalFlags& flags) {
  note(flags, cat("packed  ", by.fits() ? "by " : "as no packing gives it; the nearest: ", to_string(by)));
  for (const std::string& remark : by.remarks) note(flags, cat("        ", remark));
  if (!by.fits()) note(flags, cat("        ", disagreement_text(store, by)));
}

// Engine, units and cuts by size of the run, where no option says otherwise.
void follow_packing(FsdpSetup& fsdp, const PackedBy& by, const CommandLine& line) {
  const PackingGuess& g = by.guess;
  if (!line.given("--engine")) fsdp.use(g.engine);
  if (!line.given("--bucket-size")) fsdp.bucket_items = g.bucket_items;
  if (!line.given("--fp8-recipe") && g.fp8 && fsdp.engine == g.engine &&
      (g.engine == Engine::kV2 || fsdp.strategy == Strategy::kOptimGradsParams))
    fsdp.fp8 = by.recipes[0];
  if (line.given("--fsdp-unit") || line.given("--strategy") || by.no_trace || !g.shards) return;
  fsdp.transformer_units = g.transformer_units || !by.has_transformer_layers;
  fsdp.mamba_units = g.mamba_units || !by.has_mamba_layers;
  fsdp.hybrid_stack_units = g.stack_units;
}

// The grid of the options, and of the args and the boxes if the model is a checkpoint that has them.
void choose_grid(ModelLayout& l, const CommandLine& line, const ShownModel& opened,
                 const LayoutFlags& flags) {
  std::optional<RunSizes> args;
  std::optional<PackedBy> by;
  if (opened.opened) {
    args = dcp_run_sizes(opened.opened->on_disk());
    by = packed_by(opened.opened->on_disk());
    if (by) note_packing(opened.opened->on_disk(), *by, line.flags());
    if (by && !by->fits()) by.reset();
  }
  LayoutGrid chosen = layout_grid(line, flags, args ? &*args : nullptr, by ? &*by : nullptr);
  print_notes(line.flags(), chosen.notes);
  l.grid = chosen.grid;
  l.grid_from = std::move(chosen.origins);
  refuse_pipeline(l.grid);
  l.cell = cell_of(l.grid, flags.rank);
  l.fsdp = flags.fsdp.setup(l.grid);
  l.fsdp.strategy = chosen.strategy;
  if (by) follow_packing(l.fsdp, *by, line);
}

void lay_out(ModelLayout& l, const ShownModel& opened, const LayoutFlags& flags) {
  l.fsdp.saved = false;  // shown is what ranks hold
  refuse_unlike_v2(l.grid, l.fsdp);
  ValueOptions values;
  if (flags.dtype) values.dtype = parse_dtype(*flags.dtype, "--dtype");
  refuse_other_types(l.fsdp, values);
  l.types.main_dtype = values.dtype;
  RunSetup setup = run_setup(opened, flags, l.grid.tp);
  const std::optional<LayerPattern> pattern = flags.pattern.pattern(l.grid.pp);
  if (opened.groups) setup.groups = &*opened.groups;
  if (pattern) setup.groups = &*pattern;
  setup.spelling = flags.spelling.spelling().value_or(setup.spelling);
  refuse_without_effect(setup.spelling, opened.map(), setup);
  follow_engine(l.fsdp, setup, l.types);
  l.parameters = opened.map().parameters(l.grid, l.cell, setup);
  flags.fsdp.frozen().apply(l.parameters);
  refuse_unmatched(flags.fsdp.frozen(), opened.map(), setup);
  l.packing = packing_of(l.parameters, l.grid, l.fsdp);
}

void choose_group(ModelLayout& l, i64 group) {
  if (group < 0 || group >= std::ssize(l.packing.groups))
    throw Error(Code::kUsage, "there is no such group")
        .expected(cat("--group 0 to ", std::ssize(l.packing.groups) - 1))
        .found(group);
  l.group = group;
}

}  // namespace

bool names_model(const std::string& word) {
  std::error_code ec;
  return !is_shape(word) && fs::exists(word, ec);
}

Exit answer_model(CommandLine& line, const std::vector<std::string>& words, const LayoutFlags& flags) {
  if (flags.world)
    throw Error(Code::kUsage, "--world has a meaning only for shapes")
        .help("for a model, --dp and the other sizes");
  std::span<const std::string> globs(words.begin() + 1, words.end());
  if (flags.group && !globs.empty())
    throw Error(Code::kUsage, "--group shows a whole group: it takes no GLOB");
  if (!flags.memory)
    for (const char* name : {"--gradients", "--moments"})
      if (line.given(name)) throw Error(Code::kUsage, cat(name, " has a meaning only with --memory"));
  if (flags.memory && (flags.group || !globs.empty()))
    throw Error(Code::kUsage, "--memory is of the whole model: it takes no --group and no GLOB");
  if (flags.regex && globs.empty()) throw Error(Code::kUsage, "--regex has a meaning only with GLOB");
  ShownModel opened = open_model(line, words[0], flags);
  ModelLayout l;
  l.path = words[0];
  choose_grid(l, line, opened, flags);
  lay_out(l, opened, flags);
  note_unsavable(l, line.flags());
  if (flags.group) choose_group(l, *flags.group);
  if (flags.memory) l.memory = memory_table(l.parameters, l.grid, l.fsdp, flags.memory_types());
  if (const std::string outside = outside_units_text(l); !outside.empty())
    warn(line.flags(), with_flags(outside));
  if (!globs.empty())
    l.chosen = chosen_parameters(l.parameters, opened.map(), globs, flags.regex, line.flags());

  Output out(line.flags());
  out.json() ? write_model_layout_json(out, l) : write_model_layout(out, l);
  out.flush();
  return l.row_aligned() ? Exit::kOk : Exit::kNo;
}

}  // namespace mckpt::impl
