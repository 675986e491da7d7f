// The flags that describe a training run of Megatron: its grid, how Megatron-FSDP shards the model, and the types of
// values. Every command that has such flags declares them here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/fsdp/grid.h"

namespace mckpt::impl {

enum class DType : u8;
class CommandLine;
class FrozenNames;
struct FsdpSetup;
struct LayerPattern;
struct PipelineOptions;
struct Spelling;
struct ValueOptions;

// bf16, fp16 or fp32; throws kUsage that names the option. `also`: what the option takes besides, "keep".
DType parameter_type(std::string_view name, std::string_view option, std::string_view also = "");

// --tp, --cp, --ep, --etp, --pp, --dp, --hsdp, --hsdp-outer.
class GridFlags {
 public:
  explicit GridFlags(bool stages = false) : stages_(stages) {}  // `stages`: --pp is a common option
  // `dp`: the data-parallel size without --dp, for the help.
  void declare(CommandLine& line, const std::string& dp = "the smallest that works");
  // All but --hsdp and --hsdp-outer, of runs without Megatron-FSDP.
  void declare_ranks(CommandLine& line, const std::string& dp = "the smallest that works");
  // The checked grid, with at most as many ranks as mckpt plans for; without --dp, with the smallest dp that works.
  Grid grid() const;
  // "dp=2 chosen, the smallest that works: 4 ranks in all", or "".
  std::string note() const;
  // Grid and note of a command in whose ranks the training runs: without --dp, it follows from their number.
  Grid grid_of(i64 ranks) const;
  std::string note_of(i64 ranks) const;
  // What was given, unchecked: for commands that know other defaults (sizes().dp is not set) or need no grid.
  Grid sizes() const;
  std::optional<i64> dp() const { return dp_; }
  i64 hsdp() const { return sizes_.hsdp; }
  HsdpOuter outer() const { return outer_ == "shard" ? HsdpOuter::kShard : HsdpOuter::kReplicate; }

 private:
  bool stages_;
  Grid sizes_;
  std::optional<i64> dp_;
  std::string outer_ = "replicate";
};

// --vpp, --first-stage-layers, --last-stage-layers: how a pipeline's stages divide the layers.
class PipelineFlags {
 public:
  void declare(CommandLine& line);
  PipelineOptions options() const;

 private:
  i64 chunks_ = 1;
  std::optional<i64> first_, last_;
};

// --hybrid-pattern: the pattern of a hybrid training run whose layers are in groups.
class PatternFlag {
 public:
  void declare(CommandLine& line);
  // None if it is not given. Throws what parse_pattern() throws.
  std::optional<LayerPattern> pattern() const;
  std::string text() const { return text_.value_or(""); }

 private:
  std::optional<std::string> text_;
};

// --engine, --strategy, --fsdp-unit, --fsdp-units-for, --freeze, --bucket-size.
class FsdpFlags {
 public:
  void declare(CommandLine& line);
  FsdpSetup setup(const Grid& grid) const;
  // The parameters that --freeze names.
  FrozenNames frozen() const;

 private:
  std::string engine_ = "v1", strategy_ = "optim_grads_params";
  std::vector<std::string> units_, frozen_;
  std::string units_for_ = "full";
  std::optional<i64> bucket_;
};

// --spelling: the names of parameters that versions and specs of Megatron name differently.
class SpellingFlags {
 public:
  void declare(CommandLine& line, bool rank_files = false);  // `rank_files`: old names of MTP's layers, too
  Spelling spelling() const;  // throws kUsage for a word that is none

 private:
  std::vector<std::string> words_;
};

// --vocab-size, --params-dtype, --dtype, --dtype-rule; a command may declare some of them only.
class ValueFlags {
 public:
  // `params_dtype`: the default of --params-dtype.
  explicit ValueFlags(std::string params_dtype) : params_dtype_(std::move(params_dtype)) {}
  void declare(CommandLine& line);
  void declare_vocab(CommandLine& line);   // only --vocab-size
  void declare_params(CommandLine& line);  // only --params-dtype
  void declare_rules(CommandLine& line);   // only --dtype-rule
  // Throws kUsage for a value that is not one of the choices.
  ValueOptions options() const;

 private:
  std::string vocab_ = "auto", params_dtype_, dtype_ = "keep";
  std::optional<i64> divisor_;
  std::vector<std::string> rules_;  // GLOB=TYPE
};

}  // namespace mckpt::impl
