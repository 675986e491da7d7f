// Writes the first map of a model whose type no family has: rows for what its tensors show, and a question
// where they leave something open.
//
//   tensors, numbers of the model   ->   rows of the base that fit stay; those that find no tensor are replaced by rows
//   base: the nearest family               for other tensors, or removed; tensors that are left become rows
//   no base                         ->   all rows, in the order in which Megatron registers parameters
#pragma once

#include "mappings/map_file/map.h"

namespace mckpt::impl {

class SourceTable;
struct Family;
struct ModelConfig;

// `model`: its numbers as the reader of `base` takes them; `base` null: a map without a base. The entries
// under "config" are left to the caller.
MapFile draft_map(const SourceTable& tensors, ModelConfig model, const Family* base);

}  // namespace mckpt::impl
