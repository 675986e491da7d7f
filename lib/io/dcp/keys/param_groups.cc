// Fields are gathered by parameter and folded by their text. Names of the running model are the names of the
// entries: a parameter that is stored in pieces has one entry.
#include "io/dcp/keys/param_groups.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/base/text.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/keys/without_states.h"
#include "io/pickle/render.h"
#include "io/pickle/value.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

using Fields = std::map<std::string, std::string>;

// The groups gathered from one checkpoint; run() is called once.
class Groups {
 public:
  explicit Groups(const Store& store) : store_(store) {}

  OptimizerGroups run() {
    dialect_ = store_.driver().dialect.value_or(DcpDialect::kPlain);
    if (dialect_ == DcpDialect::kFsdpDtensor)
      gather_entries();
    else if (dialect_ == DcpDialect::kStateDict)
      gather_lists();
    else
      return {};
    if (fields_.empty()) return {};
    fold();
    compare_with_model();
    return std::move(out_);
  }

 private:
  // The value of an object on one line; "" and a line in `unreadable` if it cannot be read.
  std::string value_of(i64 object) {
    try {
      if (auto value = store_.object(object)) return pickle_line(*value, std::size_t{1} << 20);
      out_.unreadable.push_back(cat(store_.objects()[object].name, ": it has no value"));
    } catch (const Error& e) {
      out_.unreadable.push_back(unreadable(object, e));
    }
    return "";
  }

  std::string unreadable(i64 object, const Error& why) const {
    return cat(store_.objects()[object].name, ": ", code_name(why.code()), ": ", why.message());
  }

  void gather_entries() {
    out_.section = kGroupMetaSection.substr(0, kGroupMetaSection.size() - 1);
    for (i64 i = 0; i < std::ssize(store_.objects()); i++) {
      DcpKey key = split_key(dialect_, store_.objects()[i].name);
      if (key.section == DcpKey::Section::kGroupMeta)
        fields_[std::string(key.parameter)][std::string(key.field)] = value_of(i);
    }
  }

  // A group that torch flattened has no list: its name is the name of its parameter.
  void gather_lists() {
    out_.section = kGroupListSection.substr(0, kGroupListSection.size() - 1);
    std::map<std::string, Fields, std::less<>> by_group;
    for (i64 i = 0; i < std::ssize(store_.objects()); i++)
      if (auto at = group_field(store_.objects()[i].name); at && at->field != "params")
        by_group[std::string(at->group)][std::string(at->field)] = value_of(i);
    auto note = [&](i64 object, const Error& why) { out_.unreadable.push_back(unreadable(object, why)); };
    for (const ListedGroup& group : listed_groups(store_, note))
      for (const std::string& name : group.names) fields_[name] = by_group[group.group];
    for (i64 t = 0; t < store_.tensor_count(); t++) {
      DcpKey key = split_key(dialect_, store_.name(t));
      auto group = by_group.find(key.parameter);
      if (key.section == DcpKey::Section::kModel && group != by_group.end())
        fields_.emplace(key.parameter, group->second);
    }
  }

  void fold() {
    std::map<Fields, OptimizerGroup> by_fields;
    for (const auto& [name, fields] : fields_) {
      by_fields[fields].parameters.push_back(name);
      auto parallel = fields.find("is_expert_parallel");
      bool expert = name.find(".experts.") != name.npos;
      out_.experts_not_marked += expert && parallel != fields.end() && parallel->second == "False";
    }
    out_.parameters = std::ssize(fields_);
    out_.common = by_fields.begin()->first;
    for (const auto& other : by_fields)
      std::erase_if(out_.common, [&](const auto& field) {
        auto same = other.first.find(field.first);
        return same == other.first.end() || same->second != field.second;
      });
    for (auto& [fields, group] : by_fields) {
      for (const auto& f : fields)
        if (!out_.common.contains(f.first)) group.fields.insert(f);
      std::ranges::sort(group.parameters, natural_less);
      out_.groups.push_back(std::move(group));
    }
    std::ranges::stable_sort(out_.groups, [](const OptimizerGroup& a, const OptimizerGroup& b) {
      if (a.parameters.size() != b.parameters.size()) return a.parameters.size() > b.parameters.size();
      return natural_less(a.parameters[0], b.parameters[0]);
    });
  }

  void compare_with_model() {
    std::set<std::string> in_model;
    for (i64 t = 0; t < store_.tensor_count(); t++) {
      DcpKey key = split_key(dialect_, store_.name(t));
      if (key.section != DcpKey::Section::kModel || is_without_states(key.parameter)) continue;
      std::string own(key.parameter), whole = parameter_of_piece(key.parameter);
      in_model.insert({own, whole});
      if (!fields_.contains(own) && !fields_.contains(whole)) out_.without.push_back(own);
    }
    for (const auto& [name, fields] : fields_)
      if (!in_model.empty() && !in_model.contains(name)) out_.unknown.push_back(name);
    std::ranges::sort(out_.without, natural_less);
    std::ranges::sort(out_.unknown, natural_less);
  }

  const Store& store_;
  DcpDialect dialect_ = DcpDialect::kPlain;
  std::map<std::string, Fields> fields_;  // by parameter
  OptimizerGroups out_;
};

}  // namespace

std::vector<ListedGroup> listed_groups(const Store& store,
                                       const std::function<void(i64, const Error&)>& unreadable) {
  std::vector<ListedGroup> out;
  for (i64 o = 0; o < std::ssize(store.objects()); o++) {
    std::optional<GroupField> at = group_field(store.objects()[o].name);
    if (!at || at->field != "params") continue;
    try {
      std::shared_ptr<const PickleValue> list = store.object(o);
      if (!list) continue;
      ListedGroup group{std::string(at->group), {}, {}};
      for (PickleValue p : list->items())
        if (p.is(PickleValue::Kind::kText))
          group.names.emplace_back(p.text());
        else if (p.is_int())
          group.numbers.push_back(p.as_int());
        else
          group.others++;
      out.push_back(std::move(group));
    } catch (const Error& e) {
      if (!unreadable) throw;
      unreadable(o, e);
    }
  }
  return out;
}

OptimizerGroups optimizer_groups(const Store& store) { return Groups(store).run(); }

}  // namespace mckpt::impl
