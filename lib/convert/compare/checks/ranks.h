// The check "ranks" of `verify`: whether the files of Megatron's ranks (mp_rank_*) are one model: every rank
// has its parameters in their shapes, and what several ranks have alike is equal. Files of DeepSpeed ZeRO are
// compared when they are opened; here is said whether their order could be checked, and so of other files of
// ranks and of data files of DCP.
//
//   pass  ranks    66 tensors      are one model
//   FAIL  ranks    66 tensors      ranks against each other
//         problem[MC1113]: ...
//   pass  ranks    66 tensors      are one model; order of the ranks: not checked (nothing in the files says it)
//   -     ranks    not compared with each other or with config.json
//
// and of an optimizer whose states are not known to be of which parameters:
//
//   -     optimizer not compared: a distributed optimizer says no names of parameters
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/base/error_code.h"

namespace mckpt::impl {

class Observer;
class Store;
struct VerifyReport;

// Adds the check if the store is a folder of files of ranks and nothing is wrong with the files themselves.
// `assets`: the folder of the model's config.json; none: the one that mckpt put beside the checkpoint.
// `accept`: as in CheckpointOptions. Throws kInterrupted.
void check_ranks(const Store& store, const std::optional<std::string>& assets, std::span<const Code> accept,
                 int threads, Observer& observer, VerifyReport& report);

}  // namespace mckpt::impl
