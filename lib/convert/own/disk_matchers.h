// The transforms of convert/own/disk_transforms.h of one class, and where they apply to a name.
#pragma once

#include <optional>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/own/disk_steps.h"

namespace mckpt::impl {

struct DiskAlternative {
  int source;
  std::string_view pattern;
};
struct DiskTransform {
  enum Kind : u8 {
    kName,
    kEach,    // names too: each source has its own target
    kNumber,  // a name, and `offset` is added to the number in it
    kItems,   // tensors, by `steps`
  } kind;
  std::string_view scope,
      base;  // what the names of a part of the model begin with, also without the base's name
  bool scoped;
  std::span<const DiskAlternative> sources;
  std::span<const std::string_view> targets;
  std::span<const DiskStep> steps = {};
  i64 offset = 0;
};
struct DiskClass {
  std::string_view model_type, name;
  std::span<const u16> transforms;
  std::string_view on_disk;  // a name that the folder has and no model has in memory; "": only tensors differ
  // Names in memory, of layers with any number, that every model of the class has and its folder does not.
  std::span<const std::string_view> always;
};

// The release of transformers whose tables these are.
extern const std::string_view kDiskRelease;

// Another class of the same type takes the place of one that is not in the table; null if there is none.
const DiskClass* disk_class(std::string_view model_type, std::string_view architecture);

struct DiskMatch {
  int source = 0;
  std::size_t at = 0;  // of the name, where the part begins in which was looked
  std::string text, group;
};

class DiskMatcher {
 public:
  explicit DiskMatcher(const DiskTransform& of);
  std::optional<DiskMatch> find(const std::string& name) const;

  const DiskTransform& transform;

 private:
  std::vector<std::pair<int, std::regex>> sources_;
};

// The name with the target in place of what was found.
std::string replaced(const std::string& name, const DiskMatch& match, std::string target);

// The name with one number in place of every other, as layers and experts of any number are alike.
std::string without_numbers(std::string_view name);

// The target with a number in place of an expert's.
std::string with_number(std::string_view target);

// A transform, and what is in front of its place in a name, without numbers.
using DiskChange = std::pair<const DiskTransform*, std::string>;

// The transforms of a class.
struct DiskMatchers {
  std::vector<DiskMatcher> tensors, names;

  explicit DiskMatchers(const DiskClass& rules);

  // By all transforms of names.
  std::string named(std::string name) const;

  // The folder's name of a tensor, or of the first that it becomes.
  std::string first_on_disk(const std::string& name) const;

  // All that is done to a name.
  std::set<DiskChange> changes(std::string name) const;
};

}  // namespace mckpt::impl
