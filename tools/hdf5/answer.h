// The answer, written to standard output in the format of io/hdf5/wire.h. A record is written whole or not at
// all: a dataset that turns out to be damaged half way through its record is dropped, and a fault is written
// instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/hdf5/wire.h"

namespace mckpt::impl {

// One answer of the process. begin(), fields, end(), for each record; finish() once.
class Answer {
 public:
  explicit Answer(std::string_view magic = hdf5_wire::kMagic);

  // Begins a record; a record before it that was not ended is dropped.
  Answer& begin(hdf5_wire::Record kind) { return begin(static_cast<char>(kind)); }
  Answer& begin(hdf5_wire::Laid kind) { return begin(static_cast<char>(kind)); }
  Answer& byte(int v);
  Answer& number(std::uint64_t v);
  Answer& text(std::string_view v);
  void end();

  // A record about something that cannot be read, with whom it is due to: damage of the file, or a feature
  // that mckpt lacks.
  void fault(std::string_view name, hdf5_wire::Blame blame, std::string_view words);
  // Writes the last record and all that is left.
  void finish();

 private:
  Answer& begin(char kind);
  // If the reader is gone, the process ends.
  void write_out();

  std::string done_, record_;
  std::uint64_t records_ = 0;
};

}  // namespace mckpt::impl
