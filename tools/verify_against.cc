#include "tools/verify_against.h"

#include "convert/export_job.h"
#include "convert/import_job.h"
#include "convert/item_differences.h"
#include "convert/reshard_job.h"
#include "convert/tensor_differences.h"
#include "io/copy_engine.h"
#include "io/findings.h"
#include "tools/findings.h"
#include "tools/interrupt.h"
#include "tools/progress.h"

namespace mckpt {
namespace {

bool is_sharded(const Store& store) { return store.format().starts_with("DCP"); }

void add_check(Check check, std::vector<Finding> findings, VerifyReport& report) {
  report.checks.push_back(std::move(check));
  for (Finding& f : findings) {
    report.findings.push_back(std::move(f));
    report.check_of.push_back(report.checks.size() - 1);
  }
}

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
  if (count > 0) add_check({"casts", Check::Status::kWarn, count, "tensors"}, std::move(found), report);
}

class Comparison {
 public:
  Comparison(const Store& there, int threads, const GlobalFlags& flags)
      : there_(there), threads_(threads), flags_(flags) {}

  // `extents`: where the job's tensors lie, asked for only when something differs.
  bool run(const CopyJob& job, i64 bytes, i64 tensors, const std::function<std::vector<Extent>()>& extents,
           VerifyReport& report) {
    CompareSink sink(there_);
    {
      Progress progress(flags_, "compare", bytes);
      run_copy(job, sink, {.threads = threads_, .stop = stop_flag(), .written_bytes = progress.counter()});
    }
    std::vector<CompareSink::Difference> differences = sink.differences();
    bool equal = differences.empty();
    add_check({"against", equal ? Check::Status::kPass : Check::Status::kFail, tensors, "tensors"},
              equal ? std::vector<Finding>() : described(differences, extents()), report);
    return equal;
  }

 private:
  std::vector<Finding> described(const std::vector<CompareSink::Difference>& differences,
                                 std::vector<Extent> extents) const {
    Findings findings;
    for (const ItemDifference& d : item_differences(differences, std::move(extents)))
      findings.add({.code = Code::kUnequal,
                    .tensor = d.tensor,
                    .file = std::string(file_label(there_, d.file)),
                    .message = cat("differs from item ", d.item, " of what this file holds of it on"),
                    .offset = d.offset});
    return findings.take();
  }

