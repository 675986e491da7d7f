// MapFile: what a map file says (docs/adding_a_model.md), as plain values. lib/hf/map_file/map_file.h reads
// and writes its JSON; mappings/map_file/rows.h makes a family of it.
//
//   base      the family that the map changes; "none": the map is all there is; absent: the family of the model type
//   config    entries that config.json lacks, or has under another name or with another meaning
//   rows      rows that replace those with their names, or are new
//   remove    rows of the base that the model does not have
//   unread    tensors that no parameter reads
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mappings/key_split.h"
#include "mappings/needs.h"

namespace mckpt::impl {

// The base of a map that changes no family but is one.
inline constexpr std::string_view kNoBase = "none";

// One row. Its names are whole: no prefix of a section is put before them.
struct MapRow {
  std::string megatron;   // the whole name, with placeholders; "" in a draft that leaves it open
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
  bool buffer = false, fp32 = false, alternates = false, stateless = false;
  std::string gathered_with = {};  // a module, as in Row
  std::string layer = {};  // without a base: the member of LayerRows that has the row; "": by its name
  // As `mckpt mappings show` prints it: it stands for the one row of its name, layer and needs, which keeps
  // what the command does not print.
  bool as_shown = false;
  std::string todo = {};  // of a draft: what a person has to decide; such a map is not applied

  friend bool operator==(const MapRow&, const MapRow&) = default;
};

// A tensor that no parameter reads, and why nothing is lost.
struct MapUnread {
  std::string name, copy_of, reason;

  friend bool operator==(const MapUnread&, const MapUnread&) = default;
};

// An entry of config.json as the reader of the family is to see it: `value` (JSON), or what the entry `from`
// has.
struct MapEntry {
  std::string key, from, value;

  friend bool operator==(const MapEntry&, const MapEntry&) = default;
};

struct MapFile {
  std::vector<MapRow> rows;
  std::vector<MapUnread> unread;
  std::optional<std::string> base{};
  std::vector<MapEntry> config{};
  std::vector<std::string> remove{};

  bool has_base() const { return base != kNoBase; }

  friend bool operator==(const MapFile&, const MapFile&) = default;
};

}  // namespace mckpt::impl
