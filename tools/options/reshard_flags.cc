// The flags that say what `convert reshard` reads.
#include "tools/options/reshard_flags.h"
#include "convert/source/options.h"
// The flags that say what `convert reshard` reads. Three kinds of sources exclude each other in part:
//
//   a checkpoint of a known model              names and packing from --assets, or from the checkpoint
//   the same with --rank-states                states of the optimizer from files of each rank
//   --any-model                                no table: all parameters in one buffer
#include "core/base/error.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {

void ReshardFlags::declare(CommandLine& line) {
  line.flag("--weights-only", weights_only_, "do not copy the states of the optimizer");
  line.option("--rank-states DIR", rank_states_,
              "read the optimizer states from files ..._rank_R.pt, in which each rank of SRC's training run "
              "saved its own pieces");
  line.option("--source-ep N", source_ep_,
              "number of expert-parallel ranks that wrote SRC, if SRC does not say so itself");
  line.option("--source-hsdp N", source_hsdp_,
              "number of HSDP instances that wrote SRC, if SRC does not say so itself");
  line.flag("--any-model", any_model_,
            "accept a model without a table: all parameters are in one buffer, of one tensor-parallel rank");
  line.flag("--keep-names", keep_names_,
            "with --any-model: keep every tensor's own name, also where the names follow a convention that "
            "would be translated to that of fsdp_dtensor");
  checkpoint_.declare(line);
}

// Refuses flags that contradict each other, with the reason.
void ReshardFlags::check() const {
  if (weights_only_ && rank_states_)
    throw Error(Code::kUsage,
                "--rank-states adds optimizer states, --weights-only leaves them out: give only one of them");
  if (!rank_states_ && (source_ep_ || source_hsdp_))
    throw Error(
        Code::kUsage,
        "--source-ep and --source-hsdp describe the run that wrote the files of --rank-states: give it too");
  if (any_model_ && (checkpoint_.options().assets || rank_states_))
    throw Error(Code::kUsage,
                "--any-model is for models without tables: --assets and --rank-states need the tables");
  if (keep_names_ && !any_model_)
    throw Error(Code::kUsage, "--keep-names is for models without tables").help("give --any-model too");
}

ReshardSourceOptions ReshardFlags::options() const {
  check();
  ReshardSourceOptions options{checkpoint_.options(), weights_only_, keep_names_,
                               rank_states_,          source_ep_,    source_hsdp_};
  options.checkpoint.any_model = any_model_;
  return options;
}

}  // namespace mckpt::impl
