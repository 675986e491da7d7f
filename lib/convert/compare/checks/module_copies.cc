#include "convert/compare/checks/module_copies.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "io/choice/tensor_choice.h"
#include "io/verify/verify.h"
#include "io/zero/store.h"

namespace mckpt::impl {
namespace {

using ModuleCopy = ZeroStore::ModuleCopy;

std::string counted_copies(i64 count) {
  return cat(counted(count, "weight"), " that DeepSpeed saves beside ",
             count == 1 ? "its float32 part" : "their float32 parts");
}

// The copies that another side has, too. Ranks of other numbers have shards of other shapes.
class CopiesOfBoth {
 public:
  CopiesOfBoth(const ZeroStore* of, const ZeroStore* other) : of_(of), other_(other) {
    if (!of_ || !other_) return;
    alike_ranks_ = tensor_parallel_ranks(*of_) == tensor_parallel_ranks(*other_);
    for (const ModuleCopy& c : other_->module_copies()) theirs_.emplace(c.name, &c);
  }

  bool has(const ModuleCopy& copy) const {
    const auto at = theirs_.find(copy.name);
    if (at == theirs_.end()) return false;
    return alike_ranks_ ||
           std::ranges::equal(of_->layout_dims(copy.layout), other_->layout_dims(at->second->layout));
  }

 private:
  const ZeroStore *of_, *other_;
  bool alike_ranks_ = false;
  NameMap<std::string_view, const ModuleCopy*> theirs_;
};

void name_copies(const ZeroStore& side, const CopiesOfBoth& both, const TensorChoice& choice,
                 VerifyReport& report) {
  const std::function<bool(std::string_view)> chosen = choice.all() ? nullptr : choice.test();
  std::vector<std::string_view> alone;
  for (const ModuleCopy& c : side.module_copies())
    if (!both.has(c) && (!chosen || chosen(c.name))) alone.push_back(c.name);
  if (alone.empty()) return;
  report.add({.name = "copies",
              .status = Check::Status::kNone,
              .count = std::ssize(alone),
              .unit = "weights",
              .note = cat("not compared: ", counted_copies(std::ssize(alone)),
                          " in the optimizer, which one side alone has: ", listed(alone, 3), " of ",
                          escaped(side.root(), 4096))},
             {});
}

}  // namespace

std::string tensor_parallel_ranks(const Store& store) {
  for (const auto& [name, value] : store.facts())
    if (name == "tensor-parallel ranks") return value;
  return "";
}

void list_module_copies(Store& tested, Store& source, const TensorChoice& choice, VerifyReport& report) {
  auto *one = dynamic_cast<ZeroStore*>(&tested), *other = dynamic_cast<ZeroStore*>(&source);
  const CopiesOfBoth ours(one, other), theirs(other, one);
  if (one) name_copies(*one, ours, choice, report);
  if (other) name_copies(*other, theirs, choice, report);
  if (!one || !other) return;
  one->list_module_copies([&](const ModuleCopy& c) { return ours.has(c); });
  other->list_module_copies([&](const ModuleCopy& c) { return theirs.has(c); });
}

std::string counted_module_copies(const VerifyReport& report) {
  i64 count = 0;
  for (const Check& c : report.checks)
    if (c.name == "copies") count += c.count;
  if (count == 0) return "";
  return cat(counted_copies(count), count == 1 ? " was" : " were");
}

}  // namespace mckpt::impl
