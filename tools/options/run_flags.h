// The flags that describe a training run of Megatron: its grid, how Megatron-FSDP shards the model, and the
// types of values; for commands that make no conversion. Each class is a struct of lib/options with its
// flags.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "mckpt/run.h"

namespace mckpt::impl {

class CommandLine;
class FrozenNames;
struct FsdpSetup;
struct LayerPattern;
struct Spelling;
struct ValueOptions;

// --tp, --cp, --ep, --etp, --pp, --dp, --hsdp, --hsdp-outer.
class GridFlags {
 public:
  // `dp`: the data-parallel size without --dp, for the help.
  void declare(CommandLine& line, const std::string& dp = "the smallest that works");
  // The checked grid, with at most as many ranks as mckpt plans for; without --dp, with the smallest dp that
  // works.
  Grid grid() const;
  // "dp=2 chosen, the smallest that works: 4 ranks in all", or "".
  std::string note() const;
  // Grid and note of a command in whose ranks the training runs: without --dp, it follows from their number.
  Grid grid_of(i64 ranks) const;
  std::string note_of(i64 ranks) const;
  // The given sizes, unchecked: for commands that know other defaults (sizes().dp is not set) or need no
  // grid.
  Grid sizes() const;
  std::optional<i64> dp() const { return given_.dp; }
  i64 hsdp() const { return given_.hsdp; }
  HsdpOuter outer() const { return sizes().outer; }

 private:
  mckpt::Grid given_;
};

// --hybrid-pattern: the pattern of a hybrid training run whose layers are in groups.
class PatternFlag {
 public:
  void declare(CommandLine& line);
  // None if it is not given. Throws what given_pattern() throws.
  std::optional<LayerPattern> pattern(i64 stages) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// --engine, --strategy, --fsdp-unit, --fsdp-units-for, --freeze, --bucket-size.
class FsdpFlags {
 public:
  void declare(CommandLine& line);
  FsdpSetup setup(const Grid& grid) const;
  // The parameters that --freeze names.
  FrozenNames frozen() const;

 private:
  mckpt::Fsdp given_;
};

// --spelling: the names of parameters that versions and specs of Megatron name differently.
class SpellingFlags {
 public:
  void declare(CommandLine& line);
  // Nothing without the flag. Throws kUsage for a word that is none.
  std::optional<Spelling> spelling() const;

 private:
  std::vector<std::string> words_;
};

// --vocab-size, --params-dtype, --dtype, --dtype-rule; a command may declare some of them only.
class ValueFlags {
 public:
  // `params_dtype`: the default of --params-dtype.
  explicit ValueFlags(std::string params_dtype) { given_.params_dtype = std::move(params_dtype); }
  void declare(CommandLine& line);
  void declare_vocab(CommandLine& line);   // only --vocab-size
  void declare_params(CommandLine& line);  // only --params-dtype
  // Throws kUsage for a value that is not one of the choices.
  ValueOptions options() const;

 private:
  mckpt::Values given_;
};

}  // namespace mckpt::impl
