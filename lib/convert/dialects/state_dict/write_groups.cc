// Groups are found by the bytes of the options: parameters whose options have equal pickles, apart from the
// step, are of one group. Groups are numbered by their first parameters, in the order of the model.
#include "convert/dialects/state_dict/write_groups.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "convert/facts/source_args.h"
#include "convert/keys/key_table.h"
#include "core/base/text.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/write/paths.h"
#include "io/pickle/pickle.h"
#include "io/pickle/value.h"
#include "io/pickle/write/writer.h"
#include "io/store/store.h"

namespace mckpt::impl {

namespace {

// An object of the result.
struct Item {
  DcpName name;
  const Object* stored = nullptr;  // copied; null: made of one of the next two
  std::string pickle{};
  std::optional<float> value{};  // of a tensor
};

// Parameters with equal options, all but the step. The facts are the first one's.
struct Group {
  std::vector<std::pair<const RunFact*, std::string>> options{};  // with their pickles
  std::vector<std::string> parameters{};
};

std::string pickle_texts(std::span<const std::string> texts) {
  PickleWriter p;
  p.op(Op::kEmptyList), p.op(Op::kMark);
  for (const std::string& text : texts) p.text(text);
  p.op(Op::kAppends);
  return p.finish();
}

std::optional<float> number_in(const std::string& pickle) {
  Pickle read({reinterpret_cast<const u8*>(pickle.data()), pickle.size()}, {});
  PickleValue v = read.root();
  if (v.is_int()) return static_cast<float>(v.as_int());
  if (v.is(PickleValue::Kind::kFloat)) return static_cast<float>(v.as_float());
  return std::nullopt;
}

std::vector<Item> kept_list(const RunFacts& facts, const SavedPlaces& places) {
  std::multimap<i64, const RunFact*> in_order;
  for (const RunFact& f : facts.all)
    if (f.kind == FactKind::kGroup) in_order.emplace(places.place(name_of(f)), &f);
  std::vector<Item> out;
  for (const auto& [place, f] : in_order)
    out.push_back({places.named(name_of(*f)), facts.object(*f), f->pickle});
  return out;
}

// `without`: names that have options in the facts, and are not parameters.
void note_list(i64 steps, i64 without, Notes& notes) {
  if (steps > 0)
    notes.note(cat(
        "steps   ", counted(steps, "tensor"),
        " beside the ones counted below: the options of the parameters have the step, v2 has it as a state"));
  if (without > 0)
    notes.warn(cat("the options of ", counted(without, "name"),
                   without == 1 ? " that is no parameter" : " that are no parameters",
                   " of the model are left out"));
}

std::vector<Item> made_list(const RunFacts& facts, const KeyTable& keys, const Companions& states,
                            Notes& notes) {
  const auto options = facts.options();
  std::vector<Item> out;
  std::vector<Group> groups;
  std::map<std::string, std::size_t> number;  // of the group with these options
  i64 without = std::ssize(options);
  for (i32 k = 0; k < keys.size(); k++) {
    auto own = options.find(keys[k].name);
    if (own == options.end()) continue;
    without--;
    Group group;
    std::optional<float> step;
    std::string text;
    for (const RunFact* f : own->second) {
      std::string pickle = facts.pickle(*f);
      if (f->name == "step") {
        step = number_in(pickle);
      } else {
        text += cat(f->name, " ", pickle.size(), " ", pickle);
        group.options.emplace_back(f, std::move(pickle));
      }
    }
    auto [at, fresh] = number.try_emplace(std::move(text), groups.size());
    if (fresh) groups.push_back(std::move(group));
    groups[at->second].parameters.push_back(keys[k].name);
    const bool has_step = std::ranges::any_of(
        states[k], [](const Companion& c) { return c.value && c.name.text.ends_with(".step"); });
    if (!states[k].empty() && !has_step && step)
      out.push_back({state_dict_state(keys[k].name, "step"), nullptr, "", step});
  }
  note_list(std::ssize(out), without, notes);
  for (i64 g = 0; g < std::ssize(groups); g++) {
    for (const auto& [f, pickle] : groups[g].options)
      out.push_back({state_dict_group(g, f->name), facts.object(*f), pickle});
    out.push_back({state_dict_group(g, "params"), nullptr, pickle_texts(groups[g].parameters)});
  }
  return out;
}

// Named by the part in front of the first dot: the states of a schedule are a dozen objects. A fact that a
// reader made of entries of one object is named, but does not count as an object.
void note_left_out(const RunFacts& facts, bool weights_only, WrittenFacts& out) {
  std::vector<std::string> names;
  for (const RunFact& f : facts.all) {
    const Object* o = facts.object(f);
    if (o && is_file(*facts.store, *o)) continue;
    if (o && (weights_only || !is_of_optimizer(f))) out.left_out++;
    if (is_of_optimizer(f)) continue;
    std::string front = name_of(f);
    front.resize(std::min(front.find('.'), front.size()));
    if (std::ranges::find(names, front) == names.end()) names.push_back(std::move(front));
  }
  if (std::string lost = lost_options(facts); !lost.empty() && !weights_only) out.notes.warn(lost);
  out.left_out += facts.hidden_objects;
  std::ranges::copy(facts.hidden, std::back_inserter(names));
  if (!names.empty()) out.notes.note(cat("Megatron-FSDP v2 has no place for ", listed(names)));
}

void put(const Item& item, const Store* source, i32 rank, DcpLayout& layout,
         std::vector<CarriedRecord>& records) {
  if (item.stored) return add_carried(*source, *item.stored, layout, item.name, rank, records);
  if (!item.value) return layout.add_object(item.name, rank, item.pickle);
  const u32 bits = std::bit_cast<u32>(*item.value);
  std::array<u8, 4> bytes;
  for (std::size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<u8>(bits >> (8 * i));
  layout.add_value(item.name, rank, DType::kF32, bytes);
}

}  // namespace

SharedObjects group_list(const RunFacts& facts, const KeyTable& keys, const Companions& states,
                         const SavedPlaces& places, bool weights_only, WrittenFacts& out) {
  note_left_out(facts, weights_only, out);
  std::vector<Item> items;
  if (!weights_only) items = kept_list(facts, places);
  if (!weights_only && items.empty()) items = made_list(facts, keys, states, out.notes);
  const i64 count = std::ssize(items);
  return {count,
          [items = std::move(items), source = facts.store, &out](i64 index, i32 rank, DcpLayout& layout) {
            put(items[index], source, rank, layout, out.records);
          }};
}

}  // namespace mckpt::impl
