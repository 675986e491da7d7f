// A front ends where the name of a list begins: behind a dot, a colon or a slash.
#include "convert/optimizer/pickled_groups.h"

#include <charconv>
#include <memory>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/pickle/render.h"
#include "io/pickle/value.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

std::vector<ReadGroup> groups_in(PickleValue list) {
  std::vector<ReadGroup> out;
  for (PickleValue g : list.items()) {
    if (!g.is(PickleValue::Kind::kDict)) continue;
    ReadGroup& group = out.emplace_back();
    group.options = options_of_group(g);
    const PickleValue* params = g.find("params");
    if (!params) continue;
    for (PickleValue p : params->items())
      if (p.is_int())
        group.parameters.push_back(numbered_parameter(p.as_int()));
      else if (p.is(PickleValue::Kind::kText))
        group.parameters.emplace_back(p.text());
  }
  return out;
}

}  // namespace

std::string shortest_number(std::string text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? cat(value) : text;
}

std::string option_text(PickleValue value) { return shortest_number(pickle_line(value)); }

OptimizerContent::Options options_of_group(PickleValue group) {
  OptimizerContent::Options out;
  for (PickleEntry e : group.entries())
    if (e.key.is(PickleValue::Kind::kText) && e.key.text() != "params")
      out[std::string(e.key.text())] = option_text(e.value);
  return out;
}

std::string numbered_parameter(i64 number) { return cat("number ", number); }

std::vector<ReadList> pickled_group_lists(const Store& store) {
  std::vector<ReadList> out;
  for (i64 o = 0; o < std::ssize(store.objects()); o++) {
    const std::string& name = store.objects()[o].name;
    if (!name.ends_with(kGroupsOfPickles)) continue;
    std::string front = name.substr(0, name.size() - kGroupsOfPickles.size());
    if (!front.empty() && std::string_view(".:/").find(front.back()) == std::string_view::npos) continue;
    try {
      auto value = store.object(o);
      if (value && value->is(PickleValue::Kind::kList)) out.push_back({std::move(front), groups_in(*value)});
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
    }
  }
  return out;
}

std::string without_rank(const std::string& front) {
  constexpr std::string_view kRank = "rank_";
  for (std::size_t at = front.find(kRank); at != front.npos; at = front.find(kRank, at + 1)) {
    const std::size_t digits = at + kRank.size(), end = front.find_first_not_of("0123456789", digits);
    if ((at == 0 || front[at - 1] == ':') && end != front.npos && end > digits && front[end] == ':')
      return cat(front.substr(0, at), front.substr(end + 1));
  }
  return front;
}

std::string without_tensor_rank(const std::string& front) {
  constexpr std::string_view kRank = "mp_rank_";
  if (!front.starts_with(kRank)) return front;
  const std::size_t end = front.find_first_not_of("0123456789", kRank.size());
  return end == front.npos ? front : cat(kRank, "*", front.substr(end));
}

}  // namespace mckpt::impl
