// Tensors, states and objects are renamed alike. The table of names is made of the model's parameters,
// because `input_layernorm` alone does not say with what it could be fused.
#include "convert/dialects/state_dict/usual_names.h"

#include "convert/facts/run_facts.h"
#include "convert/views/piece_store.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/spellings.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/store/store.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {
namespace {

using NewNames = NameMap<std::string, std::string>;  // by the stored name

NewNames new_names(const ModelMap& map, RunSetup setup, const Spelling& wanted) {
  const Spelling stored = setup.spelling;
  setup.spelling = {};
  NewNames out;
  for (const ModelParameter& p : map.parameters(Grid{}, Cell{}, setup)) {
    std::optional<Respelt> other = other_name(p.global_name);
    if (!other || stored.has(other->row) == wanted.has(other->row)) continue;
    const bool from_other = stored.has(other->row);
    out.emplace(from_other ? other->name : p.global_name, from_other ? p.global_name : other->name);
  }
  return out;
}

// The parameter may be a part of one: "...conv1d.weight.x".
std::string new_name(const std::string& name, const NewNames& names) {
  if (auto at = names.find(name); at != names.end()) return at->second;
  const std::size_t dot = name.rfind('.');
  auto at = dot == name.npos ? names.end() : names.find(name.substr(0, dot));
  return at == names.end() ? name : cat(at->second, std::string_view(name).substr(dot));
}

std::string renamed(std::string_view key, const NewNames& names) {
  const KeySection section = key_section(DcpDialect::kFsdpDtensor, key);
  return cat(section.front, new_name(std::string(section.name), names), section.tail);
}

}  // namespace

std::unique_ptr<Store> with_spelling(std::unique_ptr<Store> store, const ModelMap& map, const RunSetup& setup,
                                     const Spelling& wanted, RunFacts* facts) {
  const NewNames names = new_names(map, setup, wanted);
  if (names.empty()) return store;
  auto out = std::make_unique<PieceStore>(std::move(store));
  const Store& source = out->source();
  for (i64 t = 0; t < source.tensor_count(); t++) {
    std::span<const i64> dims = source.dims(t);
    out->add(renamed(source.name(t), names), {dims.begin(), dims.end()}, {{t}});
  }
  for (i64 o = 0; o < std::ssize(source.objects()); o++)
    out->add_object(renamed(source.objects()[o].name, names), o);
  for (std::size_t i = 0; facts && i < facts->all.size(); i++)
    facts->all[i].parameter = new_name(facts->all[i].parameter, names);
  return out;
}

}  // namespace mckpt::impl
