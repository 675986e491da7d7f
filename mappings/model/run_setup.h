// The choices of a training run beside the model: the rows of its vocabulary, the type of its parameters, the
// groups of its layers, the spelling of its names, and whether fused parameters are stored whole.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/hybrid/spellings.h"

namespace mckpt::impl {

enum class DType : u8;
struct Family;
struct LayerPattern;
struct ModelConfig;
struct ModelParameter;

// How a training run sets a model up.
struct RunSetup {
  i64 vocab_rows = 0;  // with padding; 0: no padding
  // The data type of all parameters; persistent buffers are then fp32. None: each keeps its source's type.
  std::optional<DType> params_dtype;
  // The pattern of a hybrid model with groups; it must outlive this struct. Null: no groups.
  const LayerPattern* groups = nullptr;
  Spelling spelling{};  // the names of parameters that have more than one
  bool whole = false;   // fused parameters are stored whole, under one key
};

// How many rows the vocabulary has: the config's number (kKeep), as many more as the cells need (kAuto),
// `rows`, or a multiple of cells times `rows`, as Megatron always pads (kDivisor).
struct VocabChoice {
  enum Kind : u8 { kKeep, kAuto, kRows, kDivisor } kind = kAuto;
  i64 rows = 0;
};
// "auto", "keep", "1024" or "divisible-by-128", and back; nothing for another word.
std::string vocab_word(const VocabChoice& choice);
std::optional<VocabChoice> vocab_choice_of(std::string_view word);
// The rows of the vocabulary over this number of cells. Throws kVocabulary if they do not divide.
i64 vocab_rows(const ModelConfig& model, const Family& family, i64 cells, VocabChoice choice);
// The rows of the vocabulary of a run that continues from a checkpoint with `stored` rows: those rows, if
// they divide. Throws likewise.
i64 vocab_rows_from(i64 stored, const ModelConfig& model, const Family& family, i64 cells,
                    VocabChoice choice);
// The note about a run that pads the vocabulary; "" if it does not.
std::string padding_note(const ModelConfig& model, const RunSetup& run, i64 cells);
// The text of that note: "vocab   37 rows become 38: 1 row of zeros is added, for tp 2".
std::string added_rows_note(i64 before, i64 after, i64 cells);
// The settings that a run needs to have the vocabulary that is stored; "" if Megatron's default does that.
std::string vocab_run_note(const ModelConfig& model, const Family& family, const RunSetup& run, i64 cells);
// The make_vocab_size_divisible_by for which Megatron's formula, the vocabulary rounded up to a multiple of
// it times the cells, gives these rows: the family's divisor if it does, a power of two, or the rows of a
// cell.
i64 vocab_divisor_of(const ModelConfig& model, const Family& family, i64 rows, i64 cells);
// Whether it gives them.
bool gives_vocab_rows(const ModelConfig& model, i64 divisor, i64 rows, i64 cells);
// A padded vocabulary is a multiple of this many rows for each cell.
i64 vocab_divisor(const ModelConfig& model, const Family& family);

// Changes what the tables say of a run's parameters, such as which of them are frozen. Thread-safe: each cell
// of the grid calls it for its own parameters.
using Adjust = std::function<void(std::vector<ModelParameter>&)>;

}  // namespace mckpt::impl
