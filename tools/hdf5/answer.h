// The answer, written to standard output as io/hdf5/wire.h has it. A record appears whole or
// not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/hdf5/wire.h"

namespace mckpt::impl {

class Answer {
 public:
  Answer();

  // Begins a record; a record before it that was not ended is dropped.
  Answer& begin(hdf5_wire::Record kind);
  Answer& byte(int v);
  Answer& number(std::uint64_t v);
  Answer& text(std::string_view v);
  void end();

  void fault(std::string_view name, hdf5_wire::Blame blame, std::string_view words);
  // Writes the last record and all that is left.
  void finish();

 private:
  void write_out();

  std::string done_, record_;
  std::uint64_t records_ = 0;
};

}  // namespace mckpt::impl
