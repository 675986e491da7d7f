// Tensors, states and objects are renamed alike. The table of names is made of the model's parameters,
// because `input_layernorm` alone does not say with what it could be fused.
#include "convert/dialects/state_dict/usual_names.h"

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

// The parameter of a key may be a part of one: "...conv1d.weight.x".
std::string renamed(std::string_view key, const UsualNames& names) {
  KeySection section = key_section(DcpDialect::kFsdpDtensor, key);
  std::string name(section.name), part;
  auto at = names.find(name);
  if (std::size_t dot = name.rfind('.'); at == names.end() && dot != name.npos) {
    part = name.substr(dot);
    at = names.find(name.substr(0, dot));
  }
  return at == names.end() ? std::string(key) : cat(section.front, at->second, part, section.tail);
}

}  // namespace

std::unique_ptr<PieceStore> with_usual_names(std::unique_ptr<Store> store, const ModelMap& map,
                                             const RunSetup& setup) {
  const UsualNames names = usual_names(map, setup);
  auto out = std::make_unique<PieceStore>(std::move(store));
  const Store& source = out->source();
  for (i64 t = 0; t < source.tensor_count(); t++) {
    std::span<const i64> dims = source.dims(t);
    out->add(renamed(source.name(t), names), {dims.begin(), dims.end()}, {{t}});
  }
  for (i64 o = 0; o < std::ssize(source.objects()); o++)
    out->add_object(renamed(source.objects()[o].name, names), o);
  for (const PieceStore::Made& made : out->made_by_source())
    out->make_object(renamed(made.name, names), made.pickle);
  return out;
}

}  // namespace mckpt::impl
