// Names are taken apart into words: those of schedules, options and counts are compared, unless a word says
// that each rank has its own.
#include "io/torch/rank_saves.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/pickle/differences.h"
#include "io/pickle/pickle.h"
#include "io/pickle/value.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostFields = 10'000;
constexpr std::size_t kMostNamed = 6;
constexpr i64 kMostStateBytes = i64{16} << 20;

// Parts of words of what each rank has for itself.
constexpr std::string_view kOwn[] = {"rng",    "random", "seed",   "generator", "data",   "sampler",
                                     "loader", "worker", "shuffl", "time",      "host",   "path",
                                     "device", "best",   "loss",   "metric",    "memory", "local"};
// Parts of words of what all ranks step together.
constexpr std::string_view kShared[] = {"sched", "scaler", "param_groups"};
constexpr std::string_view kCounts[] = {"step",
                                        "steps",
                                        "global_step",
                                        "global_steps",
                                        "iteration",
                                        "iterations",
                                        "iter",
                                        "epoch",
                                        "epochs",
                                        "current_epoch",
                                        "last_epoch",
                                        "_step_count",
                                        "num_updates",
                                        "num_steps",
                                        "train_steps",
                                        "total_steps",
                                        "current_step",
                                        "last_step",
                                        "completed_steps",
                                        "optimizer_steps",
                                        "consumed_samples",
                                        "consumed_train_samples",
                                        "trained_steps"};

bool is_of_word(char c) {
  return c == '_' || (is_ascii({&c, 1}) && std::isalnum(static_cast<unsigned char>(c)));
}

// "[0].params[3]" -> 0, params, 3
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> out;
  bool inside = false;
  for (char c : name) {
    const bool is = is_of_word(c);
    if (is && !inside) out.emplace_back();
    if (is) out.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    inside = is;
  }
  return out;
}

bool is_index(std::string_view word) { return word.find_first_not_of("0123456789") == word.npos; }

// A parameter may be called anything: of its states the last word alone counts.
bool is_state_of_parameter(const std::vector<std::string>& words) {
  return std::ranges::find(words, "state") != words.end() && !words.empty() && words.back() == "step";
}

// What Python prints for a number, a truth value or nothing.
bool is_number(std::string_view text) {
  if (text == "None" || text == "True" || text == "False") return true;
  return !text.empty() && text.find_first_not_of("0123456789+-.einfa") == text.npos;
}

// 5 and 5.0 are one number.
bool same_number(const std::string& a, const std::string& b) {
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  return *end_a == '\0' && *end_b == '\0' && x == y;
}

}  // namespace

bool ranks_agree_on(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  if (is_state_of_parameter(words)) return true;
  auto has = [&](const auto& parts) {
    return std::ranges::any_of(words, [&](const std::string& word) {
      return std::ranges::any_of(parts, [&](std::string_view part) { return word.find(part) != word.npos; });
    });
  };
  auto of_ranks = [](const std::string& word) { return word == "rank" || word.ends_with("_rank"); };
  if (has(kOwn) || std::ranges::any_of(words, of_ranks)) return false;
  // The parameters of a group are those that the rank has.
  if (std::ranges::find(words, "params") != words.end()) return false;
  if (has(kShared)) return true;
  auto last = std::find_if(words.rbegin(), words.rend(), [](const std::string& w) { return !is_index(w); });
  return last != words.rend() && std::ranges::find(kCounts, *last) != std::end(kCounts);
}

void RankSaves::differ(i32 there, i32 here, std::string_view name, std::string_view value_there,
                       std::string_view value_here) {
  Unlike& unlike = by_file_[here];
  unlike.there = there;
  unlike.values.push_back(cat(escaped(name), " ", value_there, " | ", value_here));
}

void RankSaves::compare_objects(const std::vector<i32>& files) {
  // By name without the rank's prefix; the first file that has it is compared with the others.
  std::map<std::string, std::pair<i32, std::shared_ptr<const PickleValue>>, std::less<>> first;
  for (i64 o = 0; o < std::ssize(store_.objects()); o++) {
    const Object& object = store_.objects()[o];
    if (!std::ranges::binary_search(files, object.file)) continue;
    const std::string mark = cat("rank_", store_.rank(object.file), ":");
    const std::size_t at = object.name.find(mark);
    std::string name = at == object.name.npos ? object.name : object.name.substr(at + mark.size());
    // A file that is one number: "step:rank_0:".
    if (name.empty()) name = object.name.substr(0, object.name.find(':'));
    try {
      std::shared_ptr<const PickleValue> value = store_.object(o);
      auto [there, is_new] = first.try_emplace(name, object.file, value);
      if (is_new || !value || !there->second.second) continue;
      auto same_storage = [](PickleValue, PickleValue) { return true; };
      for (const PickleDifference& d :
           pickle_differences(*there->second.second, *value, kMostFields, same_storage).first)
        if (is_number(d.expected) && is_number(d.found) && !same_number(d.expected, d.found) &&
            ranks_agree_on(cat(name, d.at)))
          differ(there->second.first, object.file, cat(name, d.at), d.expected, d.found);
    } catch (const Error&) {  // what is wrong with an object is reported where it is read
    }
  }
}

// Each file has the random states of its rank, which differ, and the number of steps, which does not.
void RankSaves::compare_random_states(const Folder& folder) {
  constexpr std::string_view kBegin = "random_states_", kEnd = ".pkl";
  std::string first;
  std::optional<i64> steps;
  for (i64 rank = 0; folder.has_file(cat(kBegin, rank, kEnd)); rank++) {
    const std::string path = cat(kBegin, rank, kEnd);
    InputFile file = folder.open_file(path);
    if (file.size() > kMostStateBytes) continue;
    std::optional<i64> here;
    try {
      const std::shared_ptr<const Pickle> pickle = Pickle::own(file.read(0, file.size()));
      const PickleValue* step = pickle->root().find("step");
      if (step && step->is_int()) here = step->as_int();
    } catch (const Error& e) {  // what is wrong with the file is said where it is verified
      if (e.code() == Code::kReadFailed) throw;
    }
    if (!here) continue;
    if (!steps) first = path, steps = here;
    if (*here != *steps)
      store_.add_finding({.code = Code::kMixedSaves,
                          .file = path,
                          .message = cat("the file is of another save than ", first,
                                         ", whose values come first: step ", *steps, " | ", *here),
                          .help = "copy the files of all ranks of one save here",
                          .rank = static_cast<i32>(rank)});
  }
}

void RankSaves::report() const {
  for (const auto& [file, unlike] : by_file_)
    store_.add_finding({.code = Code::kMixedSaves,
                        .file = store_.files()[file].path,
                        .message = cat("the file is of another save than ", store_.files()[unlike.there].path,
                                       ", whose values come first: ", listed(unlike.values, kMostNamed)),
                        .help = "copy the files of all ranks of one save here",
                        .rank = store_.rank(file)});
}

}  // namespace mckpt::impl
