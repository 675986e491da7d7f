#include "convert/compare/checks/own_config.h"

#include <algorithm>

#include "convert/compare/checks/model.h"
#include "convert/compare/checks/model_class.h"
#include "convert/open/checkpoint.h"
#include "convert/open/lost_shards.h"
#include "convert/open/open.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/folder/known_tensors.h"
#include "hf/folder/model_folder.h"
#include "hf/folder/name_words.h"
#include "hf/folder/tied_names.h"
#include "io/store/names/hf_weights.h"
#include "io/store/names/torch_names.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/values/same_bytes.h"

namespace mckpt::impl {
namespace {

// Errors that say that the tensors and the config are not of one model.
bool is_of_config(Code code) {
  constexpr Code kOfConfig[] = {Code::kBadJson, Code::kBadConfig, Code::kUnaccounted, Code::kContradiction,
                                Code::kSourceShape};
  return std::ranges::find(kOfConfig, code) != std::end(kOfConfig);
}

// Shards say how large tensors are only by the pieces that are there, so the config has to say it. Without a
// config, shards may be missing and no check sees it, so the report has a warning.
void check_shards(const Store& store, int threads, VerifyReport& report) {
  const ModelFolder folder = find_model_folder(store, store.root(), std::nullopt);
  if (!folder.path.empty()) return check_by_assets(store, folder.path, "", {}, threads, report);
  report.add({"model", Check::Status::kWarn, store.tensor_count(), "tensors"},
             {{.code = Code::kShardMissing,
               .message = unknown_shards("no config.json is beside them"),
               .warning = true}});
}

// A warning of an output layer with values of its own beside the one embedding that config.json ties it to.
std::vector<Finding> unlike_head(const Store& store, const ModelFolder& folder, int threads) {
  if (!folder.tied.value_or(false)) return {};
  std::vector<i64> heads, embeddings;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    if (is_of_states(store.name(t))) continue;
    if (is_head(store.name(t))) heads.push_back(t);
    if (is_embedding(store.name(t))) embeddings.push_back(t);
  }
  if (heads.size() != 1 || embeddings.size() != 1) return {};
  const i64 head = heads[0], embedding = embeddings[0];
  if (tie_of_names(store.name(head), store.name(embedding)) != Tie::kHead ||
      store.dtype(head) != store.dtype(embedding) ||
      !std::ranges::equal(store.dims(head), store.dims(embedding)))
    return {};
  const std::pair<i64, i64> pair(head, embedding);
  if (have_same_bytes(store, std::span(&pair, 1), threads)[0]) return {};
  return {unlike_tie_finding(unlike_tie(store.name(head), store.name(embedding)),
                             folder.around ? folder.path : "")};
}

// Whether the tensors are the model of the folder with the config: a DCP folder, files of ranks, all shards
// of a folder, or the file that transformers loads. Another torch file beside a config may be anything. A
// folder of safetensors files has been read as the model of its config.
bool is_of_folder(const Store& store) {
  if (format_family(store.format()) == FormatFamily::kDcp) return true;
  if (format_family(store.format()) != FormatFamily::kTorch) return false;
  return store.ranks() > 1 || std::ranges::all_of(store.files(), [&](const StoreFile& file) {
           const std::string& path = file.path.empty() ? store.root() : file.path;
           const std::string name = path.substr(path.rfind('/') + 1);
           return (!file.path.empty() && shard_count(name) > 0) ||
                  std::ranges::find(kHfWeights, name) != std::end(kHfWeights);
         });
}

// Beside other torch files, nothing says that these are the model.
bool is_beside_others(const Store& store) {
  const auto is_loaded = [](const StoreFile& file) {
    return std::ranges::find(kHfWeights, file.path) != std::end(kHfWeights);
  };
  return store.files().size() > 1 && std::ranges::any_of(store.files(), is_loaded);
}

bool has_weights(const Store& store) {
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (!is_of_states(store.name(t)) && !is_beside_model(store.name(t))) return true;
  return false;
}

void add_not_compared(std::string_view why, std::vector<Finding> odd, VerifyReport& report) {
  Check check = not_compared(why);
  if (!odd.empty()) check.status = status_of(odd);
  report.add(std::move(check), std::move(odd));
}

// Throws what tensors of another model throw; says what could not be compared. `odd`: as in
// check_own_names().
void check_saved(const Store& store, int threads, const std::vector<Finding>& odd, VerifyReport& report) {
  try {
    check_own_names(store, threads, odd, report);
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted || is_of_config(e.code())) throw;
    add_not_compared(e.message(), odd, report);
  }
}

}  // namespace

void check_own_config(const Store& store, std::span<const Code> accept, int threads, VerifyReport& report) {
  const bool failed =
      std::ranges::any_of(report.checks, [](const Check& c) { return c.status == Check::Status::kFail; });
  if (store.driver().ranks_apart || failed || !is_sound(store)) return;
  const bool own_names = has_own_names(store);
  try {
    if (own_names) {
      if (store.driver().open_ended) return check_shards(store, threads, report);
      const ModelFolder folder = find_model_folder(store, store.root(), std::nullopt);
      std::vector<Finding> odd = unlike_head(store, folder, threads);
      if (!folder.path.empty() && is_of_folder(store) && has_weights(store))
        check_saved(store, threads, odd, report);
      else if (!folder.path.empty() && is_beside_others(store))
        add_not_compared("other torch files are beside pytorch_model.bin", std::move(odd), report);
      else if (!odd.empty())
        report.add({"model", Check::Status::kWarn, store.tensor_count(), "tensors"}, std::move(odd));
      return;
    }
    if (own_assets(store).empty()) return;
    OpenAs how{.source = store.root()};
    how.how.model.files = store.opening();
    how.how.accept.assign(accept.begin(), accept.end());
    const Opened opened = open_sharded(open_store(store.root(), store.opening()), how);
    std::vector<Finding> unlike = facts_unlike_config(*opened.sharded);
    if (!unlike.empty())
      report.add({"model", Check::Status::kWarn, store.tensor_count(), "tensors"}, std::move(unlike));
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    if (!is_of_config(e.code())) return;
    report.add({"model", Check::Status::kFail, store.tensor_count(), "tensors"}, {finding_of(e)});
  }
}

}  // namespace mckpt::impl
