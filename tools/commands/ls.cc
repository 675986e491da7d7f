// mckpt ls: one line a tensor.
#include "io/file/parallel.h"
#include "io/file/source_stamps.h"
#include "io/values/digest.h"
#include "io/values/tensor_reader.h"
#include "tools/commands/commands.h"
#include "tools/commands/ls_as.h"
#include "tools/options/choice.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"
#include "tools/render/text_table.h"

namespace mckpt {
namespace {

// Whether the whole tensor is one stretch of one file.
bool is_whole(const Store& store, i64 tensor) {
  return store.chunk_count(tensor) == 1 &&
         std::ranges::equal(store.chunk(tensor, 0).sizes, store.dims(tensor));
}

// Null where the bytes lie in many places.
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

void write_tensor(JsonWriter& json, const Store& store, i64 tensor, const std::string* sha256) {
  json.begin_object();
  json.field("name", store.name(tensor)).field("dtype", dtype_name(store.dtype(tensor)));
  json.field("shape", store.dims(tensor)).field("bytes", TensorReader::tensor_bytes(store, tensor));
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
  json.end_object();
}

// Where the bytes are: file and byte, or over how many files a sharded tensor is spread. `files` is room to
// work in.
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

void write_text(Output& out, const Store& store, std::span<const i64> tensors,
                std::span<const std::string> digests) {
  using enum Align;
  std::vector<TextTable::Column> columns = {
      {"name", kLeft}, {"dtype", kLeft}, {"shape", kLeft}, {"bytes", kRight}, {"where", kLeft}};
  if (!digests.empty()) columns.insert(columns.begin() + 4, {"sha256", kLeft});
  TextTable table(std::move(columns));
  table.expect(tensors.size());
  std::vector<i32> files;
  for (std::size_t i = 0; i < tensors.size(); i++) {
    i64 t = tensors[i];
    table.cell_by([&](std::string& to) { append_escaped(to, store.name(t)); });
    table.cell(dtype_name(store.dtype(t)));
    table.cell_by([&](std::string& to) { append_dims(to, store.dims(t)); });
    table.cell_by([&](std::string& to) { append_with_commas(to, TensorReader::tensor_bytes(store, t)); });
    if (!digests.empty()) table.cell(digests[i]);
    table.cell_by([&](std::string& to) { append_place(to, store, t, files); });
    table.end_row();
  }
  table.write(out);
}

void write_json(Output& out, bool lines, const Store& store, std::span<const i64> tensors,
                std::span<const std::string> digests) {
  AnswerJson json(out);
  if (!lines) json.begin_answer("ls", is_sound(store)).key("tensors").begin_array();
  for (std::size_t i = 0; i < tensors.size(); i++) {
    write_tensor(json, store, tensors[i], digests.empty() ? nullptr : &digests[i]);
    if (lines) out.write("\n");
  }
  if (lines) return;
  json.end_array().key("problems");
  write_findings(json, store.findings());
  json.end_answer();
}

}  // namespace

Exit ls_command(CommandLine& line) {
  std::string path;
  TensorChoice choice;
  bool digest = false;
  int threads = default_threads();
  line.positional("PATH", path, "a checkpoint: a file or a folder").required();
  declare_choice(line, choice);
  line.flag("--digest", digest, "add the SHA-256 of each tensor's contiguous bytes (reads all data)");
  line.threads(threads, "threads that read; by default one for each processor");
  LsAs as;
  as.declare(line);
  line.description("Lists every tensor by name, from headers alone. With -q, prints names only.");
  line.example("mckpt ls model.safetensors '*.layers.0.*'");
  line.example("mckpt ls ckpt --jsonl --digest > tensors.jsonl");
  line.example("mckpt ls Qwen3-30B-A3B --as megatron --tp 2 --ep 4 --rank 3");
  line.parse();
  if (as.chosen()) return as.run(line.flags(), path, choice, digest, threads);

  std::unique_ptr<Store> store = open_store(path);
  std::vector<i64> tensors = choice.choose(*store);
  std::vector<std::string> digests;
  if (digest) digests = tensor_digests(*store, tensors, threads);
  check_sources_unchanged();
  Output out(line.flags());
  if (out.json()) {
    write_json(out, line.flags().jsonl, *store, tensors, digests);
  } else if (line.flags().quiet) {
    for (i64 t : tensors) out.line(escaped(store->name(t), SIZE_MAX));
  } else {
    write_text(out, *store, tensors, digests);
  }
  out.flush();
  return report_findings(line.flags(), *store);
}

}  // namespace mckpt
