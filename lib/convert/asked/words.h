// The words of options (lib/options) and the values of the engine: "bf16" is DType::kBF16, "auto" is a kind
// of ParamsDtype. Every function that reads a word throws kUsage with the setting, the words that are known,
// and the word that was found.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/compare/checks/types.h"
#include "convert/keys/name_rules.h"
#include "convert/keys/value_options.h"
#include "convert/open/options.h"
#include "convert/plan/targets/hf.h"
#include "convert/plan/targets/relayer.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/spellings.h"
#include "io/choice/tensor_choice.h"
#include "io/file/open_options.h"
#include "mappings/fsdp/setup.h"
#include "mckpt/plans.h"

namespace mckpt::impl {

enum class LayerStacks : u8;

// bf16, fp16 or fp32, also as torch spells them: bfloat16. `others`: words that the setting can have too, for
// the error.
DType value_type(std::string_view word, std::string_view setting, std::string_view others = "");
// The type that `dtype` names; nothing for "keep".
std::optional<DType> value_type_or_kept(std::string_view word);
// The types that `dtype` and `dtype_rule` name, where "keep" is as stored.
ExportTypes stored_types(std::string_view dtype,
                         const std::vector<std::pair<std::string, std::string>>& rules);
DtypeRules dtype_rules(const std::vector<std::pair<std::string, std::string>>& rules);
ParamsDtype params_dtype_of(std::string_view word);
// The types that a conversion was asked for: any, keep, bf16, fp16 or fp32.
TypeClaim type_claim(std::string_view dtype, const std::vector<std::pair<std::string, std::string>>& rules);
VocabChoice vocab_choice(std::string_view word);
ValueOptions value_options(const mckpt::Values& values);
// The tensors that `names` and `regex` choose. Throws kUsage for `regex` without `names`.
TensorChoice choice_of(const std::string& names, bool regex);

// How torch_dist stores layers: auto, stacked or indexed.
LayerStacks layer_stacks(std::string_view word);
// The way of a Relayer.
LayerWay layer_way(std::string_view word);
RelayerOptions::GroupNames group_names(std::string_view word);
RelayerOptions::GptLayers gpt_layers(std::string_view word);
NormPlace norm_place(std::string_view word);

// The grid with its data-parallel size, checked.
Grid grid_of(const mckpt::Grid& grid);
// As it was given, unchecked and without dp: for commands that know other defaults, or need no grid.
Grid sizes_of(const mckpt::Grid& grid);
// "dp=2 chosen, the smallest that works: 4 ranks in all", or "": the size was given.
std::string chosen_dp_note(const mckpt::Grid& grid);
// Whether a checkpoint that was packed with weights in 8 bits stays so: `fp8_recipe` is the word for it.
bool keeps_recipe(const mckpt::Fsdp& fsdp);
FsdpSetup setup_of(const mckpt::Fsdp& fsdp, const Grid& grid);
FrozenNames frozen_of(const mckpt::Fsdp& fsdp);
Spelling spelling_in(const std::vector<std::string>& words, bool rank_files = false);
// The same; nothing where no word is given, which is not the word `usual`.
std::optional<Spelling> given_spelling(const std::vector<std::string>& words, bool rank_files = false);
// "": none is named. Throws kUsage for an empty name.
std::string model_dict_of(const std::optional<std::string>& dict);

// The engine's options for files that are opened now, with stamps of their own: what changes while it is read
// is an error. `paths`: what will be opened, as the user named it. Throws kUsage for the base of an adapter
// if none is one. `helper_folders`: where helper programs are looked for first.
struct Opening {
  std::vector<std::string> paths;
  std::vector<std::string> helper_folders{};
};
OpenOptions opening_of(const mckpt::OpenOptions& options, const Opening& what);
HfModelOptions model_options(const ModelOptions& options, const Opening& what);
std::vector<Code> accepted_codes(const std::vector<std::string>& names);
CheckpointOptions checkpoint_options(const SourceOptions& options, const Opening& what);

}  // namespace mckpt::impl
