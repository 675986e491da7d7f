// A family of the user's own: a map file (`map_file`) adds rows to the rows of a built-in family, replaces or
// removes some, or is a family by itself.
//
//   base llama, one row                      base none, all rows
//     its sections, with that row in           rows without {L} before the layers     first pipeline stage
//     the place of the one it names            rows with {L}                          the layers
//                                              rows without {L} after them            last pipeline stage
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "mappings/family.h"
#include "mappings/map_file/map.h"

namespace mckpt::impl {

struct ModelConfig;

// Owns copies of all that it changes. Its Family points into it, so it neither moves nor is copied, and must
// outlive every use of family().
class OwnFamily {
 public:
  // Changes a copy of `base`. Throws kBadMap, kUnknownPartition for a row without a rule.
  OwnFamily(const Family& base, const MapFile& file);
  // The family that the file's rows are. Throws likewise.
  explicit OwnFamily(const MapFile& file);
  OwnFamily(const OwnFamily&) = delete;
  OwnFamily& operator=(const OwnFamily&) = delete;

  const Family& family() const { return family_; }
  // Notes for a person: the rule that was chosen for each row without one, and why.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  using Rows = std::vector<Row>;

  std::string_view keep(std::string_view text);
  std::string rule_for(const MapRow& from);
  Row row_of(const MapRow& from, std::string_view name);
  void apply(const MapRow& row);
  void remove(const std::string& name);
  void add_once(const std::vector<MapRow>& rows, Stage stage);
  void add_layers(const std::vector<MapRow>& rows);
  void add_tied_output(const MapFile& file);
  void finish(const MapFile& file);
  bool replace(const MapRow& row);
  bool replace_shown(const MapRow& row);
  bool insert(const MapRow& row);
  // Copies the rows of the list and lets `change` change the copy.
  template <typename Fn>
  void rewrite(Section& section, std::span<const Row> LayerRows::*list, Fn&& change);

  Family family_;
  std::vector<Section> sections_;
  std::vector<Unread> unread_;
  std::deque<Rows> rows_;
  std::deque<LayerRows> layers_;
  std::deque<std::string> texts_;
  std::vector<std::string> notes_;
};

// The name in front of the rows of a layer, "decoder.layers.{L}."; "" for a name without layers.
std::string_view layer_prefix(std::string_view megatron);

// The mixer and the feed-forward part to which a row of a layer belongs by its name: "attention", "dense" or
// "moe".
std::string_view layer_kind_of(std::string_view megatron);

// Sets what the rows of the map say of the model beyond its config: biases, norms of queries and keys, a
// plain MLP.
void follow_rows(const MapFile& file, ModelConfig& model);

// "", "swiglu", "gdn_in_proj", "gdn_conv"; throws kBadMap.
KeySplit key_split_from_name(std::string_view name);
std::string_view key_split_name(KeySplit split);  // "" for one that map files cannot name

}  // namespace mckpt::impl
