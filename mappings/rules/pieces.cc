// Key splits: the rows of a fused parameter that checkpoints store under keys of their own. The pieces of a
// gated parameter whose whole has 8 rows, over 2 cells (each holds 4 rows):
//
//   local rows of a cell     0 1 | 2 3
//   key                      _w  | _v        pieces {"_w", first_row 0, rows 2}, {"_v", first_row 2, rows 2}
//
// Joined over the cells, `_w` is all of gate and `_v` all of up, whatever the number of cells. A piece of a
// key is named by a suffix (weight -> weight_w, in_proj.weight -> in_proj.weight.query), except that the
// pieces of MLA's joined down projection replace the name of the module.
#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/rules/blocks.h"
#include "mappings/rules/sections.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kMlaModule = "linear_qkv_down_proj";

// Throws kBadSplit with the whole shape if there are not two halves.
i64 half_of_rows(const GlobalShape& whole) {
  if (whole.shape.rank() == 0 || whole.shape[0] % 2 != 0)
    throw Error(Code::kBadSplit, "a gated parameter has two halves of the same number of rows")
        .expected("an even first dimension of the whole parameter")
        .found(to_string(whole.shape));
  return whole.shape[0] / 2;
}

// The sections of the whole parameter. Throws kBadSplit if their rows are not the rows of `global`.
std::vector<FusedSection> sections_of(KeySplit split, const ModelConfig& model, const GlobalShape& global) {
  if (split == KeySplit::kSwiglu) {
    i64 half = half_of_rows(global);
    return {{"_w", half}, {"_v", half}};
  }
  std::vector<FusedSection> sections = sections_of(split, model);
  i64 rows = rows_of(sections);
  if (global.shape.rank() > 0 && global.shape[0] == rows) return sections;
  Error error(Code::kBadSplit, "the rows of a fused parameter are not the sum of its parts");
  for (const FusedSection& s : sections) error.note(cat(s.name, ": ", s.rows, " rows"));
  throw error.expected(cat(rows, " rows")).found(to_string(global.shape));
}

[[noreturn]] void refuse_part(const FusedSection& section, const GlobalShape& global, Part part) {
  throw Error(Code::kBadGrid, cat("part ", section.name, " of a parameter of shape ", to_string(global.shape),
                                  " does not divide by the parallel size"))
      .expected(cat("a multiple of ", part.count))
      .found(section.rows);
}

}  // namespace

std::vector<Piece> pieces_of(KeySplit split, const ModelConfig& model, const GlobalShape& global, Part part) {
  std::vector<Piece> pieces;
  i64 row = 0;
  for (const FusedSection& section : sections_of(split, model, global)) {
    if (section.rows % part.count != 0) refuse_part(section, global, part);
    pieces.push_back({section.name, row, section.rows / part.count});
    row += pieces.back().rows;
  }
  return pieces;
}

ItemRange items_of(const Piece& piece, i64 row_items) {
  return {piece.first_row * row_items, (piece.first_row + piece.rows) * row_items};
}

std::string piece_key(KeySplit split, std::string_view key, const Piece& piece) {
  if (split != KeySplit::kMlaDown) return cat(key, piece.name);
  std::size_t at = key.rfind(kMlaModule);
  if (at == key.npos) throw Error(Code::kBadSplit, cat("the key has no module ", kMlaModule)).tensor(key);
  return cat(key.substr(0, at), piece.name, key.substr(at + kMlaModule.size()));
}

}  // namespace mckpt::impl
