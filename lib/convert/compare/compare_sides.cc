#include "convert/compare/compare_sides.h"

#include "convert/compare/comparing.h"
#include "convert/compare/differences/comparison.h"
#include "convert/compare/differences/tensors.h"
#include "convert/compare/object_check.h"
#include "convert/compare/pairing.h"
#include "convert/compare/sides/compare_options.h"
#include "convert/compare/sides/sides.h"
#include "convert/own/saved_states.h"
#include "core/base/error_code.h"
#include "core/base/observer.h"
#include "core/base/text.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

// Notes that are of how the two are compared, and damage that a report names.
void say(const Sides& sides, const Comparing& c, std::vector<Oddities>& oddities) {
  for (const Opened* side : {&sides.source, &sides.tested})
    oddities.insert(oddities.end(), side->damage.begin(), side->damage.end());
  for (const std::string& note : sides.notes) c.observer.note({Note::Kind::kNote, note});
}

// Reports the first state of the optimizer that the tested side has, where a conversion leaves them out.
void report_states(const Store& tested, Comparison& comparison) {
  const SavedStates states(tested);
  for (i64 t = 0; t < tested.tensor_count(); t++) {
    if (!states.has(tested.name(t))) continue;
    comparison.leave_out(
        {.code = Code::kUnequal,
         .tensor = std::string(tested.name(t)),
         .message = "a state of the optimizer is here, which a conversion of the weights only leaves out"},
        {UnlikeTensor::Kind::kOnlyTested, std::string(tested.name(t)), type_and_shape(tested, t)});
    return;
  }
}

// Names the tensors beside the model on one side. Tensors that may be weights, such as an average of the
// model, get a line of their own, which the verdict repeats.
void name_beside_model(const BesideModel& beside, const Comparing& c) {
  for (const std::string& name : beside.names) c.comparison.leave_beside(beside.reason, name);
  std::vector<std::string_view> chosen;
  for (const std::string& name : beside.floats)
    if (c.comparison.chooses(name)) chosen.push_back(name);
  if (chosen.empty()) return;
  const i64 count = std::ssize(chosen);
  c.report.add({.name = "others",
                .count = count,
                .unit = "tensors",
                .note = cat("not compared: ", counted(count, "tensor"),
                            " beside the model that may be weights: ", listed(chosen, 20))},
               {});
}

bool compare_objects_of(const Sides& sides, const Comparing& c) {
  if (!sides.objects_apart) return compare_objects(sides, c);
  if (!sides.objects_apart->empty()) objects_not_compared(*sides.objects_apart, c.report);
  return true;
}

}  // namespace

bool compare_sides(const Sides& sides, const Comparing& c, std::vector<Oddities>& oddities) {
  say(sides, c, oddities);
  if (sides.names_states) report_states(sides.tested_store(), c.comparison);
  bool same = compare_objects_of(sides, c);
  for (const BesideModel& beside : sides.beside) name_beside_model(beside, c);
  const Pairing pairing(sides, c);
  same &= pairing.as_asked();
  if (!c.options.counting.all) {  // which has the types of every tensor, and casts none of the values
    if (!sides.of_items()) note_casts(pairing.casts(), c.observer);
    warn_of_casts(pairing.casts(), c.report);
  }
  c.report.compared_as = sides.compared_as;
  same &= c.comparison.run(pairing.chunks(), c.report);
  if (!sides.of_items() && c.options.counting.when_compared)
    c.options.counting.when_compared(sides.tested_store(), sides.source_store(), c.report);
  return same;
}

std::string counted_others(const VerifyReport& report) {
  i64 count = 0;
  for (const Check& c : report.checks)
    if (c.name == "others") count += c.count;
  return count == 0 ? "" : cat(counted(count, "tensor"), " beside the model ", count == 1 ? "was" : "were");
}

}  // namespace mckpt::impl
