#include "convert/compare/tied_copy.h"

#include <algorithm>

#include "convert/compare/compare_sink.h"
#include "convert/jobs/reshard_job.h"
#include "io/copy/engine.h"

namespace mckpt {

bool is_tied_copy(const Store& store, i32 tensor, const ModelConfig& model) {
  constexpr std::string_view kOutput = "output_layer.weight", kEmbedding = "embedding.word_embeddings.weight";
  std::string_view name = store.name(tensor);
  if (!model.tied || !name.ends_with(kOutput)) return false;
  i64 embedding = find_tensor(store, cat(name.substr(0, name.size() - kOutput.size()), kEmbedding));
  if (embedding < 0) return false;
  bool equal = store.dtype(embedding) == store.dtype(tensor) &&
               std::ranges::equal(store.dims(embedding), store.dims(tensor));
  if (equal) {
    NamedChunks chunks(store, tensor, static_cast<i32>(embedding));
    CompareSink sink(store, chunks);
    run_copy(ReshardJob(store, chunks, nullptr), sink, {});
    equal = sink.differences().empty();
  }
  if (!equal)
    throw Error(Code::kUnaccounted, "the output layer is not the embedding, though the model ties them")
        .file(store.root())
        .tensor(name)
        .help("check tie_word_embeddings in config.json");
  return true;
}

}  // namespace mckpt
