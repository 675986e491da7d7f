// Compares by names first, then types and shapes, then bytes: most left-over models differ in the first
// tensor that is read.
#include "io/safetensors/two_models.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "io/file/file_names.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"
#include "io/store/finding.h"
#include "io/store/open/adapter_base.h"
#include "io/store/store.h"
#include "io/values/same_bytes.h"

namespace mckpt::impl {
namespace {

// A tensor of both models: its numbers in the two stores.
using Pairs = std::vector<std::pair<i64, i64>>;

std::string quoted(std::string_view name) { return cat("'", escaped(name, 200), "'"); }

// The first difference of the headers; else fills in the pairs, in the order of the shards.
std::string unlike_headers(const Store& shards, const Store& single, const std::string& file, Pairs& pairs) {
  NameMap<std::string_view, i64> rows;
  for (i64 row = 0; row < single.tensor_count(); row++) rows.emplace(single.name(row), row);
  for (i64 t = 0; t < shards.tensor_count(); t++) {
    auto at = rows.find(shards.name(t));
    if (at == rows.end()) return cat(quoted(shards.name(t)), " is in the shards alone");
    const i64 row = at->second;
    if (shards.dtype(t) != single.dtype(row) || !std::ranges::equal(shards.dims(t), single.dims(row)))
      return cat(quoted(shards.name(t)), " has another type or shape in ", file);
    pairs.emplace_back(t, row);
    rows.erase(at);
  }
  for (i64 row = 0; row < single.tensor_count(); row++)
    if (rows.contains(single.name(row))) return cat(quoted(single.name(row)), " is in ", file, " alone");
  return "";
}

// The first difference between the two, in words; "" if all tensors are equal. A file that cannot be read
// differs.
std::string first_difference(const Store& shards, const std::string& file,
                             const std::function<std::unique_ptr<Store>()>& open_single, bool reads_data) {
  try {
    const std::unique_ptr<Store> single = open_single();
    Pairs pairs;
    std::string unlike = unlike_headers(shards, *single, file, pairs);
    if (!unlike.empty() || !reads_data) return unlike;
    const i64 first = first_unlike(shards, *single, pairs, default_threads());
    return first < 0 ? "" : cat(quoted(shards.name(pairs[first].first)), " has other values in ", file);
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return cat(file, " cannot be read: ", e.message());
  }
}

}  // namespace

Finding judge_two_models(const Store& shards, const TwoModelNames& names,
                         const std::function<std::unique_ptr<Store>()>& open_single) {
  const OpenOptions& opening = shards.opening();
  const std::string& file = names.single;
  Finding finding{.code = Code::kTwoModels, .file = file, .warning = true};
  if (opening.model_files == ModelFiles::kShards) {
    finding.message = kNotChosen;
    return finding;
  }
  const std::string two = cat("the folder holds two models, ", file, " and ", names.shards);
  const std::string loads = cat("transformers loads ", file, "; ", names.others);
  const bool reads = opening.two_models != TwoModels::kFindingUnread;
  const std::string unlike = first_difference(shards, file, open_single, reads);
  if (unlike.empty()) {
    finding.message = reads ? cat(two, ", with equal tensors: the shards are read")
                            : cat(two, "; their headers are alike, their data were not compared");
    return finding;
  }
  const char* help = "remove the one that is not meant, or choose one by `model_files`: single or shards";
  if (opening.two_models == TwoModels::kRefused)
    throw Error(Code::kTwoModels, cat(two, ", which are not equal: ", unlike))
        .file(shards.root())
        .note(loads)
        .help(help);
  finding.message = cat(two, ", which are not equal: ", unlike, "; ", loads);
  finding.help = help, finding.warning = false;
  return finding;
}

bool is_beside_torch(const NameSet<std::string>& names) {
  if (!first_weights(names).starts_with("pytorch_model")) return false;
  const bool adapter = names.contains(std::string(kAdapterConfig));
  return std::ranges::any_of(names, [&](const std::string& name) {
    return name.ends_with(".safetensors.index.json") ||
           (name.ends_with(".safetensors") && !(adapter && name == "adapter_model.safetensors"));
  });
}

void refuse_beside_torch(const Folder& folder, std::vector<std::string> files,
                         const std::vector<std::string>& indexes) {
  const std::string loaded = loaded_by_transformers(folder);
  if (!loaded.starts_with("pytorch_model")) return;
  if (!is_beside_torch(file_names(folder))) return;
  if (folder.has_file(kAdapterConfig)) std::erase(files, "adapter_model.safetensors");
  files.insert(files.end(), indexes.begin(), indexes.end());
  if (files.empty()) return;
  throw Error(Code::kTwoModels, cat("the folder holds two models, ", loaded, " and ", listed(files)))
      .note(cat("transformers loads ", loaded, "; vLLM and SGLang load the safetensors files"))
      .help("move the files of the model that is not meant into another folder");
}

}  // namespace mckpt::impl
