#include "convert/compare/tied_copy.h"

#include <algorithm>

#include "convert/compare/compare_sink.h"
#include "convert/jobs/chunk_jobs.h"
#include "io/copy/engine.h"

namespace mckpt {
namespace {

bool hold_the_same(const Store& store, i32 one, i32 other) {
  if (store.dtype(one) != store.dtype(other) || !std::ranges::equal(store.dims(one), store.dims(other)))
    return false;
  ListedChunks chunks(store, {{{one, other}}});
  CompareSink sink(store, chunks);
  run_copy(reshard_job(store, chunks), sink, {});
  return sink.differences().empty();
}

}  // namespace

void check_tied_copies(const Store& store, std::span<const i32> copies) {
  for (i32 output : copies)
    if (!hold_the_same(store, output, static_cast<i32>(tied_embedding(store, output))))
      throw Error(Code::kUnaccounted, "the output layer is not the embedding, though the model ties them")
          .file(store.root())
          .tensor(store.name(output))
          .help("check tie_word_embeddings in config.json");
}

}  // namespace mckpt
