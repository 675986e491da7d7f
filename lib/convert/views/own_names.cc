// Tensors of an optimizer or a scheduler are beside the model. "model." is a section only where every tensor
// of the model has it although the models' own names begin with it as well.
#include "convert/views/own_names.h"

#include <algorithm>

#include "convert/views/piece_store.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

bool is_beside(std::string_view name) {
  return name.starts_with("optimizer") || name.starts_with("optim") || name.starts_with("lr_scheduler");
}

std::string section_of(const Store& store, const std::vector<i64>& model) {
  constexpr std::string_view kSection = "model.";
  bool all = !model.empty(), twice = false;
  for (i64 t : model) {
    std::string_view name = store.name(t);
    all &= name.starts_with(kSection);
    twice |= name.starts_with("model.model.") || name.starts_with("model.lm_head.");
  }
  return all && twice ? std::string(kSection) : "";
}

}  // namespace

OwnNames own_names(std::unique_ptr<Store> store, const OwnNamesOptions&) {
  OwnNames out;
  std::vector<i64> model;
  for (i64 t = 0; t < store->tensor_count(); t++)
    if (is_beside(store->name(t)))
      out.beside.emplace_back(store->name(t));
    else
      model.push_back(t);
  out.section = section_of(*store, model);
  out.convention = "transformers";
  const Store& source = *store;
  auto view = std::make_unique<PieceStore>(std::move(store));
  for (i64 t : model) {
    std::span<const i64> dims = source.dims(t);
    view->add(std::string(source.name(t).substr(out.section.size())), {dims.begin(), dims.end()}, {{t}});
  }
  out.store = std::move(view);
  return out;
}

}  // namespace mckpt::impl
