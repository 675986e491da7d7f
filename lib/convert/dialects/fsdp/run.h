// A training run under Megatron-FSDP: its grid, its setup, and the types in which it stores parameters.
#pragma once

#include "convert/jobs/stored_types.h"
#include "core/fsdp/grid.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

struct ValueOptions;

// Changes the set-up and the types to what the run saves. Under v2 every parameter is whole, and all
// parameters, frozen ones too, are stored as their fp32 main weights. Under v1 nothing changes.
void follow_engine(const FsdpSetup& fsdp, RunSetup& run, StoredTypes& types);

// Throws kUsage for types that the engine does not store: v2 stores every parameter as fp32.
void refuse_other_types(const FsdpSetup& fsdp, const ValueOptions& values);

// A training run: its grid, the set-up of model and FSDP, and its types. `threads` is the number of threads
// that plan.
struct FsdpRun : StoredTypes {
  Grid grid;
  RunSetup run;
  FsdpSetup fsdp;
  int threads = 1;  // that plan
};

}  // namespace mckpt::impl
