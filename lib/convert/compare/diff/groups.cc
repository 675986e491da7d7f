// Counts tensors by their names with "*" for each number.
#include "convert/compare/diff/groups.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

#include "convert/compare/diff/diff.h"
#include "core/base/names.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The pattern of a name, and its numbers: digits behind a dot, also with a suffix ("weight12_w" is a number
// of an expert too).
std::string pattern_of(std::string_view name, std::vector<i64>& numbers) {
  std::string out;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && is_digit(name[end])) end++;
    bool part = end > at && end - at < 10 &&
                (at == 0 || name[at - 1] == '.' || name.substr(0, at).ends_with(".weight") ||
                 name.substr(0, at).ends_with(".bias"));
    if (!part) {
      end = std::max(end, at + 1);
      out += name.substr(at, end - at);
    } else {
      std::from_chars(name.data() + at, name.data() + end, numbers.emplace_back());
      out += '*';
    }
    at = end;
  }
  return out;
}

struct Members {
  i64 tensors = 0, differ = 0;
  std::vector<std::set<i64>> numbers;
};

class Groups {
 public:
  void add(const std::string& name, bool differs) {
    std::vector<i64> numbers;
    Members& m = by_pattern_[pattern_of(name, numbers)];
    m.tensors++;
    m.numbers.resize(numbers.size());
    if (!differs) return;
    m.differ++;
    for (std::size_t i = 0; i < numbers.size(); i++) m.numbers[i].insert(numbers[i]);
  }

  std::vector<DiffGroup> take() const {
    std::vector<DiffGroup> out;
    for (const auto& [pattern, m] : by_pattern_) {
      out.push_back({pattern, m.tensors, m.differ});
      for (const std::set<i64>& n : m.numbers) out.back().numbers.emplace_back(n.begin(), n.end());
    }
    std::ranges::stable_sort(
        out, [](const DiffGroup& a, const DiffGroup& b) { return natural_less(a.pattern, b.pattern); });
    std::ranges::stable_sort(out, {}, [](const DiffGroup& g) { return diff_part(g.pattern); });
    std::stable_partition(out.begin(), out.end(), [](const DiffGroup& g) { return g.differ > 0; });
    return out;
  }

 private:
  std::map<std::string, Members> by_pattern_;
};

}  // namespace

std::vector<DiffGroup> diff_groups(const Diff& diff) {
  std::set<std::string_view> differ, compared(diff.report.compared.begin(), diff.report.compared.end());
  Groups groups;
  for (const DiffRow& r : diff.rows) {
    bool differs = r.of_tensor() && r.kind != DiffRow::Kind::kCast && !r.alike();
    if (!differs || !differ.insert(r.name).second) continue;
    if (!compared.contains(r.name)) groups.add(r.name, true);
  }
  for (std::string_view name : compared) groups.add(std::string(name), differ.contains(name));
  return groups.take();
}

std::vector<TypeGroup> type_groups(const Diff& diff) {
  std::vector<TypeGroup> out;
  std::map<std::tuple<std::string, std::string_view, std::string_view>, std::size_t> known;
  std::vector<std::vector<std::set<i64>>> numbers;
  for (const DiffRow& r : diff.rows) {
    if (r.kind != DiffRow::Kind::kCast) continue;
    std::vector<i64> own;
    std::string pattern = pattern_of(r.name, own);
    auto [at, fresh] = known.try_emplace({pattern, r.a, r.b}, out.size());
    if (fresh) out.push_back({pattern, r.a, r.b, r.name}), numbers.emplace_back(own.size());
    out[at->second].tensors++;
    for (std::size_t i = 0; i < own.size(); i++) numbers[at->second][i].insert(own[i]);
  }
  for (std::size_t g = 0; g < out.size(); g++)
    for (const std::set<i64>& n : numbers[g]) out[g].numbers.emplace_back(n.begin(), n.end());
  std::ranges::stable_sort(
      out, [](const TypeGroup& a, const TypeGroup& b) { return natural_less(a.pattern, b.pattern); });
  return out;
}

std::string ranges_text(const std::vector<i64>& numbers, std::size_t most) {
  std::string out;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) end++;
    if (++ranges > most) return cat(out, " and ", numbers.size() - i, " more");
    out += cat(out.empty() ? "" : ", ", numbers[i], end == i ? "" : end == i + 1 ? ", " : "..");
    if (end > i) out += cat(numbers[end]);
    i = end + 1;
  }
  return out;
}

}  // namespace mckpt::impl
