// The words of the interface and the values of the engine: "bf16" is DType::kBF16, "auto" is a kind of
// ParamsDtype. Every function that reads a word throws kUsage with the setting, the words that are known, and
// the word that was found.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/compare/checks/types.h"
#include "convert/keys/value_options.h"
#include "convert/plan/export.h"
#include "convert/plan/relayer.h"
#include "convert/source/options.h"
#include "core/base/notes.h"
#include "core/fsdp/grid.h"
#include "io/file/open_options.h"
#include "io/store/finding.h"
#include "mappings/fsdp/setup.h"
#include "mckpt/finding.h"
#include "mckpt/observer.h"
#include "mckpt/plans.h"

namespace mckpt::impl {

enum class LayerStacks : u8;

// Without the blanks with which some notes are lined up on a screen.
mckpt::Note to_public(const Note& note);
std::vector<mckpt::Note> to_public(const Notes& notes);
mckpt::Finding to_public(const Finding& finding);

// bf16, fp16 or fp32, also as torch spells them: bfloat16. `others`: words that the setting can have too, for
// the error.
DType value_type(std::string_view word, std::string_view setting, std::string_view others = "");
// Of `dtype`; nothing for "keep".
std::optional<DType> value_type_or_kept(std::string_view word);
// Of `dtype` and `dtype_rule`, where "keep" is as stored.
ExportTypes stored_types(std::string_view dtype,
                         const std::vector<std::pair<std::string, std::string>>& rules);
DtypeRules dtype_rules(const std::vector<std::pair<std::string, std::string>>& rules);
ParamsDtype params_dtype_of(std::string_view word);
// The types that a conversion was asked for: any, keep, bf16, fp16 or fp32.
TypeClaim type_claim(std::string_view dtype, const std::vector<std::pair<std::string, std::string>>& rules);
VocabChoice vocab_choice(std::string_view word);
ValueOptions value_options(const mckpt::Values& values);

// How torch_dist stores layers: auto, stacked or indexed.
LayerStacks layer_stacks(std::string_view word);

// The grid with its data-parallel size, checked.
Grid grid_of(const mckpt::Grid& grid);
FsdpSetup setup_of(const mckpt::Fsdp& fsdp, const Grid& grid);

// The engine's options for files that are opened now, with stamps of their own: what changes while it is read
// is an error. `paths`: what will be opened, as the user named it. Throws kUsage for the base of an adapter
// if none is one.
using NamedPaths = std::vector<std::string>;
OpenOptions opening_of(const mckpt::OpenOptions& options, const NamedPaths& paths);
HfModelOptions model_options(const ModelOptions& options, const NamedPaths& paths);
std::vector<Code> accepted_codes(const std::vector<std::string>& names);
CheckpointOptions checkpoint_options(const SourceOptions& options, const NamedPaths& paths);

// Everything of a Relayer but the rank.
RelayerOptions relayer_options(const Relayer& what);

}  // namespace mckpt::impl
