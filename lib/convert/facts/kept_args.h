// The args of a source in a result on another grid and in another format: every field of the run that wrote
// the source stays, except for those that the conversion changes.
//
//   source   Namespace(num_layers=28, tensor_model_parallel_size=2, ckpt_format="fsdp_dtensor", seed=7, ...)
//   result   Namespace(num_layers=28, tensor_model_parallel_size=4, ckpt_format="torch", seed=7, rank=0, ...)
//
// The changed fields are the grid and the pipeline, the format, whether there are states of the optimizer and
// random states, the iteration and what a run counts, the rows of the vocabulary, the type of the parameters,
// the modules that have such names, and numbers of layers, MTP layers and experts that are not the model's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "convert/facts/args_patch.h"
#include "core/base/int.h"

namespace mckpt::impl {

enum class ArgsFormat : u8;
class ModelMap;
class Notes;
struct Grid;
struct LayerPattern;
struct PipelineOptions;

// Whose modules have norms with the names of the result (core/hybrid/spellings.h).
enum class NormNames : u8 { kOfAll, kOfTransformerEngine, kOfMegatron };

// The facts of the result that the args have. All references outlive the struct.
struct ArgsOfResult {
  const ModelMap& map;
  const Grid& grid;
  const PipelineOptions& pipeline;
  ArgsFormat format;  // kTorchDist or kTorch
  bool has_states = false;
  i64 vocab_rows = 0, source_rows = 0;
  std::optional<DType> params_dtype{};  // nothing: the source's
  std::optional<i64> iteration{};       // nothing: the source's
  bool from_the_start = false;          // the run that loads the result has seen no sample
  NormNames norms = NormNames::kOfAll;
  const LayerPattern* pattern =
      nullptr;  // of a hybrid model; null: the model's own, without groups and pipes
};

// `args`: a pickle of protocol 2. Adds a warning for each field that cannot be changed.
std::string kept_args(std::string args, const ArgsOfResult& result, Notes& notes);
// Whether a field is one that such args have from the source and that follows from the result alone, such as
// from the types of its tensors, beside the fields of is_grid_arg().
bool is_reset_arg(std::string_view name);
// Gives the fields of the layers the values of the model, with this pattern or, null, with its own.
void put_layers(std::string& args, const ModelMap& map, const LayerPattern* pattern, Notes& notes);
// Gives the field of the modules, if the args have it, the value that goes with such norms.
void put_modules(std::string& args, NormNames norms, Notes& notes);
// Gives one field another value, or adds it; a warning if that is not possible.
void put_arg(std::string& args, std::string_view name, const ArgValue& value, Notes& notes);

}  // namespace mckpt::impl
