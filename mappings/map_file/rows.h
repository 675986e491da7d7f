// A family with the user's own rows: a map file (`map_file`) adds rows to the built-in tables, or replaces
// rows. The file's JSON is read elsewhere; these types are its content.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "mappings/family.h"

namespace mckpt::impl {

// One row of the file. Its names are whole: no prefix of a section is put before them.
struct MapRow {
  std::string megatron;   // the whole name, with placeholders
  std::string rule = {};  // empty: the row has one source, split as partition_of() decides
  struct Source {
    std::string name, shape;  // the whole name

    friend bool operator==(const Source&, const Source&) = default;
  };
  std::vector<Source> sources = {};
  std::optional<int> partition_dim = {};  // of rows without a rule
  std::string after = {};                 // for a new row: the whole Megatron name of the row before it
  Needs needs = Needs::kAlways;
  KeySplit split = KeySplit::kNone;
  bool buffer = false, alternates = false;
  std::string gathered_with = {};  // a module, as in Row

  friend bool operator==(const MapRow&, const MapRow&) = default;
};

// A tensor that no parameter reads, and why nothing is lost.
struct MapUnread {
  std::string name, copy_of, reason;

  friend bool operator==(const MapUnread&, const MapUnread&) = default;
};

struct MapFile {
  std::vector<MapRow> rows;
  std::vector<MapUnread> unread;

  friend bool operator==(const MapFile&, const MapFile&) = default;
};

// Owns copies of all that it changes. Its Family points into it, so it neither moves nor is copied, and must
// outlive every use of family().
class OwnFamily {
 public:
  // Throws kBadMap, kUnknownPartition for a row without a rule.
  OwnFamily(const Family& base, const MapFile& file);
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
  bool replace(const MapRow& row);
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

KeySplit key_split_from_name(
    std::string_view name);  // "", "swiglu", "gdn_in_proj", "gdn_conv"; throws kBadMap

}  // namespace mckpt::impl
