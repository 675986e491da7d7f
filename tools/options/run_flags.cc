// Declared by the fields of the structs; words become values of the engine in convert/asked.
#include "tools/options/run_flags.h"

#include "convert/asked/words.h"
#include "core/base/text.h"
#include "core/fsdp/complete_grid.h"
#include "core/hybrid/pattern.h"
#include "mappings/model/stages.h"
#include "options/fields.h"
#include "tools/options/field_flags.h"

namespace mckpt::impl {

void GridFlags::declare(CommandLine& line, const std::string& dp) {
  FieldFlags flags(line);
  fields(given_, flags, {.dp = dp});
}

Grid GridFlags::sizes() const { return sizes_of(given_); }

Grid GridFlags::grid() const { return mckpt::impl::grid_of(given_); }

Grid GridFlags::grid_of(i64 ranks) const { return grid_of_ranks(sizes(), dp(), ranks); }

// One rank alone needs no note.
std::string GridFlags::note_of(i64 ranks) const {
  if (dp() || ranks == 1) return "";
  return cat("dp=", grid_of(ranks).dp, " chosen, from the ", counted(ranks, "rank"), " of the job");
}

std::string GridFlags::note() const { return chosen_dp_note(given_); }

void PatternFlag::declare(CommandLine& line) {
  FieldFlags flags(line);
  hybrid_pattern_field(text_, flags);
}

std::optional<LayerPattern> PatternFlag::pattern(i64 stages) const { return given_pattern(text_, stages); }

void FsdpFlags::declare(CommandLine& line) {
  FieldFlags flags(line);
  fields(given_, flags);
}

FsdpSetup FsdpFlags::setup(const Grid& grid) const { return setup_of(given_, grid); }

FrozenNames FsdpFlags::frozen() const { return frozen_of(given_); }

void SpellingFlags::declare(CommandLine& line) {
  FieldFlags flags(line);
  spelling_field(words_, flags);
}

std::optional<Spelling> SpellingFlags::spelling() const { return given_spelling(words_); }

void ValueFlags::declare(CommandLine& line) {
  FieldFlags flags(line);
  fields(given_, flags);
}

void ValueFlags::declare_vocab(CommandLine& line) {
  FieldFlags flags(line);
  vocab_fields(given_.vocab_size, flags);
}

void ValueFlags::declare_params(CommandLine& line) {
  FieldFlags flags(line);
  params_dtype_field(given_.params_dtype, flags);
}

// Options that were not declared keep their defaults.
ValueOptions ValueFlags::options() const { return value_options(given_); }

}  // namespace mckpt::impl
