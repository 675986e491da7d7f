#include "tools/options/choice.h"

#include <algorithm>
#include <memory>

#include "core/base/names.h"
#include "tools/name_regex.h"

namespace mckpt {
namespace {

[[noreturn]] void throw_none(std::span<const std::string_view> names, const std::string& pattern) {
  constexpr std::size_t kCompared = 20000;
  Error e(Code::kNoSuchTensor, cat("no tensor matches '", escaped(pattern), "'"));
  e.found(cat(names.size(), " tensors"));
  std::string_view near = nearest(pattern, names.first(std::min(names.size(), kCompared)));
  if (!near.empty()) e.note(cat("the nearest name is ", escaped(near)));
  throw e;
}

template <typename Fn>
auto with_help(const Store& store, Fn&& fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (Error& e) {
    e.default_file(store.root());
    throw e.help(cat("mckpt ls ", escaped(store.root()), "   lists them"));
  }
}

}  // namespace

void TensorChoice::declare(CommandLine& line) {
  line.positional("GLOB", pattern, "only tensors whose whole name matches, as in 'model.layers.0.*'");
  line.flag("--regex", regex,
            "GLOB is a regular expression, found anywhere in the name: POSIX extended, with \\d \\w \\s \\b");
}

std::vector<i64> TensorChoice::choose(std::span<const std::string_view> names) const {
  std::unique_ptr<NameRegex> expression;
  if (regex && !pattern.empty()) expression = std::make_unique<NameRegex>(pattern);
  std::vector<i64> chosen;
  for (std::size_t i = 0; i < names.size(); i++)
    if (pattern.empty() || (expression ? expression->matches(names[i]) : glob_match(pattern, names[i])))
      chosen.push_back(static_cast<i64>(i));
  if (chosen.empty() && !pattern.empty()) throw_none(names, pattern);
  return chosen;
}

std::vector<i64> TensorChoice::choose(const Store& store) const {
  std::vector<i64> tensors = natural_order(store);
  if (pattern.empty()) return tensors;
  std::vector<std::string_view> names;
  for (i64 t : tensors) names.push_back(store.name(t));
  return with_help(store, [&] {
    std::vector<i64> chosen = choose(names);
    for (i64& c : chosen) c = tensors[static_cast<std::size_t>(c)];
    return chosen;
  });
}

i64 tensor_named(const Store& store, const std::string& name) {
  if (i64 t = find_tensor(store, name); t >= 0) return t;
  // One that was left out has a reason.
  for (const Finding& f : store.findings())
    if (!f.warning && f.tensor == name)
      throw Error(f.code, f.message).file(f.file.empty() ? store.root() : f.file).tensor(name).help(f.help);
  std::vector<std::string_view> names;
  for (i64 t = 0; t < store.tensor_count(); t++) names.push_back(store.name(t));
  return with_help(store, [&]() -> i64 { throw_none(names, name); });
}

}  // namespace mckpt
