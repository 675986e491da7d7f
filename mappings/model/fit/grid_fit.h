// Checks that a model divides over a grid as a whole: its layers over pipeline stages, its experts over
// ranks, and the heads of its recurrent mixers over the ranks that share a sequence. (Rules check single
// parameters.)
#pragma once

#include <string>

namespace mckpt::impl {

struct Grid;
struct ModelConfig;

// Throws kGridMisfit. pre: the grid passed check_grid().
void refuse_misfit(const ModelConfig& model, const Grid& grid);
// Throws kGridMisfit for a model that is of one pipeline stage, whatever layers each stage would have.
void refuse_stages(const ModelConfig& model, const Grid& grid);

// The note about sizes that divide nothing: an expert-parallel size for a model without experts; "".
std::string idle_sizes_note(const ModelConfig& model, const Grid& grid);

}  // namespace mckpt::impl
