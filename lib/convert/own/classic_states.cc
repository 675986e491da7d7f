// A name is taken apart at its dots: "optimizer", the number of one of several optimizers, the second
// "optimizer" of a run in half precision, and then what it is. Numbers of several optimizers get the
// optimizer's number in front: "1.7".
#include "convert/own/classic_states.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kMain = "fp32_param", kExperts = "is_expert_parallel";

std::optional<std::size_t> number_of(std::string_view word) {
  std::size_t number = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  bool whole = error == std::errc() && end == word.data() + word.size();
  return whole && number < (std::size_t{1} << 20) ? std::optional(number) : std::nullopt;
}

// The words of a name behind "optimizer" and its second "optimizer", and the number of one of several
// optimizers with a dot behind it, or "".
struct Words {
  std::string of;
  std::vector<std::string_view> rest;
};

Words words_of(std::string_view name) {
  Words out;
  for (std::size_t begin = 0; begin <= name.size();) {
    std::size_t end = std::min(name.find('.', begin), name.size());
    out.rest.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  auto drop = [&] { out.rest.erase(out.rest.begin()); };
  drop();
  if (!out.rest.empty() && number_of(out.rest[0])) out.of = cat(out.rest[0], "."), drop();
  if (!out.rest.empty() && out.rest[0] == "optimizer") drop();
  return out;
}

bool is_true(PickleValue group, std::string_view field) {
  const PickleValue* value = group.find(field);
  return value && value->is(PickleValue::Kind::kBool) && value->as_bool();
}

}  // namespace

ClassicOptimizer::ClassicOptimizer(const Store& store, std::string_view front, std::span<const i64> tensors,
                                   std::span<const i64> objects)
    : store_(store), front_(front) {
  for (i64 t : tensors) take_tensor(t, store.name(t).substr(front.size()));
  for (i64 o : objects) take_groups(o, std::string_view(store.objects()[o].name).substr(front.size()));
  // Where experts have an optimizer of their own, it has all of them.
  bool marked = std::ranges::any_of(groups_, [](const Group& g) { return is_true(g.options, kExperts); });
  for (Group& g : groups_) {
    if (marked) g.numbers.experts = is_true(g.options, kExperts);
    if (auto own = main_.find(g.numbers.index); own != main_.end()) g.main = own->second;
  }
}

void ClassicOptimizer::refuse(std::string why) const {
  throw Error(Code::kNotHeld, "it is not known which parameters the states of the optimizer are of")
      .file(cat(store_.root(), "/", front_))
      .note(std::move(why))
      .help("`weights_only` leaves the states out");
}

void ClassicOptimizer::take_tensor(i64 tensor, std::string_view name) {
  Words words = words_of(name);
  const std::vector<std::string_view>& w = words.rest;
  if (!w.empty() && w[0] == "grad_scaler") return;  // of a run in fp16; no other format has a place for it
  if (w.size() == 3 && w[0] == "state" && number_of(w[1])) {
    std::string number = cat(words.of, w[1]);
    std::span<const i64> dims = store_.dims(tensor);
    if (w[2] == "step" && Shape(dims).items() == 1) {
      states_[number].step = tensor;
      return;
    }
    auto [at, fresh] = shapes_.try_emplace(number, dims.begin(), dims.end());
    if (!fresh && !std::ranges::equal(at->second, dims))
      refuse(cat("the states of number ", number, " have two shapes: ", dims_to_string(at->second), " and ",
                 dims_to_string(dims)));
    states_[number].states.push_back({tensor, std::string(w[2])});
    return;
  }
  bool main = w.size() == 3 && (w[0] == "fp32_from_fp16_params" || w[0] == "fp32_from_fp16");
  if (!main || !number_of(w[1]) || !number_of(w[2]))
    refuse(cat("the tensor ", escaped(name), " is of no form that is known"));
  std::vector<i64>& list = main_[cat(words.of, w[1])];
  const std::size_t at = *number_of(w[2]);
  if (list.size() <= at) list.resize(at + 1, -1);
  list[at] = tensor;
}

void ClassicOptimizer::take_groups(i64 object, std::string_view name) {
  Words words = words_of(name);
  if (words.rest.size() != 1 || words.rest[0] != "param_groups") return;
  std::shared_ptr<const PickleValue> listed = store_.object(object);
  if (!listed || !listed->is(PickleValue::Kind::kList)) return;
  for (PickleValue group : listed->items()) {
    const PickleValue* params = group.find("params");
    if (!params) refuse(cat("a group of ", escaped(name), " lists no parameters"));
    Group made{
        {cat(words.of, std::ranges::count_if(
                           groups_, [&](const Group& g) { return g.numbers.index.starts_with(words.of); })),
         {}},
        group,
        {}};
    for (PickleValue number : params->items()) {
      if (!number.is_int()) refuse(cat("a group of ", escaped(name), " lists something else than numbers"));
      made.numbers.numbers.push_back(cat(words.of, number.as_int()));
    }
    groups_.push_back(std::move(made));
  }
  read_.push_back(std::move(listed));
}

std::vector<ClassicStates> ClassicOptimizer::of(const std::vector<OrderedParameter>& order,
                                                const std::vector<bool>& half) const {
  std::vector<ClassicStates> out(order.size());
  std::vector<NumberGroup> lists;
  NameMap<std::string, std::size_t> place;  // of the parameter with this key
  for (const Group& g : groups_) lists.push_back(g.numbers);
  for (std::size_t i = 0; i < order.size(); i++) place.emplace(order[i].key, i);
  NumberedStates numbered =
      match_numbers(order, lists, shapes_, [this](std::string why) { refuse(std::move(why)); });
  for (const Group& g : groups_) {
    std::size_t next = 0;  // of the main weights
    for (const std::string& number : g.numbers.numbers) {
      const std::size_t p = place.at(numbered.key_of.at(number));
      if (auto own = states_.find(number); own != states_.end() && !own->second.states.empty())
        out[p] = own->second, out[p].options = g.options;
      if (!half[p] || main_.empty()) continue;
      const i64 main = next < g.main.size() ? g.main[next++] : -1;
      if (main < 0 || !std::ranges::equal(store_.dims(main), order[p].dims))
        refuse(cat("the main weights of group ", g.numbers.index, " are not those of its parameters: ",
                   escaped(order[p].key), " ", dims_to_string(order[p].dims), " has ",
                   main < 0 ? "none" : dims_to_string(store_.dims(main))));
      out[p].states.push_back({main, std::string(kMain)});
    }
    if (next != g.main.size())
      refuse(cat("group ", g.numbers.index, " has ", g.main.size() - next,
                 " main weights more than parameters in half precision"));
  }
  return out;
}

}  // namespace mckpt::impl
