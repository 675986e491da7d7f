// Chooses the rows. The rows of the source stay wherever they can: the run that goes on from the result may
// have chosen them.
#include "convert/plan/vocab_change.h"

#include "convert/open/checkpoint.h"
#include "core/base/error.h"
#include "core/base/notes.h"
#include "core/base/text.h"
#include "hf/model.h"
#include "io/store/store.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

i64 chosen_rows(const CheckpointModel& source, i64 stored, i64 cells, VocabChoice choice) {
  const ModelMap& map = source.map();
  return with_file(source.store().root(),
                   [&] { return vocab_rows_from(stored, map.model(), map.family(), cells, choice); });
}

}  // namespace

void refuse_unknown_vocab(const Store& source, VocabChoice choice) {
  if (choice.kind != VocabChoice::kRows && choice.kind != VocabChoice::kDivisor) return;
  throw Error(Code::kUsage, "the vocabulary of this checkpoint is not known, so its rows cannot be changed")
      .file(source.root())
      .help("leave out `vocab_size`, or name the folder of the model with `assets`");
}

i64 resharded_vocab(const CheckpointModel& source, i64 cells, VocabChoice choice, Notes& notes) {
  const i64 stored = source.setup().vocab_rows;
  if (source.model().plain || stored == 0) {
    refuse_unknown_vocab(source.store(), choice);
    return stored;
  }
  const i64 rows = chosen_rows(source, stored, cells, choice), own = source.map().model().vocab;
  if (rows > stored) notes.note(added_rows_note(stored, rows, cells));
  if (rows < stored)
    notes.note(cat("vocab   ", with_commas(stored), " rows become ", with_commas(rows), ": the last ",
                   stored - rows, stored - rows == 1 ? " is padding" : " are padding", ", by vocab_size ",
                   own, " of config.json, and ", stored - rows == 1 ? "is dropped" : "are dropped"));
  return rows;
}

}  // namespace mckpt::impl
