// From planner_data of a DCP folder, from the containers in the pickles of torch files, and from the lists of
// ZeRO.
#include "convert/own/saved_dicts.h"

#include "core/base/error.h"
#include "io/dcp/write/layout.h"
#include "io/store/store.h"
#include "io/torch/store.h"
#include "io/zero/store.h"

namespace mckpt::impl {
namespace {

std::vector<std::string_view> of_planner_data(const Store& store) {
  std::optional<DcpPaths> paths = saved_paths(store);
  if (!paths) return {};
  std::vector<std::string_view> out;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    auto at = paths->find(std::string(store.name(t)));
    if (at == paths->end()) return {};
    const std::vector<i32>& dots = at->second.dots;
    out.push_back(store.name(t).substr(0, dots.empty() ? 0 : static_cast<std::size_t>(dots.back()) + 1));
  }
  return out;
}

}  // namespace

std::optional<DcpPaths> saved_paths(const Store& store) {
  try {
    return dcp_paths(store);
  } catch (const Error& e) {
    if (e.code() != Code::kBadMetadata && e.code() != Code::kNotHeld) throw;
    return std::nullopt;
  }
}

std::vector<std::string_view> saved_dicts(const Store& store) {
  if (format_family(store.format()) == FormatFamily::kDcp) return of_planner_data(store);
  const auto* torch = dynamic_cast<const TorchStore*>(&store);
  std::vector<std::string_view> out;
  if (torch == nullptr) return out;
  for (i64 t = 0; t < store.tensor_count(); t++)
    out.push_back(store.name(t).substr(0, static_cast<std::size_t>(torch->dict_bytes(t))));
  return out;
}

std::vector<bool> listed_of_model(const Store& store) {
  const auto* zero = dynamic_cast<const ZeroStore*>(&store);
  std::vector<bool> out;
  if (zero == nullptr) return out;
  for (i64 t = 0; t < zero->tensor_count(); t++) out.push_back(zero->is_of_model(t));
  return out;
}

}  // namespace mckpt::impl
