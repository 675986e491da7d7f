// Names are taken apart into words: words of schedules, options and counts are compared, unless a word says
// that each rank has its own.
#include "io/saves/rank_saves.h"

#include <algorithm>
#include <cmath>
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
#include "io/saves/other_save.h"
#include "io/store/open/sniff.h"
#include "io/torch/file.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostFields = 10'000;
constexpr const char* kCopyOneSave = "copy the files of all ranks of one save here";
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

// The text that Python prints for a number, a truth value or nothing.
bool is_number(std::string_view text) {
  if (text == "None" || text == "True" || text == "False") return true;
  return !text.empty() && text.find_first_not_of("0123456789+-.einfa") == text.npos;
}

bool is_whole(std::string_view text) { return text.find_first_not_of("+-0123456789") == text.npos; }

std::optional<double> number_of(const std::string& text) {
  if (text == "True") return 1;
  if (text == "False") return 0;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return *end == '\0' ? std::optional(number) : std::nullopt;
}

// As Python compares: 5 and 5.0 are one number, and so are True and 1; NaN is what a rank has like all
// others.
bool same_number(const std::string& a, const std::string& b) {
  if (is_whole(a) && is_whole(b)) return a == b;  // a double has not every large whole number
  const std::optional<double> x = number_of(a), y = number_of(b);
  return x && y && (*x == *y || (std::isnan(*x) && std::isnan(*y)));
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
  unlike.values.push_back(unlike_value(escaped(name), value_here, value_there));
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

namespace {

// Files in which each rank has its random states, and beside them numbers that all ranks have alike.
struct StateFiles {
  std::string_view begin, end;
};
constexpr StateFiles kStateFiles[] = {{"random_states_", ".pkl"}, {"rng_state_", ".pth"}};

// The rank that the name says: 3 for random_states_3.pkl.
std::optional<i32> rank_in(std::string_view name, const StateFiles& files) {
  constexpr std::size_t kMostDigits = 6;
  if (!name.starts_with(files.begin) || !name.ends_with(files.end)) return std::nullopt;
  if (name.size() <= files.begin.size() + files.end.size()) return std::nullopt;
  name = name.substr(files.begin.size(), name.size() - files.begin.size() - files.end.size());
  if (!is_index(name) || name.size() > kMostDigits || (name.size() > 1 && name[0] == '0'))
    return std::nullopt;
  return std::atoi(std::string(name).c_str());
}

// The value in a file that torch.save wrote, or pickle alone; null for anything else.
std::shared_ptr<const Pickle> state_pickle(const InputFile& file) {
  const FileKind kind = sniff(file);
  if (kind == FileKind::kZip || kind == FileKind::kLegacyTorch) return read_torch_file(file).table.pickle();
  if (kind != FileKind::kPickle) return nullptr;
  if (file.size() > kMostStateBytes)
    throw Error(Code::kPickleLimit, "the file is not compared with those of the other ranks: it is too large")
        .expected(cat("at most ", human_bytes(kMostStateBytes)))
        .found(human_bytes(file.size()));
  return Pickle::own(file.read(0, file.size()));
}

// The whole numbers of the dict that all ranks have alike: step 7.
std::map<std::string, i64> shared_numbers(const Pickle& pickle) {
  std::map<std::string, i64> out;
  const PickleValue root = pickle.root();
  if (root.kind() != PickleValue::Kind::kDict) return out;
  for (const auto& [key, value] : root.entries())
    if (key.is(PickleValue::Kind::kText) && value.is_int() && ranks_agree_on(key.text()))
      out.emplace(key.text(), value.as_int());
  return out;
}

}  // namespace

void RankSaves::compare_random_states(const Folder& folder) {
  for (const StateFiles& files : kStateFiles) {
    // By name of the number, the first file that has it, and its value there.
    std::map<std::string, std::pair<std::string, i64>> first;
    for (const FolderEntry& e : folder.entries()) {
      const std::optional<i32> rank = rank_in(e.name, files);
      if (!rank || e.folder) continue;
      try {
        const std::shared_ptr<const Pickle> pickle = state_pickle(folder.open_file(e.name));
        if (!pickle) continue;
        for (const auto& [name, value] : shared_numbers(*pickle)) {
          const auto& [there, expected] = first.try_emplace(name, e.name, value).first->second;
          if (value != expected)
            store_.add_finding(other_save(e.name, there,
                                          {unlike_value(escaped(name), cat(value), cat(expected))},
                                          kCopyOneSave, *rank));
        }
      } catch (const Error& error) {
        if (error.code() == Code::kInterrupted) throw;
        // Any other fault of the file is reported where it is verified.
        if (error.code() != Code::kReadFailed && error.code() != Code::kPickleLimit) continue;
        Finding finding = to_finding(error);
        finding.file = e.name, finding.warning = true, finding.rank = *rank;
        store_.add_finding(std::move(finding));
      }
    }
  }
}

void RankSaves::report() const {
  for (const auto& [file, unlike] : by_file_)
    store_.add_finding(other_save(store_.files()[file].path, store_.files()[unlike.there].path, unlike.values,
                                  kCopyOneSave, store_.rank(file)));
}

}  // namespace mckpt::impl
