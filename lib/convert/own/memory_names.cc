// A view of two tables: of model types, and of classes where a type is not in the first.
#include "convert/own/memory_names.h"

#include <utility>

#include "convert/own/disk_rules.h"
#include "convert/own/disk_transforms.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

class NamesOfModel final : public MemoryNames {
 public:
  explicit NamesOfModel(const DiskRules* rules) : rules_(rules) {}

  std::string on_disk(std::string_view name) const override { return name_on_disk(name, rules_); }

  std::vector<std::string> parts(std::string_view name) const override {
    std::vector<std::string> out;
    if (!rules_) return out;
    const std::string stack = name_on_disk(name, rules_);
    for (const StackRule& rule : rules_->stacks) {
      if (!stack.ends_with(rule.stack)) continue;
      const std::string before = stack.substr(0, stack.size() - rule.stack.size());
      out.push_back(cat(before, rule.first));
      if (!rule.second.empty()) out.push_back(cat(before, rule.second));
      return out;
    }
    return out;
  }

  bool rearranged(std::string_view) const override { return false; }

 private:
  const DiskRules* rules_;
};

// By the table of transforms.
class NamesOfClass final : public MemoryNames {
 public:
  NamesOfClass(std::string_view model_type, std::string_view architecture)
      : places_(model_type, architecture) {}

  std::string on_disk(std::string_view name) const override {
    DiskPlace place = places_.of(name);
    return is_in_parts(place) || place.rearranged ? std::string(name) : std::move(place.names[0]);
  }

  std::vector<std::string> parts(std::string_view name) const override {
    DiskPlace place = places_.of(name);
    return is_in_parts(place) ? std::move(place.names) : std::vector<std::string>();
  }

  bool rearranged(std::string_view name) const override { return places_.of(name).rearranged; }

 private:
  static bool is_in_parts(const DiskPlace& place) {
    return !place.rearranged && (place.names.size() > 1 || place.names[0].find("{E}") != std::string::npos);
  }

  DiskPlaces places_;
};

}  // namespace

MakeMemoryNames memory_names() {
  return [](std::string_view model_type, std::string_view architecture) -> std::unique_ptr<MemoryNames> {
    const DiskRules* rules = disk_rules(model_type);
    if (!rules && has_disk_transforms(model_type, architecture))
      return std::make_unique<NamesOfClass>(model_type, architecture);
    return std::make_unique<NamesOfModel>(rules);
  };
}

}  // namespace mckpt::impl
