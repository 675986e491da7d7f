// compare(): whether a checkpoint contains exactly what converting another one would write. The job that
// converts is carried out, with a comparison in place of the writing, so every rule, cast and cut is the one
// of the conversion:
//
//   open_values(both) --> open_sides() --> Pairing: plan(source -> layout of the tested side) --> Comparison
//
// Both sides are read once, and once more only where they differ.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convert/compare/sides/compare_options.h"
#include "io/store/soundness.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

class Observer;
class Store;

// The outcome. `equal` is true if everything was compared and is equal.
struct Compared {
  VerifyReport report{};
  bool equal = false;
  std::vector<Oddities> oddities{};  // of either side
};

// The part of a path that was opened: one of several checkpoints of a folder, or where a tracker file leads.
// For an adapter it is the path; its store is the base's.
std::string opened_root(const Store& store, const std::string& path);

// A path, and what open_store() returned for it.
struct OpenPath {
  std::string path;
  std::unique_ptr<Store> store;
};

// The report has the checks "manifest", "assets", "objects" and the checks of Comparison, "types" if the
// caller claims any, and "casts" if equal tensors are stored in a type that loses values of the source.
// Throws what opening a side as a model throws, damage of either side that is not about single records, and
// kUnaccounted if a checkpoint lacks parameters of the model, kNoSuchTensor if `choice` chooses nothing.
Compared compare(OpenPath tested, OpenPath source, const CompareOptions& options, Observer& observer);

}  // namespace mckpt::impl
