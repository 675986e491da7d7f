// Prints names, types, shapes, sizes and places. A hundred thousand tensors take milliseconds: cells are
// appended in place, without a text of their own.
//
//   where       model-00001-of-00002.safetensors @ 6440     one stretch of one file
//               4 chunks in 2 files                         a sharded tensor
#include "tools/answers/tensors/list.h"

#include <algorithm>
#include <optional>

#include "convert/open/shard_facts.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/values/tensor_reader.h"
#include "tools/answers/inspect/shard.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"
#include "tools/render/text_table.h"
#include "tools/run/each_path.h"

namespace mckpt::impl {
namespace {

// True if the whole tensor is one stretch of one file.
bool is_whole(const Store& store, i64 tensor) {
  return store.chunk_count(tensor) == 1 &&
         std::ranges::equal(store.chunk(tensor, 0).sizes, store.dims(tensor));
}

// Null if the bytes are in many places.
void write_offset(JsonWriter& json, const Chunk& c) {
  c.record_offset < 0 ? json.null_field("offset") : json.field("offset", c.record_offset);
}

void write_chunk(JsonWriter& json, const Store& store, const Chunk& c) {
  json.begin_object();
  c.rank < 0 ? json.null_field("rank") : json.field("rank", static_cast<i64>(c.rank));
  json.field("offsets", c.offsets).field("sizes", c.sizes).field("file", file_label(store, c.file));
  write_offset(json, c);
  json.field("bytes", c.record_bytes).end_object();
}

// Where the bytes are: file and byte, or over how many files a sharded tensor is spread. `files` is scratch
// memory.
void append_place(std::string& out, const Store& store, i64 tensor, std::vector<i32>& files) {
  i64 count = store.chunk_count(tensor);
  if (count == 0) {
    out += "no chunks";
    return;
  }
  if (is_whole(store, tensor)) {
    Chunk all = store.chunk(tensor, 0);
    append_escaped(out, file_label(store, all.file));
    if (all.record_offset < 0) return;
    out += " @ ";
    return append_one(out, all.record_offset);
  }
  files.clear();
  for (i64 i = 0; i < count; i++) files.push_back(store.chunk(tensor, i).file);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  append_with_commas(out, count);
  out += count == 1 ? " chunk in " : " chunks in ";
  if (files.size() == 1) return append_escaped(out, file_label(store, files[0]));
  append_one(out, files.size());
  out += " files";
}

// The bytes of the tensor; in the file of one rank, of its part.
i64 bytes_here(const Store& store, i64 tensor, const ShardFacts* shard) {
  if (shard == nullptr) return TensorReader::tensor_bytes(store, tensor);
  return dtype_bytes(store.dtype(tensor), Shape(shard->tensors[tensor].local).items());
}

}  // namespace

void write_tensor(JsonWriter& json, const Store& store, i64 tensor, const std::string* sha256,
                  const ShardFacts* shard) {
  json.field("name", store.name(tensor)).field("dtype", dtype_name(store.dtype(tensor)));
  json.field("shape", store.dims(tensor)).field("bytes", bytes_here(store, tensor, shard));
  if (shard) json.field("local_shape", std::span<const i64>(shard->tensors[tensor].local));
  if (is_whole(store, tensor)) {
    Chunk c = store.chunk(tensor, 0);
    json.field("file", file_label(store, c.file));
    write_offset(json, c);
  } else {
    json.null_field("file").null_field("offset");
  }
  json.key("chunks").begin_array();
  for (i64 i = 0; i < store.chunk_count(tensor); i++) write_chunk(json, store, store.chunk(tensor, i));
  json.end_array();
  if (sha256) json.field("sha256", *sha256);
}

void write_tensors(Output& out, const Store& store, std::span<const i64> tensors,
                   std::span<const std::string> digests, const ShardFacts* shard) {
  using enum Align;
  std::vector<TextTable::Column> columns = {
      {"name", kLeft}, {"dtype", kLeft}, {"shape", kLeft}, {"bytes", kRight}, {"where", kLeft}};
  if (!digests.empty()) columns.insert(columns.begin() + 4, {"sha256", kLeft});
  if (shard) columns[2].title = "here", columns.insert(columns.begin() + 3, {"of the whole", kLeft});
  TextTable table(std::move(columns));
  std::vector<i32> files;
  table.expect(tensors.size());
  auto row = [&](std::size_t i) {
    i64 t = tensors[i];
    table.cell_by([&](std::string& to) { append_escaped(to, store.name(t)); });
    table.cell(dtype_name(store.dtype(t)));
    table.cell_by([&](std::string& to) { append_dims(to, shard ? shard->tensors[t].local : store.dims(t)); });
    if (shard) table.cell(whole_text(shard->tensors[t]));
    table.cell_by([&](std::string& to) { append_with_commas(to, bytes_here(store, t, shard)); });
    if (!digests.empty()) table.cell(digests[i]);
    table.cell_by([&](std::string& to) { append_place(to, store, t, files); });
    table.end_row();
  };
  table.write_made(out, [&] {
    for (std::size_t i = 0; i < tensors.size(); i++) row(i);
  });
}

void write_rows(Output& out, std::string_view command, bool lines, std::span<const TensorRows> checkpoints) {
  AnswerJson json(out);
  bool several = checkpoints.size() > 1;
  bool all_sound =
      std::ranges::all_of(checkpoints, [](const TensorRows& c) { return !c.error && is_sound(*c.store); });
  std::optional<CheckpointAnswers> answers;
  if (!lines) answers.emplace(json, command, all_sound, several);
  for (const TensorRows& c : checkpoints) {
    if (c.error) {
      answers ? answers->begin(false, c.path) : json.begin_object().field("path", c.path);
      write_path_error(json, *c.error);
      answers ? answers->end() : static_cast<void>(json.end_object());
      if (lines) out.write("\n");
      continue;
    }
    if (answers) answers->begin(is_sound(*c.store), c.path).key("tensors").begin_array();
    for (std::size_t i = 0; i < c.count; i++) {
      json.begin_object();
      if (lines && several) json.field("path", c.path);
      c.write(json, i);
      json.end_object();
      if (lines) out.write("\n");
    }
    if (!answers) continue;
    json.end_array();
    if (c.totals) c.totals(json);
    json.key("problems");
    write_findings(json, c.store->findings());
    answers->end();
  }
  if (answers) answers->end_all();
}

}  // namespace mckpt::impl
