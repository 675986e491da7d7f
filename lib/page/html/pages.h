// The pages: what they show as JSON in a page (html/shell.h).
#pragma once

#include <string>

namespace mckpt::impl {

class JsonWriter;
struct CheckpointPicture;
struct Diff;

std::string checkpoint_page(const CheckpointPicture& picture);

// `a` and `b`: the paths as they were given.
std::string diff_page(const Diff& diff, const std::string& a, const std::string& b);

// Parts of the data of a page, each one value.
struct ShardMap;
struct SizeTree;
struct LayerValues;
void write_map(JsonWriter& json, const ShardMap& map);
void write_sizes(JsonWriter& json, const SizeTree& tree);
void write_values(JsonWriter& json, const LayerValues& values);

}  // namespace mckpt::impl
