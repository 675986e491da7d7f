#include "tools/verify_against.h"

#include <sys/stat.h>

#include <map>
#include <numeric>
#include <set>

#include "convert/compare/tensor_differences.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/layers/model_layers.h"
#include "convert/layers/pattern_args.h"
#include "io/verify/manifest_findings.h"
#include "tools/comparison.h"
#include "tools/render/findings.h"
#include "tools/render/progress.h"
#include "tools/verify_assets.h"
#include "tools/verify_beside.h"
#include "tools/verify_objects.h"

namespace mckpt {
namespace {

bool is_sharded(const Store& store) { return store.format().starts_with("DCP"); }

// Casts exist between these types alone.
bool holds_values_of(DType to, DType from) {
  return to == from || to == DType::kF64 || (to == DType::kF32 && from != DType::kF64);
}

// Equal to what converting gives is not equal to the source where the type cannot hold its values. Told
// beside the result.
void warn_of_casts(const CheckpointModel& checkpoint, VerifyReport& report) {
  std::vector<std::optional<DType>> stored = checkpoint.stored_types();
  const SourceTable& tensors = checkpoint.map().sources();
  std::vector<Finding> found;
  for (i32 t = 0; t < tensors.size(); t++) {
    std::optional<DType> type = stored[static_cast<std::size_t>(t)];
    if (!type || !tensors[t].header_known || holds_values_of(*type, tensors[t].dtype)) continue;
    found.push_back({.code = Code::kUnequal,
                     .tensor = std::string(tensors[t].name),
                     .message = cat("compared after a cast from ", dtype_name(tensors[t].dtype), " to ",
                                    dtype_name(*type), ", which does not hold all of its values"),
                     .warning = true});
  }
  i64 count = std::ssize(found);
  if (count > 0) report.add({"casts", Check::Status::kWarn, count, "tensors"}, std::move(found));
}

// A checkpoint against the Hugging Face model that it was made of.
bool chunks_against_model(std::unique_ptr<Store> there, const AgainstFlags& against, Comparison& compare,
                          const GlobalFlags& flags, VerifyReport& report) {
  HfModelFlags reading = against.model.model;
  reading.kept_map = kept_map(*there);
  HfModel model = open_hf_model(*against.source, reading);
  if (!model.has_data())
    throw Error(Code::kNotFound, "the folder has no weights to compare with").file(*against.source);
  const Store* source = model.store.get();  // stays where it is
  CheckpointModel checkpoint;
  RunSetup values{0, against.values.params_dtype(model.map->model())};
  CheckpointModelFlags how = against.model;
  how.records_apart = true;
  // PATH is the one checkpoint, so that either option describes it.
  if (against.path_tp) how.source_tp = against.path_tp, how.tp_option = "--path-tp";
  if (against.path_etp) how.source_etp = against.path_etp, how.etp_option = "--path-etp";
  checkpoint.open(std::move(there), std::move(model), how, flags, values);
  warn_of_casts(checkpoint, report);
  const KeyTable& keys = checkpoint.keys();
  auto job = [&](const ChunkList& some) { return import_job(*source, keys, some); };
  auto made_of = [&](i32 key) {
    std::vector<i64> tensors;
    for (i32 t : keys.parameter(keys[key]).sources)
      if (t >= 0) tensors.push_back(t);
    return tensors;
  };
  auto name = [&](i32 key) { return cat("model.module.", keys[key].name); };
  return compare.run({checkpoint.store(), checkpoint.chunks(), *source, keys.size(), name, job, made_of},
                     report);
}

// A DCP folder has the names of Megatron or none that are known, which config.json leads to those of a model.
void refuse_single_file(const Store& model) {
  struct stat st;
  if (::stat(model.root().c_str(), &st) != 0 || S_ISDIR(st.st_mode)) return;
  throw Error(Code::kUnknownFormat, "a DCP folder cannot be compared with a single file")
      .file(model.root())
      .expected("another DCP folder, or the folder of a Hugging Face model with its config.json")
      .found(cat("a file, ", model.format()));
}

// The tensors that an export of the checkpoint writes, as mckpt listed them when it made the checkpoint of a
// model; nothing where it does not say so, or `assets` of the command line replace what it says.
std::optional<NameSet<std::string>> listed_tensors(const Store& checkpoint,
                                                   const std::optional<std::string>& assets) {
  std::string own = assets ? "" : own_assets(checkpoint);
  std::string text = own.empty() ? "" : tensor_table_text(Folder(own));
  if (text.empty()) return std::nullopt;
  TensorTable table = with_file(cat(own, "/", kTensorTableName), [&] { return parse_tensor_table(text); });
  if (!table.complete) return std::nullopt;
  NameSet<std::string> names;
  for (TensorTable::Entry& e : table.tensors) names.insert(std::move(e.name));
  return names;
}

// A Hugging Face folder against the checkpoint that it was exported from.
bool model_against_chunks(const Store& there, const std::string& path, std::unique_ptr<Store> source,
                          const AgainstFlags& against, Comparison& compare, const GlobalFlags& flags,
                          VerifyReport& report) {
  HfModelFlags reading = against.model.model;
  reading.kept_map = kept_map(*source);
  HfModel model = open_hf_model(path, reading);
  const SourceTable& tensors = model.map->sources();
  std::vector<bool> computed(static_cast<std::size_t>(tensors.size()));
  std::vector<i32> content(static_cast<std::size_t>(tensors.size()));  // whose items a tensor has
  std::iota(content.begin(), content.end(), 0);
  for (const UnreadTensor& u : model.map->unread())
    if (u.of < 0)
      computed[static_cast<std::size_t>(u.tensor)] = true;
    else
      content[static_cast<std::size_t>(u.tensor)] = u.of;
  std::optional<NameSet<std::string>> names = listed_tensors(*source, against.model.assets);
  std::vector<std::pair<i32, i32>> listed;  // by tensor of the model
  for (i32 t = 0; t < tensors.size(); t++) {
    // The table is that of the same folder, in its order.
    if (t >= there.tensor_count() || there.name(t) != tensors[t].name)
      throw Error(Code::kReadFailed, "the folder was changed since it was looked at")
          .file(there.root())
          .tensor(tensors[t].name);
    if (there.chunk_count(t) != 1)
      throw Error(Code::kUnsupportedTensor, "a tensor is stored in several pieces").tensor(tensors[t].name);
    if (computed[static_cast<std::size_t>(t)]) continue;
    if (names && !names->contains(std::string(tensors[t].name)))
      compare.leave_out({.code = Code::kUnequal,
                         .tensor = std::string(tensors[t].name),
                         .message = cat("is not in the model that the checkpoint was made of: ",
                                        kAssetsFolder, "/", kTensorTableName, " does not list it")},
                        true);
    else
      listed.emplace_back(t, t);
  }
  ListedChunks whole(there, listed);
  CheckpointModel checkpoint;
  CheckpointModelFlags how = against.model;
  how.records_apart = true;
  checkpoint.open(std::move(source), std::move(model), how, flags, {0, std::nullopt});
  const KeyTable& keys = checkpoint.keys();
  auto job = [&](const ChunkList& some) {
    return export_job(&checkpoint.store(), keys, checkpoint.chunks(), some);
  };
  // By tensor of the model, those of the checkpoint that have its items.
  std::vector<std::vector<i64>> stored(static_cast<std::size_t>(tensors.size()));
  for (i32 k = 0; k < keys.size(); k++)
    if (i32 at = checkpoint.tensor_of_key(keys[k].name); at >= 0)
      for (i32 t : keys.parameter(keys[k]).sources)
        if (t >= 0) stored[static_cast<std::size_t>(t)].push_back(at);
  auto made_of = [&](i32 tensor) {
    return stored[static_cast<std::size_t>(content[static_cast<std::size_t>(tensor)])];
  };
  auto name = [&](i32 tensor) { return std::string(tensors[tensor].name); };
  return compare.run({there, whole, checkpoint.store(), std::ssize(listed), name, job, made_of}, report);
}

// Tensors of a Hugging Face folder that no parameter is made of, and that nothing computes again: an exported
// folder has none of them. Empty where nobody knows the model.
std::set<std::string, std::less<>> dropped_tensors(const std::string& path, const HfModelFlags& flags) {
  std::set<std::string, std::less<>> out;
  try {
    HfModel model = open_hf_model(path, flags);
    for (const UnreadTensor& u : model.map->unread())
      if (u.of < 0) out.emplace(model.map->sources()[u.tensor].name);
  } catch (const Error&) {
    // What is wrong with the model is no matter of a comparison by name.
  }
  return out;
}

using Dropped = std::function<std::set<std::string, std::less<>>()>;

// Tells which tensors not both sides have alike; those of PATH cannot be compared. `dropped` is asked where
// the source has more.
std::set<i64> unlike(const Store& there, const Store& source, Comparison& compare, const Dropped& dropped) {
  std::set<i64> tensors;
  std::optional<std::set<std::string, std::less<>>> by_rule;
  for (const TensorDifference& d : tensor_differences(there, source)) {
    auto [mine, other] = d;
    if (mine < 0 && dropped && !by_rule) by_rule = dropped();
    if (mine < 0 && by_rule && by_rule->contains(source.name(other))) {
      compare.set_aside(std::string(source.name(other)));
      continue;
    }
    if (mine >= 0) tensors.insert(mine);
    compare.leave_out({.code = Code::kUnequal,
                       .tensor = std::string(mine < 0 ? source.name(other) : there.name(mine)),
                       .message = mine < 0    ? "is on the other side alone"
                                  : other < 0 ? "the other side has no such tensor"
                                              : cat("is ", type_and_shape(there, mine),
                                                    ", on the other side ", type_and_shape(source, other))},
                      mine >= 0);
  }
  return tensors;
}

// Two checkpoints whose tensors have the same names, whatever pieces they lie in.
bool names_against_names(const Store& there, const Store& source, const FusedTables* fused,
                         Comparison& compare, VerifyReport& report, const Dropped& dropped = {}) {
  NamedChunks chunks(there, source, unlike(there, source, compare, dropped));
  auto job = [&](const ChunkList& some) { return reshard_job(source, some, fused); };
  auto made_of = [](i32 tensor) { return std::vector<i64>{tensor}; };
  auto name = [&](i32 tensor) { return std::string(source.name(tensor)); };
  return compare.run({there, chunks, source, there.tensor_count(), name, job, made_of}, report);
}

constexpr const char* kOtherLayers =
    "args and settings name the layers, which have other names on the two sides";

// Whether the runs call the layers differently: one is a GPT model and one a hybrid, or in other groups.
bool differ_in_layers(const Store& there, const Store& source) {
  std::optional<LayerPattern> a = pattern_of_run(there), b = pattern_of_run(source);
  return a.has_value() != b.has_value() || (a && a->text != b->text);
}

// Whether both are hybrid models of the same kind, of which groups of layers have other names. A GPT model is
// compared under the names of its table.
bool differ_in_groups(const Store& there, const Store& source) {
  std::optional<DcpDialect> dialect = dcp_dialect(there);
  bool has_groups = dialect == DcpDialect::kTorchDist || dialect == DcpDialect::kFsdpDtensor;
  if (!has_groups || dcp_dialect(source) != dialect) return false;
  std::optional<LayerPattern> a = pattern_of_run(there), b = pattern_of_run(source);
  if (!a || !b || (!a->has_groups() && !b->has_groups())) return false;
  return std::ranges::any_of(tensor_differences(there, source),
                             [](const TensorDifference& d) { return d.one < 0 || d.other < 0; });
}

// PATH of a comparison of two checkpoints, whose ranks have options of their own: --source-tp describes SRC.
void open_path(CheckpointModel& to, std::unique_ptr<Store> there, CheckpointModelFlags how,
               const AgainstFlags& against, const GlobalFlags& flags) {
  how.source_tp = against.path_tp, how.tp_option = "--path-tp";
  how.source_etp = against.path_etp, how.etp_option = "--path-etp";
  try {
    to.open(std::move(there), how, flags);
  } catch (Error& e) {
    if (e.code() == Code::kUnknownPartition)
      e.help("give it with --path-tp N, for experts with --path-etp N");
    throw;
  }
}

// Two checkpoints of one model, under the names of fsdp_dtensor where they are of two formats. Tensors that
// are stored fused, rank after rank, are compared item by item where other numbers of ranks wrote them.
bool chunks_against_chunks(std::unique_ptr<Store> there, std::unique_ptr<Store> source,
                           const AgainstFlags& against, Comparison& compare, int threads,
                           const GlobalFlags& flags, VerifyReport& report) {
  if (differ_in_groups(*there, *source)) {
    DcpDialect dialect = *dcp_dialect(*there);
    for (std::unique_ptr<Store>* side : {&there, &source})
      if (has_grouped_layers(**side)) *side = with_flat_layers(std::move(*side), dialect);
    objects_not_compared(kOtherLayers, report);
    note(flags, "layers  are compared under the names that they have without groups");
    return names_against_names(*there, *source, nullptr, compare, report);
  }
  std::string assets = against.model.assets.value_or(own_assets(*there));
  if (assets.empty()) assets = own_assets(*source);
  if (assets.empty() && dcp_dialect(*there) == dcp_dialect(*source)) {
    bool same = compare_objects(*there, *source, threads, report);
    return names_against_names(*there, *source, nullptr, compare, report) && same;
  }
  bool other_layers = differ_in_layers(*there, *source);
  CheckpointModelFlags how = against.model;
  how.parts = NamesOf::kAll, how.renamed = how.records_apart = true;
  how.any_model = assets.empty();
  if (!assets.empty()) how.assets = assets;
  CheckpointModel to, from;
  from.open(std::move(source), how, flags);
  open_path(to, std::move(there), how, against, flags);
  FusedTables fused{from.keys(), to.keys(), {}};
  for (i64 t = 0; t < from.store().tensor_count(); t++) {
    std::optional<std::string> key = model_key(from.store().name(t));
    if (std::optional<StateName> state = state_name(from.store().name(t))) key = state->key;
    i32 mine = key ? from.keys().find(*key) : -1, theirs = key ? to.keys().find(*key) : -1;
    bool by_cell = mine >= 0 && mine == theirs && (from.keys()[mine].by_cell || to.keys()[mine].by_cell);
    fused.key_of.push_back(by_cell ? mine : -1);
  }
  bool same = true;
  if (other_layers)
    objects_not_compared(kOtherLayers, report);
  else
    same = compare_objects(to.store(), from.store(), threads, report);
  return names_against_names(to.store(), from.store(), &fused, compare, report) && same;
}

// Two models that are no checkpoints of runs: files of one format may have objects beside their tensors.
bool objects_of_files(const Store& there, const Store& source, int threads, VerifyReport& report) {
  if (there.objects().empty() && source.objects().empty()) return true;
  if (there.format() == source.format()) return compare_objects(there, source, threads, report);
  objects_not_compared(cat(there.format(), " and ", source.format(), " have not the same place for them"),
                       report);
  return true;
}

// Everything but the assets.
bool compare_stores(std::unique_ptr<Store> there, std::unique_ptr<Store> source, const std::string& path,
                    const AgainstFlags& against, Comparison& compare, int threads, const GlobalFlags& flags,
                    VerifyReport& report) {
  if (is_sharded(*there) && is_sharded(*source))
    return chunks_against_chunks(std::move(there), std::move(source), against, compare, threads, flags,
                                 report);
  if (is_sharded(*there) == is_sharded(*source)) {
    bool same = objects_of_files(*there, *source, threads, report);
    // Files alone are converted tensor by tensor, and lose none.
    Dropped dropped;
    if (there->format() == source->format() && !there->files().empty() && !there->files()[0].path.empty())
      dropped = [&] { return dropped_tensors(*against.source, against.model.model); };
    return names_against_names(*there, *source, nullptr, compare, report, dropped) && same;
  }
  refuse_single_file(is_sharded(*there) ? *source : *there);
  objects_not_compared("a Hugging Face model has none; args are made of its config", report);
  if (is_sharded(*there)) return chunks_against_model(std::move(there), against, compare, flags, report);
  return model_against_chunks(*there, path, std::move(source), against, compare, flags, report);
}

}  // namespace

void AgainstFlags::declare(CommandLine& line) {
  line.heading("Comparison");
  line.option(
      "--against SRC", source,
      "what PATH was made from: PATH must hold, bit for bit, what converting SRC would write; objects "
      "are compared by value, and those that are not compared are named");
  line.only_with("--against");
  model.declare(line);
  line.option(
      "--path-tp N", path_tp,
      "tensor-parallel ranks that wrote PATH, if SRC is a checkpoint too (--source-tp describes SRC)");
  line.option("--path-etp N", path_etp,
              "expert-tensor-parallel ranks that wrote PATH, if SRC is a checkpoint too");
  values.declare_params(line);
}

bool verify_against(std::unique_ptr<Store> there, const std::string& path, const AgainstFlags& against,
                    int threads, const GlobalFlags& flags, VerifyReport& report) {
  std::unique_ptr<Store> source = open_store(*against.source);
  std::vector<Finding> findings = source->findings();
  if (is_sharded(*source)) std::erase_if(findings, is_of_records);
  require_sound(findings, source->root());
  Comparison compare(*there, *source, threads, flags);
  bool listed = check_listed(*there, *source, report);
  bool same_assets = compare_assets(*there, *source, against.model.assets, report);
  name_beside(path, *there, report);
  bool same =
      compare_stores(std::move(there), std::move(source), path, against, compare, threads, flags, report);
  return same && same_assets && listed;
}

}  // namespace mckpt
