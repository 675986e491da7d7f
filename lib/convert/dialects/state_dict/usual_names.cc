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

using UsualNames = NameMap<std::string, std::string>;  // by the other name

UsualNames usual_names(const ModelMap& map, RunSetup setup) {
  const Spelling stored = setup.spelling;
  setup.spelling = {};
  UsualNames out;
  for (const ModelParameter& p : map.parameters(Grid{}, Cell{}, setup))
    if (std::optional<Respelt> other = other_name(p.global_name); other && stored.has(other->row))
      out.emplace(std::move(other->name), p.global_name);
  return out;
}

// The parameter may be a part of one: "...conv1d.weight.x".
std::string usual(const std::string& name, const UsualNames& names) {
  if (auto at = names.find(name); at != names.end()) return at->second;
  const std::size_t dot = name.rfind('.');
  auto at = dot == name.npos ? names.end() : names.find(name.substr(0, dot));
  return at == names.end() ? name : cat(at->second, std::string_view(name).substr(dot));
}

std::string renamed(std::string_view key, const UsualNames& names) {
  const KeySection section = key_section(DcpDialect::kFsdpDtensor, key);
  return cat(section.front, usual(std::string(section.name), names), section.tail);
}

}  // namespace

std::unique_ptr<PieceStore> with_usual_names(std::unique_ptr<Store> store, const ModelMap& map,
                                             const RunSetup& setup, RunFacts* facts) {
  const UsualNames names = usual_names(map, setup);
  auto out = std::make_unique<PieceStore>(std::move(store));
  const Store& source = out->source();
  for (i64 t = 0; t < source.tensor_count(); t++) {
    std::span<const i64> dims = source.dims(t);
    out->add(renamed(source.name(t), names), {dims.begin(), dims.end()}, {{t}});
  }
  for (i64 o = 0; o < std::ssize(source.objects()); o++)
    out->add_object(renamed(source.objects()[o].name, names), o);
  for (std::size_t i = 0; facts && i < facts->all.size(); i++)
    facts->all[i].parameter = usual(facts->all[i].parameter, names);
  return out;
}

}  // namespace mckpt::impl
