// The flags that describe a Megatron run: its grid, how Megatron-FSDP shards it, and what becomes of values.
// The same for every command that has them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mappings/fsdp/layout.h"
#include "tools/options/command_line.h"

namespace mckpt {

// bf16, fp16 or fp32; throws kUsage that names the option.
DType parameter_type(std::string_view name, std::string_view option);

class GridFlags {
 public:
  void declare(CommandLine& line);
  // The checked grid, of no more ranks than there may be. Where --dp was not given it is the smallest that
  // works, and note() says so.
  Grid grid() const;
  // "dp=2 chosen, the smallest that works; the world has 4 ranks", or "".
  std::string note() const;

 private:
  Grid sizes_;
  std::optional<i64> dp_;
  std::string outer_ = "replicate";
};

class FsdpFlags {
 public:
  void declare(CommandLine& line);
  FsdpSetup setup(const Grid& grid) const;
  // Takes what --freeze names from the trained parameters.
  void freeze(std::vector<ModelParameter>& parameters) const;
  bool names_frozen() const { return !frozen_.empty(); }
  // Throws kNoSuchTensor for a glob of --freeze that none of the model's parameters matches.
  void refuse_unmatched(const std::vector<ModelParameter>& parameters) const;

 private:
  std::string strategy_ = "optim_grads_params";
  std::vector<std::string> units_, frozen_;
  std::string units_for_ = "full";
  std::optional<i64> bucket_;
};

// --dtype-rule: the types of tensors by their names.
class DtypeRules {
 public:
  // pre: GLOB=TYPE; throws kUsage for others.
  void add(std::string_view rule);
  bool empty() const { return rules_.empty(); }
  // What the last rule that matches says; nothing where none does.
  std::optional<DType> of(std::string_view name) const;
  // Throws kNoSuchTensor for a rule that matches none of the names.
  void refuse_unmatched(i64 names, const std::function<std::string_view(i64)>& name) const;

 private:
  struct Rule {
    std::string glob;
    DType type;
  };
  std::vector<Rule> rules_;
};

class ValueFlags {
 public:
  // `params_dtype`: what --params-dtype is by default.
  explicit ValueFlags(std::string params_dtype) : params_dtype_(std::move(params_dtype)) {}
  void declare(CommandLine& line);
  void declare_vocab(CommandLine& line);   // only --vocab-size
  void declare_params(CommandLine& line);  // only --params-dtype

  VocabChoice vocab() const;
  // The type of parameters at run time; none: each keeps its source's.
  std::optional<DType> params_dtype(const ModelConfig& model) const;
  // The type of what is listed or written; none: as it is.
  std::optional<DType> dtype() const;
  void declare_rules(CommandLine& line);
  // What --dtype-rule says, read once. Throws kUsage.
  DtypeRules dtype_rules() const;

 private:
  std::string vocab_ = "keep", params_dtype_, dtype_ = "keep";
  std::vector<std::string> rules_;  // GLOB=TYPE
};

}  // namespace mckpt
