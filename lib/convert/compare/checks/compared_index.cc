// The lists of names and files are parsed and not kept.
#include "convert/compare/checks/compared_index.h"

#include <algorithm>

#include "convert/compare/checks/asset_folder.h"
#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/store/finding.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kTotal = ".metadata.total_size";

JsonValue without_list(const std::string& name, const IndexSide& side) {
  return parse_json_list(asset_text(side.folder, name), "weight_map", [](const JsonListed&) {});
}

// Whether total_size is the sum of the tensors: opening the store checks its own index.
bool has_true_total(const std::string& name, const Store& store) {
  const bool own = std::ranges::any_of(
      store.facts(), [&](const auto& fact) { return fact.first == "index" && fact.second == name; });
  return own &&
         std::ranges::find(store.findings(), Code::kBadTotalSize, &Finding::code) == store.findings().end();
}

}  // namespace

std::optional<JsonDifferences> differences_of_indexes(const std::string& name, const IndexSide& a,
                                                      const IndexSide& b, i64 most) {
  JsonDifferences out;
  try {
    out = json_differences(without_list(name, a), without_list(name, b), most);
  } catch (const Error& e) {
    if (e.code() == Code::kReadFailed) throw;
    return std::nullopt;
  }
  if (has_true_total(name, a.store) && has_true_total(name, b.store))
    out.count -=
        static_cast<i64>(std::erase_if(out.first, [](const JsonDifference& d) { return d.at == kTotal; }));
  return out;
}

}  // namespace mckpt::impl
