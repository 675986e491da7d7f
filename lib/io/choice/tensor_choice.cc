// Chooses tensors by name, and words the error if no name matches: how many tensors there are and which name
// is nearest by edit distance. Only the first 20,000 names are compared, so that the error comes at once.
#include "io/choice/tensor_choice.h"

#include <algorithm>
#include <memory>

#include "core/base/argument.h"
#include "core/base/error.h"
#include "core/base/names.h"
#include "io/choice/name_regex.h"
#include "io/store/finding.h"
#include "io/store/lone_shard.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostCompared =
    20000;  // of names, for the nearest: each comparison costs a few microseconds

enum class Kind { kGlob, kRegex, kName };

// Most globs that match nothing lack a star at an end.
[[noreturn]] void throw_none(std::span<const std::string_view> names, const std::string& pattern,
                             const std::string& root, bool lone, Kind kind) {
  const bool glob = kind == Kind::kGlob;
  Error e(Code::kNoSuchTensor, kind == Kind::kName
                                   ? cat("there is no tensor of the name '", escaped(pattern), "'")
                                   : cat("no tensor matches '", escaped(pattern), "'"));
  e.file(root).found(counted(std::ssize(names), "tensor"));
  std::string open = cat(pattern.starts_with('*') ? "" : "*", pattern, pattern.ends_with('*') ? "" : "*");
  auto matches = [&](const std::string& as_glob) {
    return std::ranges::count_if(names, [&](std::string_view name) { return glob_match(as_glob, name); });
  };
  if (i64 inside = glob ? matches(open) : 0; inside > 0)
    throw e.help(
        cat("a glob has to match the whole name: '", escaped(open), "' matches ", counted(inside, "tensor")));
  if (glob && pattern.find('{') != pattern.npos)
    e.note(
        "braces are plain characters in a glob: [qk] is one character of a set, and a regular expression has (a|b)");
  bool like_a_glob = !glob && pattern.find_first_of("*?") != pattern.npos;
  if (i64 meant = like_a_glob ? matches(pattern) : 0; meant > 0)
    e.note(cat("as a glob it would match ", counted(meant, "tensor"), ", but it is not read as a glob"));
  std::vector<std::string> around;  // names of which the pattern is the first or the last parts
  for (std::string_view name : names)
    if (name.ends_with(cat(".", pattern)) || name.starts_with(cat(pattern, ".")))
      around.push_back(escaped(name));
  if (!around.empty()) {
    e.note(cat("names that begin or end so: ", listed(around)));
  } else if (std::string_view near = nearest(pattern, names.first(std::min(names.size(), kMostCompared)));
             !near.empty()) {
    e.note(cat("the nearest name is ", escaped(near)));
  }
  if (lone) e.note("the file of one rank was opened: the files of other ranks may have the tensor");
  if (!root.empty()) e.help(cat("mckpt ls ", as_argument(root), "   lists them"));
  throw e;
}

std::vector<i64> chosen_of(const TensorChoice& choice, std::span<const std::string_view> names,
                           const std::string& root, bool lone) {
  const std::function<bool(std::string_view)> chooses = choice.test();
  std::vector<i64> chosen;
  for (std::size_t i = 0; i < names.size(); i++)
    if (chooses(names[i])) chosen.push_back(static_cast<i64>(i));
  if (chosen.empty() && !choice.all())
    throw_none(names, choice.pattern, root, lone, choice.regex ? Kind::kRegex : Kind::kGlob);
  return chosen;
}

}  // namespace

std::function<bool(std::string_view)> TensorChoice::test() const {
  if (all()) return [](std::string_view) { return true; };
  if (!regex) return [glob = pattern](std::string_view name) { return glob_match(glob, name); };
  return [expression = std::make_shared<NameRegex>(pattern)](std::string_view name) {
    return expression->matches(name);
  };
}

std::vector<i64> TensorChoice::choose(std::span<const std::string_view> names) const {
  return chosen_of(*this, names, "", false);
}

std::vector<i64> TensorChoice::choose(const Store& store) const {
  std::vector<i64> tensors = natural_order(store);
  if (all()) return tensors;
  std::vector<std::string_view> names;
  for (i64 t : tensors) names.push_back(store.name(t));
  std::vector<i64> chosen = chosen_of(*this, names, store.root(), is_lone_shard(store));
  for (i64& c : chosen) c = tensors[c];
  return chosen;
}

i64 tensor_named(const Store& store, const std::string& name) {
  if (i64 t = find_tensor(store, name); t >= 0) return t;
  for (const Finding& f : store.findings())
    if (!f.warning && f.tensor == name)
      throw Error(f.code, f.message).file(f.file.empty() ? store.root() : f.file).tensor(name).help(f.help);
  std::vector<std::string_view> names;
  for (i64 t = 0; t < store.tensor_count(); t++) names.push_back(store.name(t));
  throw_none(names, name, store.root(), is_lone_shard(store), Kind::kName);
}

}  // namespace mckpt::impl
