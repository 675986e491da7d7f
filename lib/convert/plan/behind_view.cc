// Which tensors of the proof's source a view computes.
#include "convert/plan/behind_view.h"

#include "convert/plan/conversion.h"
#include "convert/plan/source_identity.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "hf/adapter/adapted_store.h"
#include "hf/quantized/dequantized_store.h"
#include "hf/quantized/value_faults.h"
#include "io/output/plan_identity.h"

namespace mckpt::impl {
namespace {

void note_adapted(Planned& conversion, const AdaptedStore& view) {
  conversion.merged = &view;
  NameSet<std::string_view> names;
  for (i64 t = 0; t < view.tensor_count(); t++)
    if (view.adapted(t)) names.insert(view.name(t));
  ProofInput& proof = conversion.proof;
  proof.adapted.clear();
  for (i64 t = 0; t < proof.source.count; t++)
    if (names.contains(proof.source.name(t))) proof.adapted.push_back(t);
}

}  // namespace

void note_view(Planned& conversion, const Store& store) {
  if (const AdaptedStore* adapted = adapted_view(store)) return note_adapted(conversion, *adapted);
  const DequantizedStore* view = dequantized_view(store);
  if (!view) return;
  const QuantizedModel& model = view->model();
  NameSet<std::string_view> names;
  for (const QuantizedTensor& q : model.tensors) names.insert(q.name);
  conversion.behind =
      BehindView{view->source().tensor_count(), std::ssize(model.of_activations), &view->faults()};
  ProofInput& proof = conversion.proof;
  proof.dequantized.clear();
  for (i64 t = 0; t < proof.source.count; t++)
    if (names.contains(proof.source.name(t))) proof.dequantized.push_back(t);
}

void add_losses(const Conversion& conversion, LostValues& lost) {
  if (conversion.behind && conversion.behind->faults) conversion.behind->faults->add_losses(lost);
  if (conversion.merged) conversion.merged->add_losses(lost);
}

// The identity of an export comes from the files that its store lists, which are the base's.
void add_adapter(Conversion& conversion, const AdaptedStore& view) {
  conversion.sources.push_back(view.folder());
  constexpr std::string_view kAdapterFiles = "the files of the adapter";
  const SourceIdentity files = source_identity(view);
  std::string own = PlanIdentity("adapter", MCKPT_VERSION)
                        .add(kAdapterFiles, files.files)
                        .add_times(kAdapterFiles, files.times)
                        .text();
  conversion.identity += own.substr(own.find('\n') + 1);
  note_view(conversion, view);
  conversion.details.note(cat("adapter ", view.text()));
  for (const std::string& text : view.notes()) conversion.notes.note(text);
}

}  // namespace mckpt::impl
