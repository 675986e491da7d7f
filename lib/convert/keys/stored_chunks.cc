// The lists of a store's chunks, and the check that a checkpoint's model section is what the key table
// expects. All tensors that do not fit are collected first, so that one error names up to 20 of them.
#include "convert/keys/stored_chunks.h"

#include <algorithm>

#include "convert/keys/key_table.h"
#include "core/base/argument.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "io/dcp/keys/bridge_adapter.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/write/layout.h"
#include "io/dcp/write/record.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/strided.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/plain_family.h"

namespace mckpt::impl {
namespace {

// Keeps the first 20 lines.
void add_named(std::vector<std::string>& lines, std::string line) {
  if (lines.size() < 20) lines.push_back(std::move(line));
}

// Whether the tensor is the output layer of a tied model, stored beside the embedding: Megatron-FSDP v2 and
// torch's FSDP2 write the same weights under both names.
bool is_tied(const Store& store, i32 tensor, const ModelConfig& model) {
  return model.tied && tied_embedding(store, tensor) >= 0;
}

// The weights of the base alone are not the model that was trained.
Error adapter_beside(const Store& store, i64 tensors) {
  Error e(Code::kUnsupportedTensor,
          "the run trained an adapter, which is beside the weights of its base and not merged into them");
  e.file(store.root()).found(cat(counted(tensors, "tensor"), " of an adapter of Megatron-Bridge"));
  if (const std::string adapter = exported_adapter(store); !adapter.empty())
    return e.help(cat("mckpt export ", as_argument(adapter),
                      " OUT merges it, with `base`, the folder of the model that was trained"));
  return e.help(
      "the checkpoint does not say what the adapter is multiplied by; save it in PEFT's form in the training run (Megatron-Bridge: save_hf_adapter; verl: hf_model among save_contents), which mckpt merges");
}

}  // namespace

i64 PlannedChunks::size() const { return layout_.chunk_count(); }
i32 PlannedChunks::key(i64 c) const { return table_key_[layout_.chunk(c).key]; }
ChunkList::Box PlannedChunks::box(i64 c) const { return {layout_.chunk(c).offsets, layout_.chunk(c).sizes}; }
std::span<const i64> PlannedChunks::dims(i64 c) const { return of(c).shape.dims(); }
DType PlannedChunks::dtype(i64 c) const { return of(c).dtype; }
ChunkList::Place PlannedChunks::place(i64 c) const {
  return {layout_.chunk(c).rank, layout_.chunk(c).data_offset(), dtype(c)};
}
i32 PlannedChunks::tensor(i64 c) const { return layout_.chunk(c).key; }
std::string PlannedChunks::name(i64 c) const { return of(c).name.text; }
const DcpTensorFrame* PlannedChunks::frame(i64 c) const { return layout_.chunk(c).frame; }
const DcpLayoutKey& PlannedChunks::of(i64 c) const { return layout_.key(layout_.chunk(c).key); }
std::span<const i64> StoreChunks::dims(i64 c) const { return store_.dims(at(c).tensor); }
DType StoreChunks::dtype(i64 c) const { return store_.dtype(at(c).tensor); }
std::string StoreChunks::name(i64 c) const { return std::string(store_.name(at(c).tensor)); }

void check_plain(const Store& store, i64 tensor, const Chunk& chunk, const ChunkData& data) {
  bool row_major = data.strides.empty() || is_row_major(chunk.sizes, data.strides);
  if (row_major && !data.big_endian && !data.unpacked) return;
  throw Error(Code::kUnsupportedTensor, "a tensor is stored in another order than row by row")
      .file(file_path(store, chunk.file))
      .tensor(store.name(tensor))
      .help("save it as a contiguous tensor first");
}

i64 tied_embedding(const Store& store, i64 tensor) {
  constexpr std::string_view kOutput = "output_layer.weight", kEmbedding = "embedding.word_embeddings.weight";
  std::string_view name = store.name(tensor);
  if (!name.ends_with(kOutput)) return -1;
  return find_tensor(store, cat(name.substr(0, name.size() - kOutput.size()), kEmbedding));
}

NamedChunks::NamedChunks(const Store& store, const Store& other, const std::set<i64>& except)
    : StoreChunks(store) {
  NameMap<std::string_view, i32> by_name;
  for (i32 t = 0; t < other.tensor_count(); t++) by_name.emplace(other.name(t), t);
  for (i32 t = 0; t < store.tensor_count(); t++) {
    auto at = by_name.find(store.name(t));
    if (at != by_name.end() && !except.contains(t)) add(t, at->second);
  }
}

void StoreChunks::add(i32 tensor, i32 key) {
  for (i32 c = 0; c < store_.chunk_count(tensor); c++) {
    Chunk chunk = store_.chunk(tensor, c);
    if (!chunk.replica && Shape(chunk.sizes).items() > 0) chunks_.push_back({key, tensor, c});
  }
}

ChunkList::Box StoreChunks::box(i64 c) const {
  Chunk chunk = store_.chunk(at(c).tensor, at(c).chunk);
  return {chunk.offsets, chunk.sizes};
}

ChunkList::Place StoreChunks::place(i64 c) const {
  const Entry& e = at(c);
  ChunkData data = store_.resolve(e.tensor, e.chunk);
  check_plain(store_, e.tensor, store_.chunk(e.tensor, e.chunk), data);
  Place place{data.file, data.offset, data.dtype};
  add_sums(std::move(data), place.sums);
  return place;
}

StoredChunks::StoredChunks(const Store& store, const KeyTable& keys) : StoreChunks(store), keys_(keys) {
  std::vector<std::string> unknown, shapes;
  i64 unknown_count = 0, of_adapter = 0;
  // In a model without a family table, tensors that cannot be sharded are not parameters; they are not
  // errors.
  bool carries_others = keys.map().family().name == kPlainFamily;
  for (i32 t = 0; t < store.tensor_count(); t++) {
    std::optional<std::string> name = model_key(store.name(t));
    if (!name || name->ends_with("_extra_state")) continue;
    i32 k = keys.find(*name);
    if (k < 0 && is_tied(store, t, keys.map().model())) {
      copies_.push_back(t);
      continue;
    }
    if (k < 0 && carries_others) continue;
    if (k < 0 && is_bridge_adapter(*name)) {
      of_adapter++;
      continue;
    }
    if (k < 0) {
      unknown_count++, add_named(unknown, escaped(store.name(t)));
      continue;
    }
    if (!std::ranges::equal(store.dims(t), keys[k].shape.dims()))
      add_named(shapes, cat(escaped(store.name(t)), ": expected ", to_string(keys[k].shape), ", found ",
                            dims_to_string(store.dims(t))));
    add(t, k);
  }
  if (unknown_count > 0) {
    Error e(Code::kUnaccounted,
            cat("the checkpoint has ", unknown_count, unknown_count == 1 ? " tensor" : " tensors",
                " that the model does not have"));
    for (std::string& line : unknown) e.note(std::move(line));
    throw e.file(store.root());
  }
  if (!shapes.empty()) {
    Error e(Code::kSourceShape, "tensors of the checkpoint do not have the shapes that the model gives them");
    for (std::string& line : shapes) e.note(std::move(line));
    throw e.file(store.root()).help("check that the configuration is that of this checkpoint's model");
  }
  if (of_adapter > 0) throw adapter_beside(store, of_adapter);
}

std::vector<std::optional<DType>> StoredChunks::types_of_sources() const {
  std::vector<std::optional<DType>> out(static_cast<std::size_t>(keys_.map().sources().size()));
  for (i64 c = 0; c < size(); c++)
    for (i32 source : keys_.parameter(keys_[key(c)]).sources)
      if (source >= 0) out[source] = dtype(c);
  for (const UnreadTensor& u : keys_.map().unread())
    if (u.of >= 0) out[u.tensor] = out[u.of];
  return out;
}

}  // namespace mckpt::impl
