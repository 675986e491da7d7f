// A view of the table.
#include "convert/own/memory_names.h"

#include "convert/own/disk_rules.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

class NamesOfModel final : public MemoryNames {
 public:
  explicit NamesOfModel(const DiskRules* rules) : rules_(rules) {}

  std::string on_disk(std::string_view name) const override { return name_on_disk(name, rules_); }

  std::vector<std::string> experts(std::string_view stack) const override {
    std::vector<std::string> out;
    if (!rules_) return out;
    for (const StackRule& rule : rules_->stacks) {
      if (!stack.ends_with(rule.stack)) continue;
      const std::string_view before = stack.substr(0, stack.size() - rule.stack.size());
      out.push_back(cat(before, rule.first));
      if (!rule.second.empty()) out.push_back(cat(before, rule.second));
      return out;
    }
    return out;
  }

 private:
  const DiskRules* rules_;
};

}  // namespace

MakeMemoryNames memory_names() {
  return [](std::string_view model_type) { return std::make_unique<NamesOfModel>(disk_rules(model_type)); };
}

}  // namespace mckpt::impl
