// Vocabulary: column parallel over the padded vocabulary. Padding rows are zeros at the global end, so only
// the last cells have any.
//
//   V = 5, padded to 8, 4 cells      0 1 | 2 3 | 4 . | . .
//
// Padding has no source: its run has the slot kPaddingSlot, import writes zeros, and export skips these rows.
// The number of rows with padding comes from vocab_rows() (mappings/model/expand.h).
#include <algorithm>

#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/rules/blocks.h"
#include "mappings/rules/families.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kRoles[] = {"weight"};

Holding hold_vocab(const RuleInput& in) {
  expect_rank(in, 0, kRoles[0], 1, 2);
  const Shape& source = in.sources[0].shape;
  i64 vocab = positive(in.model.vocab, "the size of the vocabulary");
  expect_shape(in, 0, kRoles[0], source.with_dim(0, vocab), "the vocabulary");
  i64 padded = in.padded_vocab == 0 ? vocab : in.padded_vocab;
  if (padded < vocab)
    throw Error(Code::kBadGrid, "the padded vocabulary is smaller than the vocabulary")
        .expected(cat("at least ", vocab))
        .found(padded);
  Shape whole = source.with_dim(0, padded);
  ItemRange own = own_part(padded, in.part, "the number of rows of the vocabulary");
  ItemRange real = {std::min(own.begin, vocab), std::min(own.end, vocab)};
  RowRuns rows(whole.row_items());
  rows.add(0, real.begin, real.items());
  rows.add(kPaddingSlot, 0, own.items() - real.items());
  return {LocalShape{whole.with_dim(0, own.items())}, 0, rows.take(), 0};
}

constexpr Rule kRules[] = {
    {"vocab", kRoles, "dimension 0 in equal parts, zero rows for padding at the end", hold_vocab},
};

}  // namespace

std::span<const Rule> vocab_rules() { return kRules; }

}  // namespace mckpt::impl
