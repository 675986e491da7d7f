// A family with rows of the user's own: what a map file adds to the built-in tables, or puts in their place.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "mappings/family.h"

namespace mckpt {

struct MapRow {
  std::string megatron;   // the whole name, with placeholders
  std::string rule = {};  // empty: one source, split as partition_of() says
  struct Source {
    std::string name, shape;  // the whole name

    friend bool operator==(const Source&, const Source&) = default;
  };
  std::vector<Source> sources = {};
  std::optional<int> partition_dim = {};  // of rows without a rule
  std::string after = {};                 // of a new row: the whole Megatron name of the row that it follows
  Needs needs = Needs::kAlways;
  KeySplit split = KeySplit::kNone;
  bool buffer = false, alternates = false;

  friend bool operator==(const MapRow&, const MapRow&) = default;
};

struct MapUnread {
  std::string name, copy_of, reason;

  friend bool operator==(const MapUnread&, const MapUnread&) = default;
};

struct MapFile {
  std::vector<MapRow> rows;
  std::vector<MapUnread> unread;

  friend bool operator==(const MapFile&, const MapFile&) = default;
};

class OwnFamily {
 public:
  // Throws kBadMap, kUnknownPartition for a row without a rule.
  OwnFamily(const Family& base, const MapFile& file);
  OwnFamily(const OwnFamily&) = delete;
  OwnFamily& operator=(const OwnFamily&) = delete;

  const Family& family() const { return family_; }
  // Remarks for a person: by which rule a row is read that names none, and why.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  using Rows = std::vector<Row>;

  std::string_view keep(std::string_view text);
  std::string rule_for(const MapRow& from);
  Row row_of(const MapRow& from, std::string_view name);
  void apply(const MapRow& row);
  bool replace(const MapRow& row);
  bool insert(const MapRow& row);
  // Gives the list rows of its own and lets `change` change them.
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

}  // namespace mckpt
