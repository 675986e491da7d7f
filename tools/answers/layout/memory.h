// `mckpt layout MODEL --memory`: the bytes that a rank of the run takes, by engine and strategy.
//
//   engine  strategy              weights      main  gradients   moments      total  ...  gathered
//   v1      no_shard             15.3 MiB  30.6 MiB   30.6 MiB  61.1 MiB  137.6 MiB              -
//   v1      optim_grads_params    3.9 MiB   7.7 MiB    7.7 MiB  15.4 MiB   34.7 MiB        2.1 MiB
#pragma once

#include <string>

#include "mappings/fsdp/memory_table.h"

namespace mckpt::impl {

class JsonWriter;
class Output;
struct ModelLayout;

void write_memory(Output& out, const ModelLayout& layout, const MemoryTable& table);
// The object of the field `memory`.
void write_memory_json(JsonWriter& json, const MemoryTable& table);
// The object of the field `outside_units`, with its name.
void write_outside_units_json(JsonWriter& json, const ModelLayout& layout);
// A warning where much of the layers is outside FSDP units, under the layout's own strategy and engine; ""
// for none.
std::string outside_units_text(const ModelLayout& layout);

}  // namespace mckpt::impl
