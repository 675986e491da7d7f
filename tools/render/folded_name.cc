// Numbers are texts here: a name may have one of any length.
#include "tools/render/folded_name.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "core/base/int.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr char kNumber = '\x01';  // in no name that a model has

bool is_digit(char c) { return '0' <= c && c <= '9'; }

// The end of the number at `at`; `at` itself if no number that names differ in begins there. Such a number is
// a part of its own between dots, or an expert's number: "layers.0", "weight3_v", but not "linear_fc1".
std::size_t number_end(std::string_view name, std::size_t at) {
  if (!is_digit(name[at])) return at;
  std::string_view before = name.substr(0, at);
  if (!before.empty() && !before.ends_with('.') && !before.ends_with("weight") && !before.ends_with("bias"))
    return at;
  while (at < name.size() && is_digit(name[at])) at++;
  return at;
}

bool follows(const std::string& a, const std::string& b) {
  constexpr std::size_t kMostDigits = 17;
  return b.size() <= kMostDigits && std::stoll(a) + 1 == std::stoll(b);
}

}  // namespace

std::string FoldedName::form(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = number_end(name, i);
    out += end > i ? kNumber : name[i];
    i = std::max(end, i + 1);
  }
  return out;
}

void FoldedName::add(std::string_view name) {
  if (form_.empty()) form_ = form(name);
  std::size_t place = 0;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = number_end(name, i);
    if (end > i) {
      if (place == numbers_.size()) numbers_.emplace_back();
      numbers_[place++].insert(std::string(name.substr(i, end - i)));
    }
    i = std::max(end, i + 1);
  }
}

std::string FoldedName::range_text(const Numbers& numbers) {
  if (numbers.size() == 1) return *numbers.begin();
  std::string out;
  for (auto at = numbers.begin(); at != numbers.end();) {
    auto last = at, next = std::next(at);
    while (next != numbers.end() && follows(*last, *next)) last = next++;
    out += cat(out.empty() ? "" : ", ", *at, last == at ? "" : cat("-", *last));
    at = next;
  }
  return cat("{", out, "}");
}

std::string FoldedName::text() const {
  std::string out;
  std::size_t place = 0;
  for (char c : form_) {
    if (c == kNumber && place < numbers_.size())
      out += range_text(numbers_[place++]);
    else
      out += c;
  }
  return escaped(out, 4096);
}

std::vector<std::string> folded_names(std::span<const std::string> names) {
  struct Fold {
    FoldedName name;
    i64 count = 0;
  };
  std::vector<Fold> folds;
  std::map<std::string, std::size_t> by_form;
  for (const std::string& name : names) {
    auto [at, is_new] = by_form.try_emplace(FoldedName::form(name), folds.size());
    if (is_new) folds.emplace_back();
    folds[at->second].name.add(name);
    folds[at->second].count++;
  }
  std::vector<std::string> out;
  for (const Fold& fold : folds)
    out.push_back(cat(fold.name.text(), fold.count > 1 ? cat("  (", with_commas(fold.count), ")") : ""));
  return out;
}

}  // namespace mckpt::impl
