// The flags that say what a resharding reads. Three kinds of sources exclude each other in part:
//
//   a checkpoint of a known model              names and packing from --assets, or from the checkpoint
//   the same with --rank-states                states of the optimizer from files of each rank
//   --any-model                                no table: all parameters in one buffer
#include "tools/options/reshard_flags.h"

#include "convert/source/options.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {

void ReshardFlags::declare(CommandLine& line) {
  declare_states(line);
  line.flag("--keep-names", keep_names_,
            "with --any-model: keep every tensor's own name, also where the names follow a convention that "
            "would be translated to that of fsdp_dtensor");
  checkpoint_.declare(line);
}

void ReshardFlags::declare_of_fsdp(CommandLine& line, const std::string& assets) {
  checkpoint_.declare_assets(line, assets);
  declare_states(line);
  checkpoint_.declare_rest(line);
}

void ReshardFlags::declare_of_model(CommandLine& line, const std::string& assets) {
  checkpoint_.declare_assets(line, assets);
  checkpoint_.declare_of_model(line);
}

void ReshardFlags::declare_states(CommandLine& line) {
  line.flag("--weights-only", weights_only_, "do not copy the states of the optimizer").common();
  line.option("--rank-states DIR", rank_states_,
              "read the optimizer states from files ..._rank_R.pt, in which each rank of SRC's training run "
              "saved its own pieces");
  line.option("--source-ep N", source_ep_,
              "number of expert-parallel ranks that wrote SRC, if SRC does not say so itself");
  line.option("--source-hsdp N", source_hsdp_,
              "number of HSDP instances that wrote SRC, if SRC does not say so itself");
  line.flag("--any-model", any_model_,
            "accept a model without a table: all parameters are in one buffer, of one tensor-parallel rank")
      .common();
}

ReshardSourceOptions ReshardFlags::options() const {
  ReshardSourceOptions options{checkpoint_.options(), weights_only_, keep_names_,
                               rank_states_,          source_ep_,    source_hsdp_};
  options.checkpoint.any_model = any_model_;
  refuse_contradictions(options);
  return options;
}

}  // namespace mckpt::impl
