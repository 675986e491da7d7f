#include "convert/compare/checks/nesting.h"

#include "io/torch/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

// The one file of torch.save; null where the store is another one.
const TorchTable* single_file(const Store& store) {
  const auto* torch = dynamic_cast<const TorchStore*>(&store);
  return torch && torch->part_count() == 1 ? &torch->table(0) : nullptr;
}

}  // namespace

void name_unlike_nesting(const Store& tested, const Store& source, VerifyReport& report) {
  const TorchTable *a = single_file(tested), *b = single_file(source);
  if (!a || !b || a->nesting() == b->nesting()) return;
  report.add(
      {.name = "nesting",
       .unit = "files",
       .note =
           "not compared: how dicts and lists lead to the values, which is not alike (a list and a dict, a key "
           "that is a number and one that is a text, dots in keys)"},
      {});
}

}  // namespace mckpt::impl
