// Tensors as one or several safetensors files: which file has each, where, and every byte that is not a
// tensor's. Names, types and shapes alone decide it, so the tensors may be written in any order; equal
// tensors give equal files.
//
//   model-00001-of-00002.safetensors   [length][JSON, padded][tensors: large elements first, then by name]
//   model-00002-of-00002.safetensors   ...
//   model.safetensors.index.json       {"metadata": {"total_size": ...}, "weight_map": {name: file, ...}}
//
// The order within a file is the reference writer's, and the shards are cut as Hugging Face's save_pretrained
// cuts them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct OutputFile;
struct SafetensorsOriginal;
struct TensorSpec;

// Keys and values of __metadata__, in the order in which they are written.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

// The bytes of tensors in one file of a model where nobody says another number, as save_pretrained has it.
inline constexpr i64 kUsualShardBytes = 5'000'000'000;

// How to split and align the files.
struct SafetensorsOptions {
  SafetensorsMetadata metadata = {
      {"format", "pt"}};    // of every file; transformers takes none without a format
  i64 max_shard_bytes = 0;  // of the tensors in one file; a larger tensor has a file of its own; 0: one file
  // The alignment of the first data byte: a power of two, at least 8. The format has no room between
  // tensors, so the others are aligned only to the size of their elements. With 8 the files are the reference
  // writer's, byte for byte.
  i64 alignment = 64;
};

// The layout of all files. Planning asks it for places and final sizes; the headers and the index are
// written as they are.
class SafetensorsLayout {
 public:
  static constexpr std::string_view kIndexName = "model.safetensors.index.json";

  struct File {
    std::string name;
    std::string header;  // length, JSON and padding: everything up to the first data byte
    i64 bytes = 0;
  };

  // Throws kNotHeld, with the first tensors that the format cannot hold (their type; a name that is
  // reserved, not UTF-8 or used twice) or a header beyond what readers accept, and kSizeOverflow.
  explicit SafetensorsLayout(std::span<const TensorSpec> tensors, const SafetensorsOptions& options = {});

  // The layout of the original files, if they have exactly these tensors with these types and shapes: names,
  // order, headers and index are theirs. Else nothing. Throws what SafetensorsTable and
  // parse_safetensors_index() throw for headers or an index that are not valid.
  static std::optional<SafetensorsLayout> like(std::span<const TensorSpec> tensors,
                                               const SafetensorsOriginal& original);

  // True for the layout of original files.
  bool is_original() const { return original_; }
  const std::vector<File>& files() const { return files_; }
  // The files with their sizes, and last the index if there is one.
  std::vector<OutputFile> output_files() const;
  // The place of a tensor, numbered as they were given; offsets count from the beginning of the file.
  i32 file(i64 tensor) const { return places_[tensor].file; }
  i64 offset(i64 tensor) const { return places_[tensor].offset; }
  i64 bytes(i64 tensor) const { return places_[tensor].bytes; }
  // The tensors in the order of the files: the fastest order to write them in.
  const std::vector<i64>& order() const { return order_; }
  // The text of the index; "" where one file holds everything and no index is written.
  const std::string& index() const { return index_; }

 private:
  SafetensorsLayout() = default;
  struct Place {
    i32 file = 0;
    i64 offset = 0, bytes = 0;
  };
  i32 split(i64 max_shard_bytes);
  void sort(std::span<const TensorSpec> tensors);
  std::string data_entries(std::span<const TensorSpec> tensors, std::span<const i64> of_file,
                           i64& data_bytes);
  void add_file(std::string name, std::string json, i64 data_bytes, i64 alignment);
  void write_index(std::span<const TensorSpec> tensors);

  std::vector<File> files_;
  std::vector<Place> places_;
  std::vector<i64> order_;
  std::string index_name_{kIndexName}, index_;
  bool original_ = false;
};

}  // namespace mckpt::impl
