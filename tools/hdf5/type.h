// The elements of a dataset: a number that a tensor can hold, or anything else in words.
#pragma once

#include <array>
#include <string>

#include "hdf5/answer.h"
#include "hdf5/handle.h"

namespace mckpt::impl {

// The type of one element. `numbers` have the order of the wire format: precision and offset, sign for
// integers, fields and bias for floats.
struct ElementType {
  bool numeric = false;
  std::string other;  // what it is where it is not numeric: "strings", "compound of 3 fields"
  bool text = false;  // strings: nothing that a tensor could hold is lost
  hdf5_wire::TypeClass kind = hdf5_wire::TypeClass::kInteger;
  std::size_t bytes = 0;
  hdf5_wire::Order order = hdf5_wire::Order::kLittle;
  std::array<std::size_t, hdf5_wire::kTypeNumbers> numbers{};
};

ElementType element_type(hid_t type);
// Whether it is the enumeration {FALSE, TRUE} that h5py writes for bool.
bool is_bool(hid_t type);
// Adds the type to the kDataset record that is open. pre: numeric.
void add_type(Answer& out, const ElementType& type);

}  // namespace mckpt::impl
