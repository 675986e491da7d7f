// Finds the args among the objects of a checkpoint. A returned part shares ownership of the pickle that it
// is in.
#include "io/dcp/run/args.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// The name of the args, and how the common state's object begins: its full name ends in the shard,
// "shard_0_1".
constexpr std::string_view kArgs = "args", kCommonItem = "common_state/";

// The object of this name; null if there is none. Errors name it.
std::shared_ptr<const PickleValue> object_named(const Store& store, std::string_view name) {
  for (std::size_t i = 0; i < store.objects().size(); i++) {
    if (store.objects()[i].name != name) continue;
    try {
      return store.object(static_cast<i64>(i));
    } catch (Error& e) {
      throw e.default_tensor(name);
    }
  }
  return nullptr;
}

// `part` of `whole` as a pointer that keeps the whole alive; null for a null part.
std::shared_ptr<const PickleValue> part_of(std::shared_ptr<const PickleValue> whole,
                                           const PickleValue* part) {
  return part ? std::shared_ptr<const PickleValue>(std::move(whole), part) : nullptr;
}

}  // namespace

bool is_common_state(std::string_view object) {
  return object == kCommonFile || object.starts_with(kCommonItem);
}
bool holds_args(std::string_view object) { return object == kArgs || is_common_state(object); }

std::shared_ptr<const PickleValue> common_state_of(const Store& store) {
  std::shared_ptr<const PickleValue> state = object_named(store, kCommonFile);
  for (const Object& o : store.objects())
    if (!state && o.name.starts_with(kCommonItem)) state = object_named(store, o.name);
  if (!state || !state->is(PickleValue::Kind::kList)) return state;
  // An object is one of a list, as objects of all ranks are.
  const PickleValue* first = state->size() > 0 ? &*state->items().begin() : nullptr;
  return part_of(std::move(state), first);
}

std::shared_ptr<const PickleValue> args_of(const Store& store) {
  if (std::shared_ptr<const PickleValue> args = object_named(store, kArgs)) return args;
  if (store.driver().ranks_apart) {
    auto first =
        std::ranges::find_if(store.objects(), [](const Object& o) { return o.name.ends_with("/args"); });
    return first == store.objects().end() ? nullptr : object_named(store, first->name);
  }
  std::shared_ptr<const PickleValue> common = common_state_of(store);
  return common ? part_of(common, common->find(kArgs)) : nullptr;
}

const PickleValue* arg_of(const PickleValue& args, std::string_view name) {
  return args.is(PickleValue::Kind::kObject) ? args.as_object().field(name) : args.find(name);
}

}  // namespace mckpt::impl
