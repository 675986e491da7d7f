// By the names that every model of a class has in memory.
#include "convert/own/disk_release.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"

namespace mckpt::impl {

DiskRelease::DiskRelease(const Store& store, const DiskClass& rules, const DiskMatchers& matchers,
                         std::span<const NamedTensor> model)
    : store_(store), rules_(rules), matchers_(matchers), model_(model) {
  for (const NamedTensor& n : model) names_.push_back(without_numbers(n.name));
}

std::string_view DiskRelease::lacking_in_memory() const {
  std::set<DiskChange> all;
  for (std::string_view name : rules_.always) {
    if (has(name)) continue;
    // Where the same is done to longer names, as older releases have them in towers of images, all is done.
    if (all.empty())
      for (const NamedTensor& n : model_) all.merge(matchers_.changes(n.name));
    if (!std::ranges::includes(all, matchers_.changes(std::string(name)))) return name;
  }
  return {};
}

std::string_view DiskRelease::lacking() const {
  for (std::string_view name : rules_.always)
    if (!has(name) && !has(matchers_.first_on_disk(std::string(name)))) return name;
  return {};
}

void DiskRelease::refuse(std::string_view lacking) const {
  throw Error(Code::kUnknownModel, cat("the names are not those that transformers ", kDiskRelease,
                                       " has in memory, and how the model's folder has them is not known"))
      .file(store_.root())
      .tensor(store_.name(most_alike(lacking)))
      .expected(cat(lacking, ", or the same of another layer, as every ", rules_.name, " has it"))
      .found("no such tensor; the one above has the name that is most like it")
      .help(
          "save_pretrained() of the release that trained the model writes its folder; `assets` whose weights or index have the checkpoint's names keeps them; mckpt convert to-dcp SRC DST keeps the names");
}

// A model without its head may lack the first part of its names, and a model inside of another have more.
bool DiskRelease::has(std::string_view wanted) const {
  const std::string name = without_numbers(wanted);
  const auto ends = [](std::string_view whole, std::string_view end) {
    return whole.size() > end.size() && whole.ends_with(end) && whole[whole.size() - end.size() - 1] == '.';
  };
  return std::ranges::any_of(
      names_, [&](const std::string& n) { return n == name || ends(n, name) || ends(name, n); });
}

// The tensor whose name has most in common with this one, at its begin and its end.
i64 DiskRelease::most_alike(std::string_view wanted) const {
  const std::string name = without_numbers(wanted);
  std::size_t best = 0;
  i64 out = 0;
  for (std::size_t i = 0; i < names_.size(); i++) {
    const std::string& n = names_[i];
    const auto begin = std::ranges::mismatch(n, name).in1 - n.begin();
    const auto end = std::mismatch(n.rbegin(), n.rend(), name.rbegin(), name.rend()).first - n.rbegin();
    if (const auto common = static_cast<std::size_t>(begin + end); common > best) {
      best = common;
      out = model_[i].tensor;
    }
  }
  return out;
}

}  // namespace mckpt::impl
