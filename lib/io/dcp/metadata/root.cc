// Walks over the fields of Metadata that are not known by name.
#include "io/dcp/metadata/root.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "io/pickle/pickle.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

// `mcore_data` is of Megatron's own subclass, `all_local_plans` of Megatron-Core from 0.19 on.
constexpr std::string_view kFields[] = {"state_dict_metadata", "planner_data", "storage_data",
                                        "storage_meta",        "version",      "mcore_data",
                                        "all_local_plans"};

bool is_known(PickleValue key) {
  return key.is(Kind::kText) && std::ranges::find(kFields, key.text()) != std::end(kFields);
}

// Collects classes; values may be shared and contain themselves.
class ClassWalk {
 public:
  void walk(PickleValue value) {
    if (value.is(Kind::kClass)) found.insert(&value.as_class());
    if (value.container() == nullptr || !seen_.insert(value.container()).second) return;
    for (PickleValue item : value.items()) walk(item);
    for (auto [key, inner] : value.entries()) walk(key), walk(inner);
    if (!value.is(Kind::kObject)) return;
    const PickleObject& object = value.as_object();
    found.insert(object.type);
    for (PickleValue part : {object.args, object.state, object.items}) walk(part);
  }

  std::set<const PickleClass*> found;

 private:
  std::unordered_set<const PickleNode*> seen_;
};

// Calls visit(key, value) for every field that is not known. Slots of a class are not looked at: torch's has
// none.
template <typename Visit>
void each_unknown(const PickleObject& metadata, Visit&& visit) {
  for (auto [key, value] : metadata.state.entries())
    if (!is_known(key)) visit(key, value);
}

}  // namespace

std::vector<std::string_view> unknown_root_fields(const PickleObject& metadata) {
  std::vector<std::string_view> out;
  each_unknown(metadata, [&](PickleValue key, PickleValue) {
    if (key.is(Kind::kText)) out.push_back(key.text());
  });
  return out;
}

std::set<const PickleClass*> classes_of_unknown_fields(const PickleObject& metadata) {
  ClassWalk walk;
  each_unknown(metadata, [&](PickleValue, PickleValue value) { walk.walk(value); });
  return std::move(walk.found);
}

}  // namespace mckpt::impl