  const Store& there_;
  int threads_;
  const GlobalFlags& flags_;
};

i64 bytes_of(const CopyJob& job) {
  i64 bytes = 0;
  for (i64 t = 0; t < job.task_count(); t++) bytes += job.task_bytes(t);
  return bytes;
}

// A checkpoint against the Hugging Face model that it was made of.
bool chunks_against_model(std::unique_ptr<Store> there, const AgainstFlags& against, Comparison& compare,
                          const GlobalFlags& flags, VerifyReport& report) {
  HfModel model = open_hf_model(*against.source, against.model.model);
  if (!model.has_data())
    throw Error(Code::kNotFound, "the folder has no weights to compare with").file(*against.source);
  const Store* source = model.store.get();  // stays where it is
  CheckpointModel checkpoint;
  RunSetup values{0, against.values.params_dtype(model.map->model())};
  checkpoint.open(std::move(there), std::move(model), against.model, flags, values);
  ImportJob job(*source, checkpoint.keys(), checkpoint.chunks(), nullptr);
  warn_of_casts(checkpoint, report);
  const KeyTable& keys = checkpoint.keys();
  auto extents = [&] {
    return extents_of(checkpoint.chunks(), [&](i32 key) { return cat("model.module.", keys[key].name); });
  };
  return compare.run(job, bytes_of(job), keys.size(), extents, report);
}

// A Hugging Face folder against the checkpoint that it was exported from.
bool model_against_chunks(const Store& there, const std::string& path, const AgainstFlags& against,
                          Comparison& compare, const GlobalFlags& flags, VerifyReport& report) {
  HfModel model = open_hf_model(path, against.model.model);
  std::vector<Extent> extents;
  TensorPlaces places;
  const SourceTable& tensors = model.map->sources();
  places.tensors.resize(static_cast<std::size_t>(tensors.size()));
  for (i32 t = 0; t < tensors.size(); t++) {
    i64 index = find_tensor(there, tensors[t].name);
    if (there.chunk_count(index) != 1)
      throw Error(Code::kUnsupportedTensor, "a tensor lies in several pieces").tensor(tensors[t].name);
    ChunkData data = there.resolve(index, 0);
    places.tensors[static_cast<std::size_t>(t)] = {data.file, data.offset, data.dtype, there.shape(index)};
    extents.push_back({data.file, data.offset,
                       data.offset + dtype_bytes(data.dtype, there.shape(index).items()),
                       std::string(tensors[t].name), dtype_bytes(data.dtype, 1)});
  }
  for (const UnreadTensor& u : model.map->unread())
    if (u.of < 0) places.tensors[static_cast<std::size_t>(u.tensor)].file = -1;
  CheckpointModel checkpoint;
  checkpoint.open(open_store(*against.source), std::move(model), against.model, flags, {0, std::nullopt});
  ExportJob job(checkpoint.store(), checkpoint.keys(), checkpoint.chunks(), places);
  return compare.run(
      job, bytes_of(job), job.task_count(), [&] { return extents; }, report);
}

// Whether both sides have the same tensors; findings about those that not both have alike.
bool has_same_tensors(const Store& there, const Store& source, VerifyReport& report) {
  std::vector<Finding> found;
  for (const TensorDifference& d : tensor_differences(there, source)) {
    auto [mine, other] = d;
    found.push_back({.code = Code::kUnequal,
                     .tensor = std::string(mine < 0 ? source.name(other) : there.name(mine)),
                     .message = mine < 0    ? "is on the other side alone"
                                : other < 0 ? "the other side has no such tensor"
                                            : cat("is ", type_and_shape(there, mine), ", on the other side ",
                                                  type_and_shape(source, other))});
  }
  if (found.empty()) return true;
  add_check({"against", Check::Status::kFail, there.tensor_count(), "tensors"}, std::move(found), report);
  return false;
}

// Two checkpoints whose tensors have the same names, whatever pieces they lie in.
bool names_against_names(const Store& there, const Store& source, const ReshardJob::Fused* fused,
                         Comparison& compare, VerifyReport& report) {
  if (!has_same_tensors(there, source, report)) return false;
  NamedChunks chunks(there, source);
  ReshardJob job(source, chunks, nullptr, fused);
  auto extents = [&] { return extents_of(chunks, [&](i32 t) { return std::string(source.name(t)); }); };
  return compare.run(job, bytes_of(job), there.tensor_count(), extents, report);
}

// Two checkpoints of one model, under the names of fsdp_dtensor where they are of two formats. Tensors that
// are stored fused, rank after rank, are compared item by item where other numbers of ranks wrote them.
bool chunks_against_chunks(std::unique_ptr<Store> there, std::unique_ptr<Store> source,
                           const AgainstFlags& against, Comparison& compare, const GlobalFlags& flags,
                           VerifyReport& report) {
  std::string assets = against.model.assets.value_or(own_assets(*there));
  if (assets.empty()) assets = own_assets(*source);
  if (assets.empty() && dcp_dialect(*there) == dcp_dialect(*source))
    return names_against_names(*there, *source, nullptr, compare, report);
  CheckpointModelFlags how = against.model;
  how.parts = NamesOf::kAll, how.renamed = true;
  how.any_model = assets.empty();
  if (!assets.empty()) how.assets = assets;
  CheckpointModel to, from;
  to.open(std::move(there), how, flags);
  from.open(std::move(source), how, flags);
  ReshardJob::Fused fused{from.keys(), to.keys(), {}};
  for (i64 t = 0; t < from.store().tensor_count(); t++) {
    std::optional<std::string> key = model_key(from.store().name(t));
    if (std::optional<StateName> state = state_name(from.store().name(t))) key = state->key;
    i32 mine = key ? from.keys().find(*key) : -1, theirs = key ? to.keys().find(*key) : -1;
    bool by_cell = mine >= 0 && mine == theirs && (from.keys()[mine].by_cell || to.keys()[mine].by_cell);
    fused.key_of.push_back(by_cell ? mine : -1);
  }
  return names_against_names(to.store(), from.store(), &fused, compare, report);
}

}  // namespace

void AgainstFlags::declare(CommandLine& line) {
  line.heading("Comparison");
  line.option("--against SRC", source,
              "what PATH was made of: PATH must hold, bit for bit, what converting SRC would write");
  line.only_with("--against");
  model.declare(line);
  values.declare_params(line);
}

bool verify_against(const std::string& path, const AgainstFlags& against, int threads,
                    const GlobalFlags& flags, VerifyReport& report) {
  std::unique_ptr<Store> there = open_store(path), source = open_store(*against.source);
  require_sound(source->findings(), source->root());
  Comparison compare(*there, threads, flags);
  if (is_sharded(*there) && is_sharded(*source))
    return chunks_against_chunks(std::move(there), std::move(source), against, compare, flags, report);
  if (is_sharded(*there) == is_sharded(*source))
    return names_against_names(*there, *source, nullptr, compare, report);
  if (is_sharded(*there)) return chunks_against_model(std::move(there), against, compare, flags, report);
  return model_against_chunks(*there, path, against, compare, flags, report);
}

}  // namespace mckpt
