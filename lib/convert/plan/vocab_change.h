// The rows of the vocabulary in a resharded checkpoint. Rows beyond the vocabulary of config.json are
// padding: they are there so that every tensor-parallel rank has equally many rows.
//
//   vocab 517, stored 518 rows (tp 2)     tp 2, 1       518     they divide, and what the run chose stays
//                                         tp 4          520     517 does not divide: by the rule of the family
//                                         tp 11         517     517 divides: without padding
#pragma once

#include "core/base/int.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

class CheckpointModel;
class Notes;
class Store;

// The rows for `cells` tensor-parallel ranks; 0 if nothing is known of the vocabulary. `notes` gets what
// happens to padding. Throws kVocabulary for a choice that is not possible, kUsage for a number of rows in a
// model without tables.
i64 resharded_vocab(const CheckpointModel& source, i64 cells, VocabChoice choice, Notes& notes);

// Throws kUsage for a number of rows: it is not known which tensors of the source have the vocabulary.
void refuse_unknown_vocab(const Store& source, VocabChoice choice);

}  // namespace mckpt::impl
