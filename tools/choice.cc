#include "tools/choice.h"

#include <regex.h>

#include <memory>

#include "core/names.h"

namespace mckpt {
namespace {

// A POSIX extended expression, searched for anywhere in the name. (std::regex recurses once a character and
// overflows the stack on long names.)
class Regex {
 public:
  explicit Regex(const std::string& pattern) {
    if (int fault = regcomp(&regex_, pattern.c_str(), REG_EXTENDED | REG_NOSUB)) {
      char text[200];
      regerror(fault, &regex_, text, sizeof text);
      throw Error(Code::kUsage, cat("the regular expression is not valid: ", text)).found(escaped(pattern));
    }
  }
  ~Regex() { regfree(&regex_); }
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  bool matches(std::string_view name) const {
    regmatch_t range = {0, static_cast<regoff_t>(name.size())};
    return regexec(&regex_, name.data(), 0, &range, REG_STARTEND) == 0;
  }

 private:
  regex_t regex_;
};

[[noreturn]] void throw_none(const Store& store, const std::string& pattern) {
  std::vector<std::string_view> names;
  for (i64 t = 0; t < std::min<i64>(store.tensor_count(), 20000); t++) names.push_back(store.name(t));
  Error e(Code::kNoSuchTensor, cat("no tensor matches '", escaped(pattern), "'"));
  e.file(store.root()).found(cat(store.tensor_count(), " tensors"));
  if (std::string_view near = nearest(pattern, names); !near.empty())
    e.note(cat("the nearest name is ", escaped(near)));
  throw e.help(cat("mckpt ls ", escaped(store.root()), "   lists them"));
}

}  // namespace

void TensorChoice::declare(CommandLine& line) {
  line.positional("GLOB", pattern, "only tensors whose whole name matches, as in 'model.layers.0.*'");
  line.flag("--regex", regex, "GLOB is a regular expression, found anywhere in the name");
}

std::vector<i64> TensorChoice::choose(const Store& store) const {
  std::vector<i64> all = natural_order(store);
  if (pattern.empty()) return all;
  std::unique_ptr<Regex> expression;
  if (regex) expression = std::make_unique<Regex>(pattern);
  std::vector<i64> chosen;
  for (i64 t : all)
    if (expression ? expression->matches(store.name(t)) : glob_match(pattern, store.name(t)))
      chosen.push_back(t);
  if (chosen.empty()) throw_none(store, pattern);
  return chosen;
}

}  // namespace mckpt
