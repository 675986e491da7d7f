// Compares a checkpoint with what an import of the model would write into it. Values are cast as the import
// casts them, so a checkpoint in bf16 can be equal to a model in fp32; a warning names such tensors.
#include <algorithm>
#include <iterator>
#include <set>

#include "convert/compare/against.h"
#include "convert/compare/checks/casts.h"
#include "convert/compare/checks/types.h"
#include "convert/compare/compare.h"
#include "convert/compare/differences/comparison.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/key_table.h"
#include "convert/keys/stored_chunks.h"
#include "convert/open/checkpoint.h"
#include "convert/open/open.h"
#include "convert/open/options.h"
#include "convert/open/own_model.h"
#include "convert/open/source_model.h"
#include "core/items/dtype.h"
#include "hf/model.h"
#include "hf/model_options.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/store/finding.h"
#include "io/store/store.h"
#include "io/verify/verify.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/source_table.h"

namespace mckpt::impl {
namespace {

// Opens the model with the map file that the tested checkpoint keeps. The config of a training run's
// checkpoint may be in no place but the assets that the tested checkpoint was given.
Opened source_of(const Store& tested, const std::string& path, const Store& source, const Comparing& c) {
  OpenAs how{.source = path, .threads = c.options.threads, .compare_copies = false};
  how.how.accept = c.options.opening.accept, how.how.model = c.options.opening.model;
  how.how.model.kept_map = kept_map(tested);
  how.how.model.bad_numbers = BadNumbers::kShow;
  if (!is_own_source(source)) return open_table(how);
  how.how.assets = c.options.opening.assets;
  how.model_dict = c.options.model_dict;
  if (std::string own = own_assets(tested); !how.how.assets && !own.empty()) how.how.assets = own;
  return open_table(how);
}

// There is one checkpoint, the tested side: the options for the ranks of either side describe it.
CheckpointOptions opening_of(const CompareOptions& options) {
  CheckpointOptions how = options.opening;
  how.records_apart = true;
  if (options.path_tp) how.source_tp = options.path_tp, how.tp_setting = "path_tp";
  if (options.path_etp) how.source_etp = options.path_etp, how.etp_setting = "path_etp";
  return how;
}

// Types of the source's tensors that are in `chosen`, and those that they are stored in.
std::vector<ComparedTypes> types_of(const CheckpointModel& checkpoint, const std::set<i64>& chosen) {
  const SourceTable& tensors = checkpoint.map().sources();
  std::vector<std::optional<DType>> stored = checkpoint.stored_types();
  std::vector<ComparedTypes> types;
  for (i32 t = 0; t < tensors.size(); t++)
    if (stored[t] && tensors[t].header_known && chosen.contains(t))
      types.push_back({std::string(tensors[t].name), tensors[t].dtype, *stored[t]});
  return types;
}

// Whether the keys are stored in the types that the import was asked for.
bool check_types(const CheckpointModel& checkpoint, const Comparing& c) {
  const KeyTable& keys = checkpoint.keys();
  bool state_dict = dcp_dialect(checkpoint.on_disk()) == DcpDialect::kStateDict;
  TypeCheck check(c.options.types);
  for (i32 k = 0; k < keys.size(); k++) {
    i32 at = checkpoint.tensor_of_key(keys[k].name);
    if (at < 0) continue;
    const ModelParameter& p = keys.parameter(keys[k]);
    std::string_view name = checkpoint.store().name(at);
    check.add(name, check.claim().of(p, name, p.dtype, state_dict), checkpoint.store().dtype(at));
  }
  return check.add_to(c.report);
}

}  // namespace

bool is_own_source(const Store& source) { return !source.driver().hf_weights && has_own_names(source); }

bool against_model(std::unique_ptr<Store> tested, const std::string& path, const Store& opened,
                   const Comparing& c) {
  Opened from = source_of(*tested, path, opened, c);
  for (Oddities& o : from.damage) c.oddities.push_back(std::move(o));
  HfModel model = std::move(*from.table);
  const Store& source = *model.store;  // stays where it is when the model is moved
  RunSetup values{0, c.options.params_dtype.of(model.map->model())};
  CheckpointModel checkpoint(std::move(tested), std::move(model), opening_of(c.options), values);
  c.note_oddities(checkpoint);
  bool types = check_types(checkpoint, c);
  c.report.compared_as =
      "each tensor of the checkpoint with the one that converting the Hugging Face model would write";
  const KeyTable& keys = checkpoint.keys();
  auto job = [&](const ChunkList& some) { return import_job(source, keys, some); };
  auto made_of = [&](i32 key) {
    std::vector<i64> tensors;
    for (i32 t : keys.parameter(keys[key]).sources)
      if (t >= 0) tensors.push_back(t);
    return tensors;
  };
  auto name = [&](i32 key) { return cat(kModelFront, keys[key].name); };
  std::set<i64> chosen;  // tensors of the source
  for (i32 k = 0; k < keys.size(); k++)
    if (c.comparison.chooses(name(k))) std::ranges::copy(made_of(k), std::inserter(chosen, chosen.end()));
  if (!c.options.counting.all) warn_of_casts(types_of(checkpoint, chosen), c.report);
  return c.comparison.run({checkpoint.store(), checkpoint.chunks(), source, keys.size(), name, job, made_of},
                          c.report) &&
         types;
}

}  // namespace mckpt::impl
