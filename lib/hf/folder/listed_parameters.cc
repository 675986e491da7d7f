// Tied weights are found by their bytes: only matrices are compared, because vectors of one value, such as
// fresh norms, are equal by chance.
#include "hf/folder/listed_parameters.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "io/dcp/keys/key.h"
#include "io/store/store.h"
#include "io/values/same_bytes.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// The tensors of the model section by their names in the model.
NameMap<std::string, i64> model_tensors(const Store& store) {
  NameMap<std::string, i64> out;
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (std::optional<std::string> name = model_key(store.name(t))) out.emplace(std::move(*name), t);
  return out;
}

// Throws kUnknownAssets for a tensor that is one of the parts of a fused parameter: only a table says what
// belongs together.
void refuse_parts(const Store& store) {
  for (i64 t = 0; t < store.tensor_count(); t++) {
    std::optional<std::string> key = model_key(store.name(t));
    char half = 0;
    if (key) unsplit(*key, half);
    if (half == 0) continue;
    throw Error(Code::kUnknownAssets, "only the model's table says how fused parameters are made whole")
        .file(store.root())
        .tensor(store.name(t))
        .expected("whole parameters, as Megatron-FSDP v2 stores them")
        .help("`assets` HF_DIR instead of `any_model`");
  }
}

}  // namespace

ListedParameters::ListedParameters(const Store& store, const NameSet<std::string>& trained, int threads) {
  refuse_parts(store);
  NameMap<std::string, i64> tensors = model_tensors(store);
  std::set<DType> types;
  for (const std::string& name : trained)
    if (auto at = tensors.find(name); at != tensors.end()) types.insert(store.dtype(at->second));
  if (types.empty()) return;

  std::vector<std::pair<i64, i64>> pairs;
  for (const auto& [name, t] : tensors) {
    if (trained.contains(name)) continue;
    (types.contains(store.dtype(t)) ? frozen_ : buffers_).insert(name);
    if (store.dims(t).size() < 2) continue;
    for (const std::string& other : trained)
      if (auto at = tensors.find(other);
          at != tensors.end() && std::ranges::equal(store.dims(at->second), store.dims(t)))
        pairs.emplace_back(t, at->second);
  }
  std::vector<bool> same = have_same_bytes(store, pairs, threads);
  for (std::size_t i = 0; i < pairs.size(); i++) {
    if (!same[i]) continue;
    std::string name = *model_key(store.name(pairs[i].first));
    frozen_.erase(name);
    first_name_.try_emplace(std::move(name), *model_key(store.name(pairs[i].second)));
  }
}

void ListedParameters::apply(std::vector<ModelParameter>& parameters) const {
  NameMap<std::string, i32> index;
  for (i32 p = 0; p < static_cast<i32>(parameters.size()); p++) index.emplace(parameters[p].global_name, p);
  for (ModelParameter& p : parameters) {
    if (frozen_.contains(p.global_name)) p.trainable = false;
    if (buffers_.contains(p.global_name)) p.whole_buffer = true;
    auto first = first_name_.find(p.global_name);
    if (first == first_name_.end()) continue;
    if (auto at = index.find(first->second); at != index.end()) p.tied_to = at->second;
  }
}

}  // namespace mckpt::impl
