// The facts of a run as the objects of an fsdp_dtensor checkpoint, each fact one:
//
//   fact                                    result
//   args, iteration                         args, iteration with the new grid and number
//   options, random states, ...             as they are; an object is copied without being read
//   none of a format without them           args made of the model's config, a version, an iteration
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convert/facts/kept_args.h"
#include "convert/facts/run_facts.h"
#include "core/base/int.h"

namespace mckpt::impl {

class DcpLayout;
class ModelMap;
struct DcpName;
struct FsdpRun;
struct Grid;
struct LayerPattern;
struct MegatronArgs;
struct RunEntries;

// The result, as far as the writer needs it beside the facts. All references outlive the struct.
struct FsdpResult {
  const ModelMap& map;
  const Grid& grid;
  i64 vocab_rows = 0, source_rows = 0;
  std::optional<i64> iteration{};  // the new one, if it changes
  bool weights_only = false;       // facts of the optimizer are left out
  // The source is of another format. Its args may lack the fields by which fused tensors are read, and give a
  // grid with pipeline stages; what Megatron does not load a checkpoint without is added.
  bool other_format = false;
  const LayerPattern* pattern = nullptr;  // of a hybrid model, where it has groups or had pipes
  const MegatronArgs* made = nullptr;     // args where the source has none; null: the model is not known
  i64 made_iteration = 0;                 // the number of a source that records none
  NormNames norms =
      NormNames::kOfAll;  // as the result names them, where that may be otherwise than in the source
};

// The facts of the result. Objects that it does not have are counted in `left_out`.
RunFacts facts_for_fsdp(RunFacts facts, const FsdpResult& result, WrittenFacts& left_out);

// Adds the objects to the file of rank 0, the first one of each name; returns those that are copied. `named`:
// the place of a source's object in the nested dict that was saved; empty: as the sections of Megatron say.
// pre: all chunks of that file are in the layout.
std::vector<CarriedRecord> write_fsdp_facts(const RunFacts& facts, DcpLayout& layout,
                                            const std::function<DcpName(const std::string&)>& named = {});

// The args of a run under Megatron-FSDP, as far as the model gives them.
MegatronArgs fsdp_args(const ModelMap& map, const RunEntries& entries, const FsdpRun& run, i64 iteration = 0,
                       bool has_states = false);

}  // namespace mckpt::impl
