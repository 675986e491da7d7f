// Names that differ in numbers of layers and experts alone, as one:
//
//   layers.0.mlp.weight  layers.1.mlp.weight  layers.2.mlp.weight  layers.7.mlp.weight     layers.{0-2, 7}.mlp.weight
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

class FoldedName {
 public:
  // The name with a mark for each number: equal for names that can be folded.
  static std::string form(std::string_view name);

  // pre: all names have one form.
  void add(std::string_view name);
  // Escaped. Where several places have numbers, each shows all that occur there.
  std::string text() const;

 private:
  // Natural order: shorter numbers first.
  struct Less {
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    }
  };
  using Numbers = std::set<std::string, Less>;
  static std::string range_text(const Numbers& numbers);

  std::string form_;
  std::vector<Numbers> numbers_;  // by place in the name
};

// "layers.{0-2}.mlp.weight  (3)": a line for each form, in the order of its first name.
std::vector<std::string> folded_names(std::span<const std::string> names);

}  // namespace mckpt::impl
