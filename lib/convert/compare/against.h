// The parts of compare(): one function for each pair of what the two sides can be.
//
//   tested                 source                 function
//   a checkpoint           a Hugging Face dir     against_model        with the import of the source
//   a Hugging Face dir     a checkpoint           against_export       with the export of the source
//   two checkpoints                               against_checkpoint   by name, perhaps translated first
//   two stores of the same names                  against_names        tensor by tensor
#pragma once

#include <functional>
#include <set>
#include <string>

#include "convert/compare/compare.h"
#include "convert/compare/comparison.h"
#include "convert/source/checkpoint.h"

namespace mckpt::impl {

// What all functions get: the options, and the places for findings. References only; it lives during one
// compare().
struct Comparing {
  const CompareOptions& options;
  Comparison& comparison;
  Observer& observer;
  VerifyReport& report;
  std::vector<Oddities>& oddities;

  void note_oddities(const CheckpointModel& opened) const {
    oddities.push_back({opened.store().root(), opened.oddities()});
  }
};

// All of these return whether everything was compared and is equal.

// A checkpoint against the Hugging Face model that it was made of, in the folder `source`.
bool against_model(std::unique_ptr<Store> tested, const std::string& source, const Comparing& c);
// A Hugging Face folder, at `path`, against the checkpoint that it was exported from.
bool against_export(const Store& tested, const std::string& path, std::unique_ptr<Store> source,
                    const Comparing& c);
// Two checkpoints of one model.
bool against_checkpoint(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const Comparing& c);

using TensorNames = std::set<std::string, std::less<>>;
// Two stores whose tensors have the same names, whatever pieces they are stored in. `fused`: tensors that are
// stored rank after rank by different numbers of ranks; null: there are none. `dropped` is called if the
// source has tensors that the tested side lacks, and returns those that every conversion drops.
bool against_names(const Store& tested, const Store& source, const FusedTables* fused, const Comparing& c,
                   const std::function<TensorNames()>& dropped = {});

}  // namespace mckpt::impl
