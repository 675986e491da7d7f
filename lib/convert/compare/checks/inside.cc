// A storage in a pickle is (type, key, device, items).
#include "convert/compare/checks/inside.h"

#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/item_cast.h"
#include "io/pickle/classes.h"
#include "io/pickle/value.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

bool is_of_floats(PickleValue storage) {
  const PickleValue args = storage.as_object().args;
  bool floats = false, several = false;
  for (PickleValue a : args.tuple()) {
    if (a.is(Kind::kClass)) floats = is_castable(a.as_class().dtype);
    if (a.is(Kind::kInt)) several = a.as_int() > 1;
  }
  return floats && several;
}

bool has_floats(PickleValue value) {
  std::vector<PickleValue> left{value};
  std::unordered_set<const PickleNode*> seen;
  while (!left.empty()) {
    const PickleValue one = left.back();
    left.pop_back();
    if (one.is(Kind::kStorage) && is_of_floats(one)) return true;
    if (one.container() == nullptr || !seen.insert(one.container()).second) continue;
    for (PickleValue item : one.items()) left.push_back(item);
    for (PickleEntry e : one.entries()) left.push_back(e.value);
    left.push_back(one.attributes());
    if (!one.is(Kind::kObject)) continue;
    const PickleObject& o = one.as_object();
    left.insert(left.end(), {o.args, o.state, o.items});
  }
  return false;
}

bool has_floats(const Store& store, std::size_t object) {
  try {
    const auto value = store.object(static_cast<i64>(object));
    return value && has_floats(*value);
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return false;
  }
}

}  // namespace

void note_inside(const Store& store, VerifyReport& report) {
  if (store.driver().family != FormatFamily::kDcp) return;
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < store.objects().size(); i++)
    if (!is_file(store, store.objects()[i]) && has_floats(store, i)) names.push_back(store.objects()[i].name);
  if (names.empty()) return;
  const i64 count = std::ssize(names);
  report.add({.name = "inside",
              .count = count,
              .unit = "objects",
              .note = cat("not read: tensors inside of ", counted(count, "object"), ": ", listed(names, 3))},
             {});
}

}  // namespace mckpt::impl
