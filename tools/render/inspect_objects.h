// `mckpt inspect --args`: what a checkpoint holds besides tensors, with its values. Pickles are shown, never
// run.
#pragma once

namespace mckpt::impl {

class JsonWriter;
class Output;
class Store;

// One line for a small value, a tree for a large one; the settings that an optimizer repeats for each
// parameter are counted, unless `whole`.
void write_object_values(Output& out, const Store& store, bool whole);

// The array of the objects; with_values: their values too, as Python would print them.
void write_objects_json(JsonWriter& json, const Store& store, bool with_values);

}  // namespace mckpt::impl
